//! What to look at next: commands filled in for the captures at hand, to paste.

use super::Who;
use super::judge::{Judged, Judgement, Reason, Whom};
use crate::Report;
use crate::next::{self, Next, file, quoted};
use smbscope_model::{Group, Nanos};

/// Captures named in a command; where there are more, a placeholder stands for them.
const NAMED_MAX: usize = 4;
/// Bins in which a time line shows a capture, about.
const BINS: i64 = 20;

/// At most two.
pub(super) fn steps(report: &Report, who: Who, judgement: &Judgement<'_>, worst: Option<&Judged<'_>>) -> Vec<Next> {
    let whole = &judgement.whole;
    let about = worst.unwrap_or(whole);
    let clients = judgement.clients.len();
    let filter = condition(report, about);
    let step = |label: &str, filter: Option<&str>, options: &str| Next::new(label, command(report, filter, options));
    let files = || match report.aggregate.files.entries.is_empty() {
        true => step("commands", filter.as_deref(), "--by command"),
        false => step("files", filter.as_deref(), "--by file"),
    };
    let when = || step("when", filter.as_deref(), &format!("--interval {}", interval(report)));
    let whose = || match (judgement.servers.len(), clients) {
        (2.., _) if !matches!(about.whom, Whom::Server(_)) => step("servers", filter.as_deref(), "--by server"),
        (_, 2..) if !matches!(about.whom, Whom::Client(_)) => step("clients", filter.as_deref(), "--by client"),
        _ => when(),
    };
    match who {
        Who::Server | Who::Unknown if worst.is_some() => vec![files(), whose()],
        Who::Network => vec![step("clients", None, "--full"), when()],
        Who::Client => {
            vec![step("files", None, "--by file --sort count"), step("users", None, "--by user,command")]
        }
        Who::Nothing => vec![files(), step("baseline", None, "-o baseline.json")],
        Who::Server | Who::Waiting | Who::Idle | Who::Unknown => Vec::new(),
    }
}

/// Which commands a headline is about, as a filter.
fn condition(report: &Report, about: &Judged<'_>) -> Option<String> {
    let subject = match about.whom {
        Whom::Whole => None,
        Whom::Server(server) => Some(format!("server == {server}")),
        Whom::Client(client) => Some(format!("client == {client}")),
    };
    let slow = match &about.stall {
        Some(stall) => Some(longer_than(Nanos(stall.length.0 / 2))),
        None if about.only_single() && about.is_slow() => Some(longer_than(report.slow.longest)),
        None => slowest_group(about).map(|group| format!("group == {}", group.name())),
    };
    let conditions: Vec<String> = [subject, slow].into_iter().flatten().collect();
    (!conditions.is_empty()).then(|| conditions.join(" and "))
}

fn longer_than(time: Nanos) -> String {
    format!("response_time > {}", next::time(time))
}

/// The group that exceeds its threshold by the largest factor.
fn slowest_group(about: &Judged<'_>) -> Option<Group> {
    let exceeded = about.reasons.iter().filter_map(|reason| match reason {
        Reason::P95 { group, p95, threshold } => Some((*group, p95.0 as f64 / threshold.0.max(1) as f64)),
        _ => None,
    });
    exceeded.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(group, _)| group)
}

/// The width of bins that makes a readable time line.
fn interval(report: &Report) -> &'static str {
    const WIDTHS: [(&str, i64); 8] = [
        ("10ms", 10),
        ("100ms", 100),
        ("1s", 1_000),
        ("10s", 10_000),
        ("1min", 60_000),
        ("10min", 600_000),
        ("1h", 3_600_000),
        ("1d", 86_400_000),
    ];
    let elapsed = report.aggregate.elapsed().unwrap_or_default().0 / 1_000_000;
    WIDTHS.iter().find(|(_, width)| width * BINS * 3 >= elapsed).unwrap_or(&WIDTHS[WIDTHS.len() - 1]).0
}

/// `smbscope analyze --filter '…' --by file capture.pcap`, with what chose the commands of the report itself.
fn command(report: &Report, filter: Option<&str>, options: &str) -> String {
    let mut words = vec!["smbscope analyze".to_owned()];
    let given = report.filter.as_ref().map(|filter| filter.expression.as_str());
    let filter = match (given, filter) {
        (Some(given), Some(more)) if !given.contains(more) => Some(format!("({given}) and {more}")),
        (given, more) => given.or(more).map(str::to_owned),
    };
    words.extend(filter.map(|filter| format!("--filter {}", quoted(&filter))));
    if report.slow != Default::default() {
        words.push(format!("--slow {}", quoted(&report.slow.to_string().replace([' ', '\u{a0}'], ""))));
    }
    words.push(options.to_owned());
    words.push(files(report));
    words.join(" ")
}

/// The captures by their names, where a line holds them and a shell takes them.
fn files(report: &Report) -> String {
    let captures = &report.captures;
    let names: Option<Vec<String>> = captures.iter().map(|capture| file(&capture.name)).collect();
    match names {
        Some(names) if (1..=NAMED_MAX).contains(&names.len()) => names.join(" "),
        _ => "FILE".to_owned(),
    }
}
