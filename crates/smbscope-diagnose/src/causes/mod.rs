//! Detectors of all causes and their registry.
//!
//! A detector is a [`Detector`] constant with its texts, thresholds and sources, followed by its function. Detectors
//! of related causes share a file, which lists them at its top. [`DETECTORS`] has all of them; [`detect`] runs them.

mod availability;
mod configuration;
mod files;
mod round_trips;
mod server;
mod sessions;
mod sharing;
mod tcp;

pub(crate) use availability::request;

use crate::answer::{Cause, Confidence, Culprit, Evidence, LostTime, Subject};
use crate::catalogue::{self, Catalogue, CauseDefinition};
use crate::facts::{Count, DiagnosisFacts, Pair, PathFacts, PathKey};
use smbscope_model::{Nanos, Stamp};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};

pub(crate) struct Detector {
    pub(crate) id: &'static str,
    pub(crate) culprit: Culprit,
    pub(crate) title: &'static str,
    pub(crate) condition: &'static str,
    pub(crate) advice: &'static str,
    pub(crate) source: &'static str,
    pub(crate) thresholds: &'static [(&'static str, &'static str)],
    /// More general causes that this one replaces if it explains the same seconds.
    pub(crate) covers: &'static [&'static str],
    pub(crate) detect: Detect,
}

