//! Diagnosis of a `bench` load point. The client may be the bottleneck itself; it can't separate server and network.

use crate::answer::{Answer, Culprit};
use smbscope_model::prose::{prose_percent, span, thousands, unbroken};
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

/// Client lateness explains a response time that is at most this many times as long.
const LATENESS_TIMES: i64 = 2;
/// Wake-up delay of the client's threads from which other programs occupied its processors.
const LATE: Nanos = Nanos(5 * MS);

/// Beginning of the evidence that divides all response times.
pub const SPLIT: &str = "All response times";

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
    pub client_late: Option<ClientLateness>,
    /// Resource without reserve, so that more load only adds waiting.
    pub used_up: Option<LimitingResource>,
    /// Resource that the server waited for most of the time.
    pub waited_for: Option<LimitingResource>,
    pub stall: Option<LongestStall>,
    pub out_of_space: Option<OutOfSpace>,
}

/// Wake-up delay of the client's threads, which response times include.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLateness {
    pub p99: Nanos,
    pub longest: Nanos,
}

/// Commands that failed because the server's disk is full or a quota is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfSpace {
    pub status: String,
    pub failed: u64,
    /// Number of commands, including those that did not fail.
    pub commands: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LimitingResource {
    /// `Client`, `Server`, `Network`, or `Capture` if client and server share the resource.
    pub culprit: Culprit,
    /// Clause such as "its processors were busy 97% of the time".
    pub text: String,
}

impl LimitingResource {
    fn party(&self) -> &'static str {
        if self.culprit == Culprit::Capture { "Client and server" } else { self.culprit.title() }
    }
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
        format!("the server answered nothing {}", self.period())
    }

    fn period(&self) -> String {
        let others = if self.count > 1 { format!(" (the longest of {} stalls)", self.count) } else { String::new() };
        let (duration, after) = (unbroken(self.duration), unbroken(span(self.after)));
        format!("for {duration}, {after} after the start{others}")
    }
}

impl ClientLateness {
    fn clause(self) -> String {
        let pause = unbroken(self.longest);
        if self.p99 <= LATE {
            return format!("it did not run for {pause}, which response times include");
        }
        let pause = if self.longest > LONGEST_UNDER_LOAD { format!(", once {pause}") } else { String::new() };
        format!(
            "other programs kept its processors busy, so its threads woke up to {} late{pause}, which response times \
             include",
            unbroken(self.p99)
        )
    }
}

fn explains(late: Nanos, response_time: Nanos) -> bool {
    late.0.saturating_mul(LATENESS_TIMES) >= response_time.0
}

