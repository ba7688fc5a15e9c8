//! Properties of an emulated link.

use super::lane::Rate;
use crate::LabServerSettings;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LinkImpairments {
    /// One-way latency.
    pub(crate) delay: Duration,
    /// Bandwidth of each direction.
    pub(crate) rate: Option<Rate>,
    /// Fraction of packets lost in each direction. A proxy can't lose any.
    pub(crate) loss: f64,
}

impl LinkImpairments {
    /// Returns true if the link is not impaired.
    #[cfg(target_os = "linux")]
    pub(super) fn is_plain(&self) -> bool {
        *self == LinkImpairments { delay: Duration::ZERO, rate: None, loss: 0.0 }
    }

    /// Returns `None` if the settings ask for no link emulation.
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
