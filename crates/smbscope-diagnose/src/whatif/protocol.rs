//! A newer dialect, and signatures: what they add to each command.
//!
//! A command of SMB1 that names a path becomes an open, the command, and a close: one round trip as a compound, three
//! otherwise. SMB 3.0 and 3.0.2 validate the negotiation of each tree connect (MS-SMB2 3.2.5.5).

use super::Scenario;
use super::graph::{CommandNode, Elsewhere, Graph};
use smbscope_model::offers::{AES_CMAC, AES_GMAC, HMAC_SHA256};
use smbscope_model::{Dialect, Protocol};

/// The value for a duration's lower bound, its best estimate, or its upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Low,
    Best,
    High,
}

impl Bound {
    fn among<T: Copy>(self, [low, best, high]: [T; 3]) -> T {
        match self {
            Bound::Low => low,
            Bound::Best => best,
            Bound::High => high,
        }
    }
}

impl Elsewhere {
    /// Returns additional round trips and additional commands.
    fn additional(self, from: Dialect, to: Dialect, bound: Bound) -> (f64, i64) {
        let validates = |dialect| matches!(dialect, Dialect::Smb2(0x0300 | 0x0302));
        match self {
            Elsewhere::ByPath if from.protocol() == Protocol::Smb1 => (bound.among([0.0, 0.0, 2.0]), 2),
            // The open, the responses with entries and without, and the close.
            Elsewhere::ListsPath if from.protocol() == Protocol::Smb1 => (bound.among([1.0, 2.0, 3.0]), 3),
            Elsewhere::ConnectsTree if validates(to) && !validates(from) => (bound.among([0.0, 1.0, 1.0]), 1),
            _ => (0.0, 0),
        }
    }
}

/// Returns the newest captured dialect, if it is newer than the one to predict.
pub(super) fn newer_dialect(graph: &Graph, scenario: &Scenario) -> Option<Dialect> {
    let to = scenario.dialect?;
    graph.nodes.iter().filter_map(CommandNode::dialect).max().filter(|newest| *newest > to)
}

/// Time that a command takes longer in another dialect.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AdditionalWork {
    pub(super) trips: f64,
    pub(super) server: i64,
}

/// Returns the additional work of each command, or nothing if the dialect stays.
pub(super) fn of_dialect(
    graph: &Graph,
    scenario: &Scenario,
    bound: Bound,
    server_time: impl Fn(&CommandNode) -> i64,
) -> Vec<AdditionalWork> {
    let Some(to) = scenario.dialect else { return Vec::new() };
    let mut opens_and_closes: Vec<i64> =
        graph.nodes.iter().filter(|node| node.opens || node.closes).map(&server_time).collect();
    opens_and_closes.sort_unstable();
    let usual = opens_and_closes.get(opens_and_closes.len() / 2).copied();
    let work = |node: &CommandNode| {
        let from = node.dialect()?;
        let (trips, commands) = node.elsewhere.additional(from, to, bound);
        Some(AdditionalWork { trips, server: commands * usual.unwrap_or_else(|| server_time(node)) })
    };
    graph.nodes.iter().map(|node| work(node).unwrap_or_default()).collect()
}

/// Returns the time in ns per byte that signing a message and checking it take together, from docs/load.md for the
/// best estimate: the difference of the time per byte with and without signatures. The bounds are processors with and
/// without instructions for the algorithm; for AES-GMAC, all have them. An unknown dialect is one of SMB2 or later.
pub(super) fn signing_time(dialect: Option<Dialect>, algorithm: Option<u16>, bound: Bound) -> f64 {
    const MD5: [f64; 3] = [3.0, 9.8, 15.0];
    const HMAC: [f64; 3] = [0.7, 1.4, 8.0];
    const CMAC: [f64; 3] = [0.8, 2.6, 5.0];
    const GMAC: [f64; 3] = [0.1, 0.4, 0.8];
    bound.among(match (dialect, algorithm) {
        (Some(Dialect::Smb2(0x0311)), Some(HMAC_SHA256)) | (Some(Dialect::Local), _) => HMAC,
        (Some(Dialect::Smb2(0x0300 | 0x0302)), _) | (Some(Dialect::Smb2(0x0311)), Some(AES_CMAC)) => CMAC,
        (Some(Dialect::Smb2(0x0311)), Some(AES_GMAC)) => GMAC,
        (Some(Dialect::Smb2(0x0311)), _) => [GMAC[0], GMAC[1], CMAC[1]],
        (Some(Dialect::Smb2(_)), _) => HMAC,
        (Some(_), _) => MD5,
        (None, _) => [GMAC[0], HMAC[1], HMAC[2]],
    })
}