impl OutOfSpace {
    fn sentences(&self) -> String {
        let OutOfSpace { status, failed, commands } = self;
        let what = if status.contains("QUOTA") { "the user's quota is used up" } else { "its disk is full" };
        format!(
            "{what}: {} of {} commands failed with {status}, and failures count in the figures. Make room on the volume of \
             the share or raise the quota; `smbscope bench clean` removes the files of earlier runs.",
            thousands(*failed),
            thousands(*commands)
        )
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

/// A figure above its limit.
struct ExceededLimit {
    text: String,
    is_explained_by_client: bool,
    is_longest: bool,
}

impl LoadPointFacts {
    pub fn answer(&self) -> Answer {
        let slow = self.exceeded();
        let (culprit, headline) = self.verdict(&slow);
        let listed: Vec<&str> = slow.iter().map(|exceeded| exceeded.text.as_str()).collect();
        let exceeded = (!slow.is_empty()).then(|| format!("Slow: {}.", listed.join("; ")));
        // A delay that is not the verdict is part of all figures.
        let late = self.client_late.filter(|late| late.p99 > LATE && culprit != Culprit::Client);
        let late = late.map(|late| format!("Client delays: {}.", late.clause()));
        let resource = self.used_up.as_ref().filter(|found| !headline.contains(&found.text));
        let resource = resource.map(|found| format!("{}: {}.", found.party(), found.text));
        let evidence = exceeded.into_iter().chain(late).chain(resource).chain(self.split()).collect();
        Answer { culprit, headline, evidence, ..Answer::default() }
    }

    fn verdict(&self, slow: &[ExceededLimit]) -> (Culprit, String) {
        if let Some(full) = &self.out_of_space {
            return (Culprit::Server, format!("Server: {}", full.sentences()));
        }
        if let Some(percent) = self.client_limited {
            let busy = unbroken(format!("{percent:.0}%"));
            let text = format!(
                "its busiest thread was on a processor {busy} of the time, so the figures say nothing about the server"
            );
            return (Culprit::Client, format!("Client: {}.", self.then_stall(&text)));
        }
        let unexplained = || slow.iter().filter(|exceeded| !exceeded.is_explained_by_client);
        let is_explained = unexplained().next().is_none();
        if let Some(late) = self.client_late.filter(|late| is_explained && self.is_client_late(*late, slow)) {
            let text = format!("{}; the figures say little about the server", late.clause());
            return (Culprit::Client, format!("Client: {}.", self.then_stall(&text)));
        }
        if let Some(stall) = self.stall.filter(|_| !is_explained && unexplained().all(|one| one.is_longest)) {
            let text = format!("Server or network: {}; otherwise nothing is slow{}.", stall.clause(), self.times(": "));
            return (Culprit::Capture, text);
        }
        if let Some(found) = if slow.is_empty() { &self.used_up } else { &self.waited_for } {
            let rest = if slow.is_empty() { "more load would only add waiting".to_owned() } else { self.largest() };
            return (found.culprit, format!("{}: {}.", found.party(), self.with_stall(&[&found.text, &rest])));
        }
        match slow.is_empty() {
            true => (Culprit::Nothing, self.nothing()),
            false => (Culprit::Capture, format!("Server or network: {}.", self.with_stall(&[&self.largest()]))),
        }
    }

    /// Returns true if the client's delays explain the slow commands, or a large part of the median. They do not explain a
    /// stall that is longer than the longest delay.
    fn is_client_late(&self, late: ClientLateness, slow: &[ExceededLimit]) -> bool {
        let is_much = late.p99 > LATE && self.median.is_none_or(|median| explains(late.p99, median));
        self.stall.is_none_or(|stall| explains(late.longest, stall.duration)) && (is_much || !slow.is_empty())
    }

    fn nothing(&self) -> String {
        let exception = if self.stall.is_some() { " except for a stall" } else { "" };
        let slowest = format!("the slowest command took {}", unbroken(self.longest));
        let times = self.times("");
        let parts: Vec<&str> =
            Some(times.as_str()).filter(|times| !times.is_empty()).into_iter().chain([slowest.as_str()]).collect();
        format!("{}{exception}: {}.", Culprit::Nothing.title(), self.with_stall(&parts))
    }

    /// Formats `median 283 µs, p95 3.90 ms` after this text, or nothing if there are too few commands.
    fn times(&self, before: &str) -> String {
        let p95 = self.p95.map_or_else(String::new, |p95| format!(", {}", unbroken(format!("p95 {p95}"))));
        self.median.map_or_else(String::new, |median| format!("{before}median {}{p95}", unbroken(median)))
    }

    /// Appends the stall without naming a party.
    fn then_stall(&self, text: &str) -> String {
        let stall =
            self.stall.as_ref().map_or_else(String::new, |stall| format!("; no response came {}", stall.period()));
        format!("{text}{stall}")
    }

    /// Joins clauses, the stall first.
    fn with_stall(&self, clauses: &[&str]) -> String {
        let stall = self.stall.as_ref().map(LongestStall::clause);
        stall.iter().map(String::as_str).chain(clauses.iter().copied()).collect::<Vec<_>>().join("; ")
    }

    fn exceeded(&self) -> Vec<ExceededLimit> {
        let late = self.client_late;
        let groups = self.groups.iter().filter_map(|(group, p95)| {
            let (_, limit) = P95_UNDER_LOAD.iter().find(|(known, _)| known == group)?;
            (p95 > limit).then(|| ExceededLimit {
                text: format!("p95 of {group} {}, above {}", unbroken(p95), unbroken(limit)),
                is_explained_by_client: late.is_some_and(|late| explains(late.p99, *p95)),
                is_longest: false,
            })
        });
        let mut found: Vec<ExceededLimit> = groups.collect();
        if self.longest > LONGEST_UNDER_LOAD {
            let (longest, limit) = (unbroken(self.longest), unbroken(LONGEST_UNDER_LOAD));
            found.push(ExceededLimit {
                text: format!("slowest command {longest}, above {limit}"),
                is_explained_by_client: late.is_some_and(|late| explains(late.longest, self.longest)),
                is_longest: true,
            });
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
                "{SPLIT} {}: request transfer {}, service time {} (server and network, which the client can't \
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

    fn busy() -> Option<LimitingResource> {
        let text = "its processors were busy 97% of the time".to_owned();
        Some(LimitingResource { culprit: Culprit::Server, text })
    }

    fn headline(facts: &LoadPointFacts) -> (Culprit, String) {
        let answer = facts.answer();
        (answer.culprit, answer.headline.replace('\u{a0}', " "))
    }

    #[test]
    fn a_saturated_resource_is_the_answer_whether_or_not_something_is_slow() {
        let mut point = LoadPointFacts { used_up: busy(), waited_for: busy(), ..facts() };
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
        point.stall = Some(LongestStall { duration: Nanos(1_100 * MS), count: 1, ..stall });
        // Neither a little delay of the client nor busy processors explain it.
        point.client_late = Some(ClientLateness { p99: Nanos(8 * MS), longest: Nanos(60 * MS) });
        point.waited_for = busy();
        let expected = "Server or network: the server answered nothing for 1.10 s, 3.20 s after the start; otherwise nothing \
                        is slow: median 1.00 ms, p95 2.00 ms.";
        assert_eq!(headline(&point), (Culprit::Capture, expected.to_owned()));
        point.groups = vec![(CommandGroup::Read, Nanos(21 * MS))];
        let (culprit, text) = headline(&point);
        assert_eq!(culprit, Culprit::Server);
        assert!(
            text.starts_with("Server: the server answered nothing for 1.10 s, 3.20 s after the start; its processors")
        );
        point.client_limited = Some(98.0);
        assert!(headline(&point).1.ends_with("; no response came for 1.10 s, 3.20 s after the start."));
    }

    #[test]
    fn a_client_explains_only_what_its_delays_can_explain() {
        let late = |p99: i64, longest: i64| Some(ClientLateness { p99: Nanos(p99 * MS), longest: Nanos(longest * MS) });
        let mut point = LoadPointFacts { client_late: late(8, 40), ..facts() };
        assert_eq!(point.answer().culprit, Culprit::Client);
        // Delays of 8 ms do not make reads of 95 ms, and are mentioned; delays of 50 ms may.
        point.groups = vec![(CommandGroup::Read, Nanos(95 * MS))];
        let answer = point.answer();
        assert_eq!(answer.culprit, Culprit::Capture);
        assert!(answer.evidence[1].starts_with("Client delays: other programs kept its processors busy"), "{answer:?}");
        point.used_up = busy();
        assert_eq!(point.answer().evidence[2], "Server: its processors were busy 97% of the time.");
        point.client_late = late(50, 60);
        assert_eq!(point.answer().culprit, Culprit::Client);
        // The client was stopped once: that is the longest command, but not the slow reads.
        let mut point = LoadPointFacts { client_late: late(1, 2_990), longest: Nanos(3_000 * MS), ..facts() };
        let expected = "Client: it did not run for 2.99 s, which response times include; the figures say little about the \
                        server.";
        assert_eq!(headline(&point), (Culprit::Client, expected.to_owned()));
        point.groups = vec![(CommandGroup::Read, Nanos(95 * MS))];
        assert_eq!(point.answer().culprit, Culprit::Capture);
        // A stall that is longer than any delay is the server's or the network's.
        let stall = LongestStall { duration: Nanos(412 * MS), after: Nanos(3_200 * MS), count: 1 };
        let point = LoadPointFacts { client_late: late(8, 40), stall: Some(stall), ..facts() };
        assert!(
            headline(&point)
                .1
                .starts_with("Nothing is slow except for a stall: the server answered nothing for 412 ms")
        );
    }

    #[test]
    fn a_full_disk_comes_first_and_says_what_to_do() {
        let full = OutOfSpace { status: "STATUS_DISK_FULL".to_owned(), failed: 643, commands: 70_868 };
        let point = LoadPointFacts { out_of_space: Some(full), client_limited: Some(98.0), used_up: busy(), ..facts() };
        let (culprit, text) = headline(&point);
        assert_eq!(culprit, Culprit::Server);
        let expected = "Server: its disk is full: 643 of 70,868 commands failed with STATUS_DISK_FULL, and failures count in the \
                        figures. Make room on the volume of the share or raise the quota; `smbscope bench clean` removes the files of \
                        earlier runs.";
        assert_eq!(text, expected);
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