pub(crate) enum Detect {
    Pair(fn(&Pair<'_>) -> Option<Finding>),
    Path(fn(&Pair<'_>, &PathKey, &PathFacts) -> Option<Finding>),
    Peer(fn(&DiagnosisFacts<'_>, &Pair<'_>) -> Option<Finding>),
    Server(fn(&DiagnosisFacts<'_>, SocketAddr) -> Option<Finding>),
    All(fn(&DiagnosisFacts<'_>) -> Vec<Finding>),
}

#[derive(Debug, Clone)]
pub(crate) struct Finding {
    what: String,
    confidence: Confidence,
    lost: Option<LostTime>,
    longest: Option<Nanos>,
    evidence: Vec<Stamp>,
    share: Option<Arc<str>>,
    path: Option<Arc<str>>,
    filter: String,
    culprit: Option<Culprit>,
    advice: Option<&'static str>,
    sufferers: Sufferers,
    /// The lost time is outside the active time: nothing was outstanding, or only an expected wait.
    outside: bool,
    failed: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Sufferers {
    pub(crate) client: Option<String>,
    pub(crate) clients: u64,
    pub(crate) server: Option<SocketAddr>,
    pub(crate) active: Nanos,
    pub(crate) waited: Nanos,
}

impl Sufferers {
    pub(crate) fn one(client: IpAddr, server: SocketAddr) -> Sufferers {
        Sufferers { client: Some(client.to_string()), clients: 1, server: Some(server), ..Sufferers::default() }
    }

    pub(crate) fn of_server(facts: &DiagnosisFacts<'_>, server: SocketAddr, clients: &BTreeSet<IpAddr>) -> Sufferers {
        let of_clients = || clients.iter().filter_map(|client| facts.of_client(*client));
        let sum =
            |time: fn(&Pair<'_>) -> Nanos| Nanos(of_clients().map(|pair| time(pair).0).fold(0, i64::saturating_add));
        Sufferers {
            client: clients.first().filter(|_| clients.len() == 1).map(ToString::to_string),
            clients: clients.len() as u64,
            server: Some(server),
            active: sum(|pair| pair.whole.active),
            waited: sum(|pair| pair.whole.waited),
        }
    }
}

impl Finding {
    /// Creates a finding. `what` is a sentence without its full stop.
    pub(crate) fn new(confidence: Confidence, what: String) -> Finding {
        Finding {
            what,
            confidence,
            lost: None,
            longest: None,
            evidence: Vec::new(),
            share: None,
            path: None,
            filter: String::new(),
            culprit: None,
            advice: None,
            sufferers: Sufferers::default(),
            outside: false,
            failed: false,
        }
    }

    pub(crate) fn failed(self) -> Finding {
        Finding { failed: true, ..self }
    }

    pub(crate) fn lost(self, lost: LostTime) -> Finding {
        Finding { lost: Some(lost), ..self }
    }

    /// Sets the longest part of the lost time, which makes the finding an event.
    pub(crate) fn longest(self, longest: Nanos) -> Finding {
        Finding { longest: Some(longest), ..self }
    }

    pub(crate) fn from(mut self, stamp: Option<Stamp>) -> Finding {
        self.evidence.extend(stamp);
        self
    }

    pub(crate) fn first_of(self, count: &Count) -> Finding {
        self.from(count.first.as_ref().map(|(stamp, _)| *stamp))
    }

    pub(crate) fn on(self, share: &Option<Arc<str>>, path: &Option<Arc<str>>) -> Finding {
        Finding { share: share.clone(), path: path.clone(), ..self }
    }

    pub(crate) fn filter(self, condition: &str) -> Finding {
        Finding { filter: format!("{}{condition}", self.filter), ..self }
    }

    pub(crate) fn culprit(self, culprit: Culprit) -> Finding {
        Finding { culprit: Some(culprit), ..self }
    }

    pub(crate) fn advice(self, advice: &'static str) -> Finding {
        Finding { advice: Some(advice), ..self }
    }

    pub(crate) fn about(self, sufferers: Sufferers) -> Finding {
        Finding { sufferers, ..self }
    }

    pub(crate) fn outside(self) -> Finding {
        Finding { outside: true, ..self }
    }

    fn into_cause_of_its_own(self, detector: &Detector, facts: &DiagnosisFacts<'_>) -> Cause {
        let Sufferers { client, clients, server, .. } = &self.sufferers;
        let client = client.as_ref().filter(|_| *clients <= 1).and_then(|client| client.parse().ok());
        let pair = client.zip(*server).and_then(|(client, server)| facts.pair(client, server));
        self.into_cause(detector, pair)
    }

    fn into_cause(self, detector: &Detector, pair: Option<&Pair<'_>>) -> Cause {
        let Sufferers { client, clients, server, active, waited } = self.sufferers;
        let lost = self.lost.map_or(Nanos(0), |lost| lost.high);
        let add = |time: Nanos| if self.outside { Nanos(time.0.saturating_add(lost.0)) } else { time };
        let subject = Subject {
            client: client.or(pair.map(|pair| pair.client.to_string())),
            clients: if clients > 0 { clients } else { u64::from(pair.is_some()) },
            server: server.or(pair.map(|pair| pair.server)).map(|server| server.to_string()),
            users: pair.map(|pair| pair.users()).unwrap_or_default(),
            share: self.share,
            path: self.path,
        };
        let address = pair.map_or_else(
            || server.map_or_else(|| "smb || smb2".to_owned(), |server| crate::facts::address_filter(server.ip())),
            |pair| pair.address_filter(),
        );
        Cause {
            id: detector.id.to_owned(),
            culprit: self.culprit.unwrap_or(detector.culprit),
            title: detector.title.to_owned(),
            sentence: format!("{}.", self.what),
            cost: String::new(),
            subject,
            lost_ns: self.lost,
            active_ns: add(pair.map_or(active, |pair| pair.whole.active)),
            share: None,
            confidence: self.confidence,
            evidence: self.evidence.into_iter().map(evidence).collect(),
            wireshark: format!("{address}{}", self.filter),
            advice: self.advice.unwrap_or(detector.advice).to_owned(),
            source: detector.source.to_owned(),
            also: Vec::new(),
            longest: self.longest,
            failed: self.failed,
            waited: add(pair.map_or(waited, |pair| pair.whole.waited)),
        }
        .settle()
    }
}

fn evidence(stamp: Stamp) -> Evidence {
    Evidence { capture: stamp.packet.capture().0, packet: stamp.packet.number(), time_ns: stamp.time }
}

impl Default for Catalogue {
    fn default() -> Catalogue {
        Catalogue::new(DETECTORS.iter().map(|detector| {
            let definition = CauseDefinition {
                culprit: detector.culprit,
                title: detector.title,
                condition: detector.condition,
                advice: detector.advice,
                source: detector.source,
                thresholds: catalogue::built_in(detector.thresholds),
            };
            (detector.id, definition)
        }))
    }
}

pub(crate) fn detect(facts: &DiagnosisFacts<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    for detector in DETECTORS.iter().copied() {
        let of_pairs = |detect: &dyn Fn(&Pair<'_>) -> Option<Cause>| facts.pairs.iter().filter_map(detect).collect();
        let found: Vec<Cause> = match detector.detect {
            Detect::Pair(detect) => of_pairs(&|pair| Some(detect(pair)?.into_cause(detector, Some(pair)))),
            Detect::Peer(detect) => of_pairs(&|pair| Some(detect(facts, pair)?.into_cause(detector, Some(pair)))),
            Detect::Path(detect) => of_pairs(&|pair| {
                let found = pair.paths.iter().filter_map(|(key, path)| {
                    let found = detect(pair, key, path)?.on(&key.share, &Some(key.path.clone())).from(path.first);
                    Some(found.filter(&path_filter(&key.path)).into_cause(detector, Some(pair)))
                });
                worst_of(found.collect())
            }),
            Detect::Server(detect) => facts
                .servers()
                .into_iter()
                .filter_map(|server| Some(detect(facts, server)?.into_cause_of_its_own(detector, facts)))
                .collect(),
            Detect::All(detect) => {
                detect(facts).into_iter().map(|found| found.into_cause_of_its_own(detector, facts)).collect()
            }
        };
        causes.extend(found);
    }
    causes
}

/// Returns the most expensive of several paths. Its sentence counts the others, its cost includes them.
fn worst_of(mut found: Vec<Cause>) -> Option<Cause> {
    found.sort_by(|a, b| b.best().cmp(&a.best()).then_with(|| a.subject.path.cmp(&b.subject.path)));
    let others = found.len().saturating_sub(1);
    let rest = found.iter().skip(1).filter_map(|cause| cause.lost_ns).fold(LostTime::default(), LostTime::plus);
    let mut worst = found.into_iter().next()?;
    if others > 0 {
        let paths = smbscope_model::prose::counted(others as u64, "other path", "other paths");
        worst.sentence += &format!(" So it did with {paths}.");
        worst.lost_ns = worst.lost_ns.map(|lost| lost.plus(rest));
    }
    Some(worst.settle())
}

fn path_filter(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    let path = path.replace('\\', r"\\").replace('"', "\\\"");
    format!(" && (smb2.filename == \"{path}\" || smb.file == \"{path}\")")
}

pub(crate) fn detector(id: &str) -> Option<&'static Detector> {
    DETECTORS.iter().copied().find(|detector| detector.id == id)
}

/// All detectors, in the order of the files and their lists, but each before the more general ones that it covers. Those
/// that cover each other, directly or through others, so that the costlier one is told, stay in the order of their list.
pub(crate) static DETECTORS: LazyLock<Vec<&'static Detector>> = LazyLock::new(|| {
    let files = [
        availability::DETECTORS,
        sharing::DETECTORS,
        sessions::DETECTORS,
        files::DETECTORS,
        tcp::DETECTORS,
        server::DETECTORS,
        round_trips::DETECTORS,
        configuration::DETECTORS,
    ];
    let all = files.concat();
    let mut ordered = Vec::with_capacity(all.len());
    all.iter().for_each(|detector| add_after_specific(detector, &all, &mut ordered));
    ordered
});

fn add_after_specific(detector: &'static Detector, all: &[&'static Detector], ordered: &mut Vec<&'static Detector>) {
    if ordered.iter().any(|known| known.id == detector.id) {
        return;
    }
    let specific = all
        .iter()
        .filter(|other| other.covers.contains(&detector.id) && !leads_to(detector, other.id, all, &mut Vec::new()));
    specific.for_each(|other| add_after_specific(other, all, ordered));
    ordered.push(detector);
}

/// Returns true if a detector covers another, directly or through others.
fn leads_to(from: &'static Detector, to: &str, all: &[&'static Detector], seen: &mut Vec<&'static str>) -> bool {
    if from.covers.contains(&to) {
        return true;
    }
    seen.push(from.id);
    all.iter().any(|next| from.covers.contains(&next.id) && !seen.contains(&next.id) && leads_to(next, to, all, seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_comes_before_those_it_covers_unless_they_cover_it_too() {
        let place = |id: &str| DETECTORS.iter().position(|detector| detector.id == id);
        for detector in DETECTORS.iter() {
            for covered in detector.covers {
                let other = super::detector(covered).expect("a cause covers only causes that exist");
                let is_mutual = leads_to(other, detector.id, &DETECTORS, &mut Vec::new());
                assert!(is_mutual || place(detector.id) < place(covered), "{} covers {covered}", detector.id);
            }
        }
    }
}
