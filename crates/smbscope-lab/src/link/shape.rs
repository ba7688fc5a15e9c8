//! What a link is like.

use super::lane::Rate;
use crate::LabServerSettings;
use std::time::Duration;

/// What the link is like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LinkImpairments {
    /// From one end to the other, each way.
    pub(crate) delay: Duration,
    /// What it carries in each direction.
    pub(crate) rate: Option<Rate>,
    /// The share of the packets that are lost, each way. A proxy can't lose any.
    pub(crate) loss: f64,
}

impl LinkImpairments {
    /// Neither delays nor throttles nor loses.
    #[cfg(target_os = "linux")]
    pub(super) fn is_plain(&self) -> bool {
        *self == LinkImpairments { delay: Duration::ZERO, rate: None, loss: 0.0 }
    }

    /// Where the settings ask for a slow link.
    pub(crate) fn from_settings(settings: &LabServerSettings) -> Option<LinkImpairments> {
        let LabServerSettings { delay, bandwidth, loss, .. } = settings;
        let is_slow = delay.is_some() || bandwidth.is_some() || loss.is_some();
        is_slow.then(|| LinkImpairments {
            delay: delay.unwrap_or_default(),
            rate: bandwidth.map(Rate::from_bits),
            loss: loss.unwrap_or_default(),
        })
    }
}
