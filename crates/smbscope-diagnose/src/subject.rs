//! A client that detectors look at, and how its findings are put.

use crate::client::{ClientFacts, Count};
use crate::detect::Context;
use crate::facts::Fact;
use crate::finding::{Confidence, Evidence, Finding, Whose};
use smbscope_model::prose::{clean, counted, prose_percent, span, thousands, unbroken};
use smbscope_model::{Connection, Nanos, Stamp};
use smbscope_stats::{Entity, TimeSplit};
use std::net::IpAddr;
use std::sync::Arc;

/// Longest name of a file in a sentence.
const NAME_MAX: usize = 60;
/// Users that are named.
const USERS_MAX: usize = 8;
/// Fewer opens say nothing of negotiations for each.
const OPENS_LEAST: u64 = 20;

/// A client and everything that is known of it.
pub(crate) struct Subject<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) client: IpAddr,
    pub(crate) facts: &'a ClientFacts,
    pub(crate) connections: Vec<&'a Connection>,
}

impl<'a> Subject<'a> {
    /// Where its time went.
    pub(crate) fn split(&self) -> TimeSplit {
        self.context.aggregate.splits.client(&self.client).copied().unwrap_or_default()
    }

    /// Its response times by group.
    pub(crate) fn times(&self) -> Option<&'a Entity> {
        let clients = &self.context.aggregate.clients.entries;
        clients.iter().find(|(client, _)| *client == self.client).map(|(_, entity)| entity)
    }

    pub(crate) fn threshold(&self, id: &str, name: &str) -> f64 {
        self.context.catalogue.threshold(id, name)
    }

    /// A time from which on something is a finding.
    pub(crate) fn time(&self, id: &str, name: &str) -> Nanos {
        Nanos(self.threshold(id, name) as i64)
    }

    fn users(&self) -> Vec<Arc<str>> {
        let mut users: Vec<Arc<str>> = Vec::new();
        for user in self.connections.iter().flat_map(|connection| &connection.users) {
            if users.len() < USERS_MAX && !users.contains(user) {
                users.push(Arc::clone(user));
            }
        }
        users
    }

    /// A finding about this client: what happened is a sentence without its end, to which the time that it took is added.
    pub(crate) fn finding(&self, id: &str, confidence: Confidence, what: &str, lost: Option<Nanos>) -> Finding {
        let entry = self.context.catalogue.entry(id);
        let active = self.split().active();
        let time = lost.filter(|lost| lost.0 > 0).map_or_else(String::new, |lost| match active.0 {
            0 => format!(": {}", unbroken(span(lost))),
            _ => {
                let lost = lost.min(active);
                let share = prose_percent(lost.0.unsigned_abs(), active.0.unsigned_abs());
                format!(": {} of its {} of active time ({share})", unbroken(span(lost)), unbroken(span(active)))
            }
        });
        Finding {
            id: id.to_owned(),
            title: entry.title.clone(),
            sentence: format!("{} {what}{time}.", self.client),
            whose: Whose { client: Some(self.client.to_string()), users: self.users(), ..Whose::default() },
            lost_ns: lost.map(|lost| if active.0 > 0 { lost.min(active) } else { lost }),
            active_ns: active,
            confidence,
            evidence: Vec::new(),
            wireshark: self.address_filter(),
            advice: entry.advice.clone(),
            source: entry.source.clone(),
            ruled_out: self.ruled_out(),
        }
    }

    /// The same about what was counted, with its first packet as evidence.
    pub(crate) fn finding_on(&self, id: &str, confidence: Confidence, what: &str, count: &Count) -> Finding {
        let mut finding = self.finding(id, confidence, what, Some(Nanos(count.outstanding)));
        if let Some((stamp, path)) = &count.first {
            finding.evidence.push(evidence(*stamp));
            finding.whose.path.clone_from(path);
        }
        finding
    }

    /// `ip.addr == 10.0.0.7`
    fn address_filter(&self) -> String {
        match self.client {
            IpAddr::V4(address) => format!("ip.addr == {address}"),
            IpAddr::V6(address) => format!("ipv6.addr == {address}"),
        }
    }

    /// What is not why this client waits.
    fn ruled_out(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let (negotiations, opens) = (self.facts.count(Fact::Negotiate), self.facts.count(Fact::Open));
        if opens >= OPENS_LEAST && negotiations as f64 <= opens as f64 * self.threshold("negotiate-churn", "share") {
            let opens = counted(opens, "open", "opens");
            sentences.push(match negotiations {
                0 => format!("No NEGOTIATE among {opens}: negotiation is not the cause."),
                n => format!("{} NEGOTIATE for {opens}: negotiation is not the cause.", thousands(n)),
            });
        }
        let (segments, again) = self.segments();
        if segments > 0 && (again as f64) <= segments as f64 * self.threshold("network-loss", "share") {
            sentences.push(match again {
                0 => "No segment was retransmitted: packet loss is not the cause.".to_owned(),
                n => format!(
                    "{} of {} segments retransmitted: packet loss is not the cause.",
                    thousands(n),
                    thousands(segments)
                ),
            });
        }
        sentences
    }

    /// Segments of its connections, and how many of them were retransmitted.
    pub(crate) fn segments(&self) -> (u64, u64) {
        let counts = self.connections.iter().flat_map(|connection| [&connection.to_server, &connection.to_client]);
        counts.fold((0, 0), |(all, again), counts| (all + counts.packets, again + counts.retransmitted))
    }
}

pub(crate) fn evidence(stamp: Stamp) -> Evidence {
    Evidence { capture: stamp.packet.capture().0, packet: stamp.packet.number(), time_ns: stamp.time }
}

/// A path for a sentence: of a long one the end, which tells files apart.
pub(crate) fn named(path: &str) -> String {
    if matches!(path, "" | "\\") {
        return "the share's root".to_owned();
    }
    let path = clean(path);
    match path.chars().count().checked_sub(NAME_MAX) {
        Some(over @ 1..) => format!("…{}", path.chars().skip(over + 1).collect::<String>()),
        _ => path,
    }
}

/// A share in percent for a sentence.
pub(crate) fn percent(share: f64) -> String {
    prose_percent((share * 1e6).round() as u64, 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_path_the_file_is_named() {
        let long = format!("{}\\settings.ini", "d".repeat(60));
        let name = named(&long);
        assert!(name.starts_with("…ddd") && name.ends_with("\\settings.ini"), "{name}");
        assert_eq!(name.chars().count(), NAME_MAX);
        let fits = "d".repeat(NAME_MAX);
        assert_eq!([named(&fits), named("\\")], [fits.clone(), "the share's root".to_owned()]);
    }
}
