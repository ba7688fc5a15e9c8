//! Diagnosis of a `bench` load point. The client may be the bottleneck itself; it can't separate server and network.

use crate::answer::{Answer, Culprit};
use smbscope_model::prose::{prose_percent, span, unbroken};
use smbscope_model::{CommandGroup, Nanos};

const MS: i64 = 1_000_000;

/// Limits for the 95th percentile by group. At 20 ms, the 50 sequential commands of opening a folder take a second.
/// Listings return many names, logons are rare, and control codes do work of their own.
pub const P95_UNDER_LOAD: [(CommandGroup, Nanos); 8] = [
    (CommandGroup::OpenClose, Nanos(20 * MS)),
    (CommandGroup::Attributes, Nanos(20 * MS)),
    (CommandGroup::Directory, Nanos(50 * MS)),
    (CommandGroup::Locking, Nanos(20 * MS)),
    (CommandGroup::Read, Nanos(20 * MS)),
    (CommandGroup::Write, Nanos(20 * MS)),
    (CommandGroup::Session, Nanos(500 * MS)),
    (CommandGroup::Control, Nanos(100 * MS)),
];
/// Limit for a single command (Miller, AFIPS 1968).
pub const LONGEST_UNDER_LOAD: Nanos = Nanos(1_000 * MS);

#[derive(Debug, Clone, Default)]
pub struct LoadPointFacts {
    pub median: Option<Nanos>,
    pub p95: Option<Nanos>,
    pub longest: Nanos,
    pub groups: Vec<(CommandGroup, Nanos)>,
    pub request_transfer: Nanos,
    pub service: Nanos,
    pub response_transfer: Nanos,
    /// CPU use of the busiest client thread in percent. Present if it limited the load.
    pub client_limited: Option<f64>,
    /// Resource that was used up.
    pub saturation: Option<Saturation>,
    pub stall: Option<LongestStall>,
}

/// Resource without reserve, so that more load only adds waiting.
#[derive(Debug, Clone, PartialEq)]
pub struct Saturation {
    /// `Client`, `Server`, `Network`, or `Capture` if client and server share the resource.
    pub culprit: Culprit,
    /// Clause such as "its processors were busy 97% of the time".
    pub text: String,
}

/// Longest period with commands outstanding and no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongestStall {
    pub duration: Nanos,
    /// Time from the start of the measurement.
    pub after: Nanos,
    /// Number of stalls.
    pub count: usize,
}

impl LongestStall {
    /// Formats `the server answered nothing for 2.10 s, 4.02 s after the start (the longest of 3 stalls)`.
    fn clause(&self) -> String {
        let others = if self.count > 1 { format!(" (the longest of {} stalls)", self.count) } else { String::new() };
        let (duration, after) = (unbroken(self.duration), unbroken(span(self.after)));
        format!("the server answered nothing for {duration}, {after} after the start{others}")
    }
}

/// Party responsible for a program's launch time: none within [`LONGEST_UNDER_LOAD`], the application if waits for the
/// server took less than half of it. Only a capture can separate server and network.
pub fn whose_launch(elapsed: Nanos, waited: Option<Nanos>) -> Culprit {
    match waited {
        _ if elapsed <= LONGEST_UNDER_LOAD => Culprit::Nothing,
        Some(waited) if waited.0.saturating_mul(2) < elapsed.0 => Culprit::Application,
        _ => Culprit::Capture,
    }
}

impl LoadPointFacts {
    pub fn answer(&self) -> Answer {
        let slow = self.exceeded();
        let (culprit, headline) = match (self.client_limited, &self.saturation) {
            (Some(percent), _) => {
                let busy = unbroken(format!("{percent:.0}%"));
                let headline = format!(
                    "Client: its busiest thread was on a processor {busy} of the time, so the figures say nothing about the server."
                );
                (Culprit::Client, headline)
            }
            (None, Some(found)) => {
                let party = if found.culprit == Culprit::Capture { "Client and server" } else { found.culprit.title() };
                let rest = match found.culprit {
                    Culprit::Client => "the figures say little about the server".to_owned(),
                    _ if slow.is_empty() => "more load would only add waiting".to_owned(),
                    _ => self.largest(),
                };
                (found.culprit, format!("{party}: {}.", self.with_stall(&[&found.text, &rest])))
            }
            (None, None) if slow.is_empty() => (Culprit::Nothing, self.nothing()),
            (None, None) => (Culprit::Capture, format!("Server or network: {}.", self.with_stall(&[&self.largest()]))),
        };
        let exceeded = (!slow.is_empty()).then(|| format!("Slow: {}.", slow.join("; ")));
        let evidence = exceeded.into_iter().chain(self.split()).collect();
        Answer { culprit, headline, evidence, ..Answer::default() }
    }

    fn nothing(&self) -> String {
        let p95 = self.p95.map_or_else(String::new, |p95| format!(", {}", unbroken(format!("p95 {p95}"))));
        let median = self.median.map(|median| format!("median {}{p95}", unbroken(median)));
        let slowest = format!("the slowest command took {}", unbroken(self.longest));
        let parts: Vec<&str> = median.iter().map(String::as_str).chain([slowest.as_str()]).collect();
        let exception = if self.stall.is_some() { " except for a stall" } else { "" };
        format!("{}{exception}: {}.", Culprit::Nothing.title(), self.with_stall(&parts))
    }

