//! A finding: what happened, to whom, what it cost, how to see it, and what to do.

use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use std::sync::Arc;

/// A cause of waits, or something else that an administrator should know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Its key in the catalogue; docs/findings.md describes each.
    pub id: String,
    /// What it is called.
    pub title: String,
    /// What happened, in a sentence.
    pub sentence: String,
    /// To whom.
    pub whose: Whose,
    /// Time in which commands of the pattern were outstanding; null where a capture cannot tell what it costs.
    pub lost_ns: Option<Nanos>,
    /// The active time of the client, or of all clients: with commands outstanding, and to think between them.
    pub active_ns: Nanos,
    /// How sure it is.
    pub confidence: Confidence,
    /// Packets to look at, the first ones of the pattern.
    pub evidence: Vec<Evidence>,
    /// A display filter for Wireshark.
    pub wireshark: String,
    /// What to do.
    pub advice: String,
    /// Where the advice or the threshold is from.
    pub source: String,
    /// What is not the cause, a sentence each.
    pub ruled_out: Vec<String>,
}

/// Whom a finding is about; what is null it is not about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Whose {
    /// Address of the client.
    pub client: Option<String>,
    /// Users on its connections.
    pub users: Vec<Arc<str>>,
    /// The share.
    pub share: Option<Arc<str>>,
    /// The file or directory, below the share.
    pub path: Option<Arc<str>>,
}

/// A packet to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Index of the capture in `captures`.
    pub capture: u16,
    /// Number of the packet in that file, from 1.
    pub packet: u64,
    /// When.
    pub time_ns: Timestamp,
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// One of several explanations.
    Low,
    /// The usual explanation.
    Medium,
    /// Seen in the packets themselves.
    High,
}

impl Finding {
    /// The share of the active time that was lost, in parts of one.
    pub fn share(&self) -> Option<f64> {
        let lost = self.lost_ns.filter(|_| self.active_ns.0 > 0)?;
        Some((lost.0 as f64 / self.active_ns.0 as f64).min(1.0))
    }
}