    /// Joins clauses, the stall first.
    fn with_stall(&self, clauses: &[&str]) -> String {
        let stall = self.stall.as_ref().map(LongestStall::clause);
        stall.iter().map(String::as_str).chain(clauses.iter().copied()).collect::<Vec<_>>().join("; ")
    }

    fn exceeded(&self) -> Vec<String> {
        let groups = self.groups.iter().filter_map(|(group, p95)| {
            let (_, limit) = P95_UNDER_LOAD.iter().find(|(known, _)| known == group)?;
            (p95 > limit).then(|| format!("p95 of {group} {}, above {}", unbroken(p95), unbroken(limit)))
        });
        let mut found: Vec<String> = groups.collect();
        if self.longest > LONGEST_UNDER_LOAD {
            found.push(format!("slowest command {}, above {}", unbroken(self.longest), unbroken(LONGEST_UNDER_LOAD)));
        }
        found
    }

    fn whole(&self) -> Nanos {
        Nanos(self.request_transfer.0.saturating_add(self.service.0).saturating_add(self.response_transfer.0))
    }

    fn share(&self, part: Nanos) -> String {
        unbroken(prose_percent(part.0.unsigned_abs(), self.whole().0.unsigned_abs()))
    }

    fn largest(&self) -> String {
        let transfers = Nanos(self.request_transfer.0.saturating_add(self.response_transfer.0));
        let (name, part) =
            if transfers > self.service { ("transfers", transfers) } else { ("service time", self.service) };
        match self.whole().0 {
            0 => "the client can't separate them".to_owned(),
            _ => format!("{name} took {} of all response times ({})", self.share(part), unbroken(span(self.whole()))),
        }
    }

    fn split(&self) -> Option<String> {
        (self.whole().0 > 0).then(|| {
            format!(
                "All response times {}: request transfer {}, service time {} (server and network, which the client can't \
                 separate), response transfer {}.",
                unbroken(span(self.whole())),
                self.share(self.request_transfer),
                self.share(self.service),
                self.share(self.response_transfer),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> LoadPointFacts {
        let (service, longest) = (Nanos(900 * MS), Nanos(30 * MS));
        LoadPointFacts {
            median: Some(Nanos(MS)),
            p95: Some(Nanos(2 * MS)),
            longest,
            service,
            ..LoadPointFacts::default()
        }
    }

    fn headline(facts: &LoadPointFacts) -> (Culprit, String) {
        let answer = facts.answer();
        (answer.culprit, answer.headline.replace('\u{a0}', " "))
    }

    #[test]
    fn a_saturated_resource_is_the_answer_whether_or_not_something_is_slow() {
        let text = "its processors were busy 97% of the time".to_owned();
        let saturation = Some(Saturation { culprit: Culprit::Server, text });
        let mut point = LoadPointFacts { saturation, ..facts() };
        let expected = "Server: its processors were busy 97% of the time; more load would only add waiting.";
        assert_eq!(headline(&point), (Culprit::Server, expected.to_owned()));
        point.groups = vec![(CommandGroup::Read, Nanos(21 * MS))];
        let expected = "Server: its processors were busy 97% of the time; service time took 100% of all response times \
                        (900 ms).";
        assert_eq!(headline(&point), (Culprit::Server, expected.to_owned()));
        point.client_limited = Some(98.0);
        assert_eq!(point.answer().culprit, Culprit::Client);
    }

    #[test]
    fn a_stall_is_named_in_the_verdict_with_its_time_and_length() {
        let stall = LongestStall { duration: Nanos(412 * MS), after: Nanos(3_200 * MS), count: 2 };
        let mut point = LoadPointFacts { stall: Some(stall), ..facts() };
        let expected = "Nothing is slow except for a stall: the server answered nothing for 412 ms, 3.20 s after the start \
                        (the longest of 2 stalls); median 1.00 ms, p95 2.00 ms; the slowest command took 30.0 ms.";
        assert_eq!(headline(&point), (Culprit::Nothing, expected.to_owned()));
        point.longest = Nanos(1_200 * MS);
        let (culprit, text) = headline(&point);
        assert_eq!(culprit, Culprit::Capture);
        assert!(text.starts_with("Server or network: the server answered nothing for 412 ms, 3.20 s after"), "{text}");
    }

    #[test]
    fn a_launch_is_the_programs_own_time_until_half_of_it_is_waits() {
        let of = |elapsed: i64, waited: Option<i64>| whose_launch(Nanos(elapsed * MS), waited.map(|ms| Nanos(ms * MS)));
        assert_eq!(of(1_000, Some(900)), Culprit::Nothing);
        assert_eq!(of(1_001, Some(500)), Culprit::Application);
        assert_eq!(of(1_001, Some(501)), Culprit::Capture);
        assert_eq!(of(1_001, None), Culprit::Capture);
    }
}
