//! The verdict's sentences.

use super::judge::{Judged, Judgement, Reason, Whom, servers_of};
use super::stall::Stall;
use super::work::Work;
use super::{SlowSubject, Subject, Who, waits};
use crate::format::{clean, counted, date, median_and_p95, prose_percent, shorten, span, unbroken};
use crate::load::Load;
use crate::{Report, dialects, names};
use smbscope_model::{Command, Exchange, Nanos, TimeKind};
use smbscope_stats::{CommandRow, TimePart, TimeSplit};

/// Longest name of a file in a sentence.
const NAME_MAX: usize = 60;
/// What a person takes for instantaneous (Miller, "Response time in man-computer conversational transactions", AFIPS 1968).
const NOTICED: Nanos = Nanos(100_000_000);
/// Share of all segments that were retransmitted from which on they are mentioned, in thousandths.
const LOSS_PER_MILLE: u64 = 1;

/// The answer in a sentence.
pub(super) fn headline(report: &Report, who: Who, judgement: &Judgement<'_>, worst: Option<&Judged<'_>>) -> String {
    let whole = &judgement.whole.work;
    match (who, worst) {
        (_, Some(worst)) => slow_headline(report, who, worst),
        (Who::Client, None) => format!(
            "Client-bound: the {} idle between requests {} of the active time; server and network answered fast.",
            if report.aggregate.splits.clients.len() == 1 { "client was" } else { "clients were" },
            share(whole.client, whole.active()),
        ),
        (Who::Waiting, None) => {
            "Nobody waited: all waits are expected ones, such as for change notifications.".to_owned()
        }
        (Who::Idle, None) => "Nobody waited: no command was outstanding.".to_owned(),
        (Who::Unknown, None) if report.aggregate.count == 0 => {
            "The capture does not tell: no command could be read.".to_owned()
        }
        (Who::Unknown, None) => {
            "The capture does not tell: too many commands were not captured from end to end.".to_owned()
        }
        (Who::Nothing | Who::Server | Who::Network, None) => nothing_slow(report, judgement),
    }
}

/// `Nothing here is slow: median 59 µs, p95 310 µs; the longest command took 1.2 ms.`
fn nothing_slow(report: &Report, judgement: &Judgement<'_>) -> String {
    let times = &judgement.whole.times;
    let Some(max) = times.max else {
        let (waited, active) = (judgement.whole.work.waited(), judgement.whole.work.active());
        return format!(
            "Nothing here is slow: clients waited {} of {}.",
            unbroken(span(waited)),
            unbroken(span(active))
        );
    };
    match report.aggregate.total.timed {
        1 => format!("Nothing here is slow: the only command took {}.", unbroken(max)),
        _ => format!(
            "Nothing here is slow: {}; the longest command took {}.",
            median_and_p95(times).unwrap_or_default(),
            unbroken(max)
        ),
    }
}

fn slow_headline(report: &Report, who: Who, worst: &Judged<'_>) -> String {
    let bound = match who {
        Who::Server => "Server-bound",
        Who::Network => "Network-bound",
        _ => "Server- or network-bound",
    };
    format!("{bound}: {}.", slow_clause(report, who, worst))
}

fn slow_clause(report: &Report, who: Who, worst: &Judged<'_>) -> String {
    let server = match worst.whom {
        Whom::Server(server) => server.to_string(),
        _ => "the server".to_owned(),
    };
    let of_client = match worst.whom {
        Whom::Client(client) => format!(" of client {client}"),
        _ => String::new(),
    };
    if let Some(stall) = &worst.stall {
        let (commands, length) = (counted(stall.commands, "command", "commands"), unbroken(span(stall.length)));
        return match who {
            Who::Network => format!("{commands}{of_client} waited {length} for lost packets to be retransmitted"),
            _ => format!("{server} kept {commands}{of_client} waiting for {length}"),
        };
    }
    let waits = waits(report, worst);
    let (whose, part) = match who {
        Who::Server => (server, waits.server),
        Who::Network => match worst.whom {
            Whom::Server(server) => (format!("the network to {server}"), waits.network),
            _ => ("the network".to_owned(), waits.network),
        },
        _ => (String::new(), Nanos(0)),
    };
    let accounts = |of: &str| match who {
        Who::Server | Who::Network => format!("{whose} accounts for {} of {of}", share(part, waits.waited())),
        _ => format!("the round trip is unknown, so {of} cannot be divided"),
    };
    if worst.only_single() {
        let long: Vec<&Exchange> = long_commands(report, worst.whom).collect();
        let at = match worst.whom {
            Whom::Server(server) if who != Who::Server => format!(" to {server}"),
            _ => of_client,
        };
        let longest = unbroken(worst.times.max.unwrap_or_default());
        return match long.len() {
            0 | 1 => format!("1 command{at} took {longest}; {}", accounts("it")),
            n => format!(
                "{n} commands{at} took longer than {}, the longest {longest}; {}",
                unbroken(report.slow.longest),
                accounts("their wait"),
            ),
        };
    }
    let total = unbroken(span(worst.work.waited()));
    match worst.whom {
        Whom::Whole => accounts(&format!("the total wait ({total})")),
        Whom::Server(_) => accounts(&format!("the wait of its clients ({total})")),
        Whom::Client(client) => format!(
            "client {client} waited {} of its active time ({total}); {}",
            share(worst.work.waited(), worst.work.active()),
            accounts("that"),
        ),
    }
}

/// Whether a single command is slow by itself.
pub(super) fn is_long(report: &Report, exchange: &Exchange) -> bool {
    exchange.group.in_headline() && exchange.time(TimeKind::ResponseTime) > Some(report.slow.longest)
}

/// Those of somebody among the slowest.
fn long_commands(report: &Report, whom: Whom) -> impl Iterator<Item = &Exchange> {
    let slowest = report.aggregate.slowest.iter();
    slowest.filter(move |exchange| whom.includes(exchange) && is_long(report, exchange))
}

/// The server or client; none of the whole.
pub(super) fn subject(whom: Whom) -> Option<Subject> {
    match whom {
        Whom::Whole => None,
        Whom::Server(server) => Some(Subject::Server(server.to_string())),
        Whom::Client(client) => Some(Subject::Client(client.to_string())),
    }
}

pub(super) fn slow_subject(report: &Report, judged: &Judged<'_>, who: Who) -> Option<SlowSubject> {
    Some(SlowSubject {
        subject: subject(judged.whom)?,
        who,
        waited_ns: judged.work.waited(),
        active_ns: judged.work.active(),
        reasons: reasons(report, judged),
    })
}

/// `p95 of Read 45.2 ms, above 20.0 ms`.
fn reasons(report: &Report, judged: &Judged<'_>) -> Vec<String> {
    let stall = judged.stall.as_ref().map(|stall| {
        let commands = counted(stall.commands, "command", "commands");
        format!("{commands} held up for {}", unbroken(span(stall.length)))
    });
    let thresholds = judged.reasons.iter().map(|reason| match reason {
        Reason::P95 { group, p95, threshold } => {
            format!("p95 of {group} {}, above {}", unbroken(p95), unbroken(threshold))
        }
        Reason::Longest { time } => {
            format!("longest command {}, above {}", unbroken(time), unbroken(report.slow.longest))
        }
        Reason::Share { waited, active } => format!(
            "waited {} of its active time, at least {}",
            share(*waited, *active),
            unbroken(format!("{}%", report.slow.share)),
        ),
    });
    stall.into_iter().chain(thresholds).collect()
}

/// What supports the answer.
pub(super) fn sentences(
    report: &Report,
    who: Who,
    judgement: &Judgement<'_>,
    worst: Option<&Judged<'_>>,
) -> Vec<String> {
    let mut sentences = Vec::new();
    let about = worst.unwrap_or(&judgement.whole);
    let stall = about.stall.as_ref();
    sentences.extend(stall.map(kept_waiting));
    let reasons = reasons(report, about);
    if stall.is_none() && !reasons.is_empty() {
        sentences.push(format!("Slow: {}.", reasons.join("; ")));
    }
    // First where it is the cause.
    let (cause, aside) = match who {
        Who::Network => (network(report, who), None),
        _ => (None, network(report, who)),
    };
    sentences.extend(cause);
    sentences.extend(where_it_waited(report, about));
    sentences.extend(others(judgement, about));
    sentences.extend(shares(about));
    if about.whom != Whom::Whole {
        sentences.extend(shares(&judgement.whole));
    }
    sentences.extend(encrypted(report));
    sentences.extend(hurts_most(report));
    if stall.is_none() {
        sentences.extend(slowest(report, about.whom));
    }
    sentences.push(Load::of(report).sentence(report));
    sentences.extend(aside);
    let smb1: Vec<String> =
        dialects::lines(report).into_iter().filter(|line| line.is_smb1).map(|line| line.text + ".").collect();
    sentences.extend(smb1);
    sentences.extend(left_out(&report.aggregate.splits.whole));
    sentences
}

/// `It began at 2026-11-22 08:15:02 UTC with a READ of report.docx (request packet 17, response packet 20).`
fn kept_waiting(stall: &Stall<'_>) -> String {
    let when = date(stall.start).map_or_else(String::new, |date| format!(" at {} UTC", unbroken(date)));
    let more = match stall.count {
        1 => "It".to_owned(),
        count => format!("There were {count} such waits, {} in all; the longest", unbroken(span(stall.total))),
    };
    format!("{more} began{when} with {}.", one(stall.longest))
}

/// The server that a slow client waited for most, where it uses several.
fn where_it_waited(report: &Report, about: &Judged<'_>) -> Option<String> {
    let Whom::Client(client) = about.whom else { return None };
    let servers = servers_of(report, client);
    let (server, work) = servers.first().filter(|_| servers.len() > 1)?;
    Some(format!("{} of its wait was for {server}.", share(work.waited(), about.work.waited())))
}

/// How the other servers, or clients, did.
fn others(judgement: &Judgement<'_>, about: &Judged<'_>) -> Option<String> {
    let (all, one, many) = match about.whom {
        Whom::Whole => return None,
        Whom::Server(_) => (&judgement.servers, "other server", "other servers"),
        Whom::Client(_) => (&judgement.clients, "other client", "other clients"),
    };
    let others: Vec<&Judged> = all.iter().filter(|other| other.whom != about.whom).collect();
    if others.is_empty() {
        return None;
    }
    let slow = others.iter().filter(|other| other.is_slow()).count() as u64;
    let (mut waited, mut active) = (Nanos(0), Nanos(0));
    for other in &others {
        waited = Nanos(waited.0.saturating_add(other.work.waited().0));
        active = Nanos(active.0.saturating_add(other.work.active().0));
    }
    let whom = counted(others.len() as u64, one, many);
    let waited = match about.whom {
        Whom::Client(_) => {
            format!("{whom} waited {} of the active time ({})", share(waited, active), unbroken(span(waited)))
        }
        _ => format!("{whom}: a total wait of {}", unbroken(span(waited))),
    };
    Some(match slow {
        0 if others.len() == 1 => format!("{waited}; it is not slow."),
        0 => format!("{waited}; none of them is slow."),
        n => format!("{waited}; {n} of them {} slow.", if n == 1 { "is" } else { "are" }),
    })
}

/// `Active time 12.3 s: server 71%, transfers 20%, client 9%.`
fn shares(judged: &Judged<'_>) -> Option<String> {
    let work: &Work = &judged.work;
    let active = work.active();
    if active.0 == 0 {
        return None;
    }
    let parts = [
        (work.server, "server"),
        (work.unclear, "server or network"),
        (work.transfers, "transfers"),
        (work.network - work.transfers, "round trips and retransmissions"),
        (work.client, "client"),
    ];
    let mut parts: Vec<(Nanos, &str)> = parts.into_iter().filter(|(time, _)| time.0 > active.0 / 1_000).collect();
    parts.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    let parts: Vec<String> =
        parts.into_iter().map(|(time, whose)| format!("{whose} {}", share(time, active))).collect();
    let whose = match judged.whom {
        Whom::Whole => "Active time".to_owned(),
        Whom::Server(server) => format!("Active time on {server}"),
        Whom::Client(client) => format!("Active time of {client}"),
    };
    Some(format!("{whose} {}: {}.", unbroken(span(active)), parts.join(", ")))
}

/// What encryption hides.
fn encrypted(report: &Report) -> Option<String> {
    let frames = report.quality.encrypted_frames;
    let messages: u64 = report.connections.iter().map(|connection| connection.messages).sum();
    (frames > 0).then(|| {
        format!(
            "Encryption hides the commands in {}; {} can be read.",
            counted(frames, "frame", "frames"),
            counted(messages, "other message", "other messages"),
        )
    })
}

/// The command that users waited for longest, all its exchanges together.
fn hurts_most(report: &Report) -> Option<String> {
    let rows = report.aggregate.commands.iter().filter(|row| !row.waiting && row.row.timed > 0);
    if rows.clone().count() < 2 {
        return None;
    }
    let sum = |row: &CommandRow| row.row.time(TimeKind::ResponseTime).sum_ns;
    let most = rows.clone().max_by_key(|row| sum(row)).filter(|row| sum(row) > 0)?;
    let all: i128 = rows.map(sum).sum();
    let time = most.row.time(TimeKind::ResponseTime);
    let cause = format!(
        "{} caused the most wait: {}, {}",
        name(most.command),
        share(Nanos::saturating(sum(most)), Nanos::saturating(all)),
        counted(time.count, "command", "commands"),
    );
    Some(match median_and_p95(time) {
        None => format!("{cause}."),
        Some(typical) => format!("{cause}; {typical}."),
    })
}

fn slowest(report: &Report, whom: Whom) -> Option<String> {
    let slowest = report.aggregate.slowest.iter().find(|exchange| whom.includes(exchange))?;
    let time = slowest.time(TimeKind::ResponseTime)?;
    let text = match whom {
        Whom::Whole if time < NOTICED => {
            format!("No command took longer than {}: the slowest", unbroken("100 ms"))
        }
        _ => "The slowest".to_owned(),
    };
    Some(format!("{text} took {}, {}.", unbroken(time), one(slowest)))
}

/// `a READ of report.docx (request packet 17, response packet 20)`.
fn one(exchange: &Exchange) -> String {
    let name = match exchange.command {
        Command::EncryptedFrame => "encrypted frame".to_owned(),
        command => names::command(command),
    };
    let article = if name.starts_with(['A', 'E', 'I', 'O', 'U', 'e']) || name.starts_with("NT_") { "an" } else { "a" };
    let path = exchange.path.as_deref().filter(|path| !path.is_empty());
    let on = path.map_or_else(String::new, |path| format!(" of {}", shorten(&clean(path), NAME_MAX)));
    let packets = match (exchange.request.first, exchange.response.last) {
        (Some(request), Some(response)) => {
            format!(" (request packet {}, response packet {})", request.packet.number(), response.packet.number())
        }
        _ => String::new(),
    };
    format!("{article} {name}{on}{packets}")
}

/// Round trips and retransmissions, where they matter.
fn network(report: &Report, who: Who) -> Option<String> {
    let (mut segments, mut again) = (0, 0);
    for counts in report.connections.iter().flat_map(|connection| [&connection.to_server, &connection.to_client]) {
        segments += counts.packets;
        again += counts.retransmitted;
    }
    let lossy = again * 1_000 > segments * LOSS_PER_MILLE;
    if who != Who::Network && !lossy {
        return None;
    }
    let trips: Vec<Nanos> = report
        .connections
        .iter()
        .map(|connection| match (connection.server_round_trip, connection.client_round_trip) {
            (None, None) => None,
            (server, client) => Some(Nanos(server.map_or(0, |trip| trip.0) + client.map_or(0, |trip| trip.0))),
        })
        .collect::<Option<Vec<Nanos>>>()
        .unwrap_or_default();
    let trip = trips.iter().max().map_or_else(String::new, |trip| {
        format!("a round trip between client and server takes up to {}; ", unbroken(*trip))
    });
    let loss = match again {
        0 => "no segment was retransmitted".to_owned(),
        _ => format!("{} retransmitted ({})", counted(again, "segment", "segments"), share_of(again, segments)),
    };
    Some(format!("Network: {trip}{loss}."))
}

/// What the answer does not go by.
fn left_out(split: &TimeSplit) -> Option<String> {
    let parts = [
        (split.part(TimePart::Idle), "idle"),
        (split.part(TimePart::Waiting), "expected waits"),
        (split.part(TimePart::Unknown), "around commands that were not captured in full"),
        (split.part(TimePart::FilteredOut), "filtered out"),
    ];
    // A hundredth of the whole is worth a word.
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(time, _)| time.0 / 100 > 0 && time.0 / 100 >= split.elapsed().0 / 10_000)
        .map(|(time, what)| format!("{} {what}", unbroken(span(time))))
        .collect();
    let of = unbroken(span(split.elapsed()));
    let connections = match split.connections {
        1 => "the connection".to_owned(),
        n => format!("all {n} connections"),
    };
    (!parts.is_empty()).then(|| format!("Left out of the {of} of {connections}: {}.", parts.join(", ")))
}

fn name(command: Command) -> String {
    match command {
        Command::EncryptedFrame => "encrypted frames".to_owned(),
        command => names::command(command),
    }
}

fn share(part: Nanos, whole: Nanos) -> String {
    share_of(part.0.unsigned_abs(), whole.0.unsigned_abs())
}

fn share_of(part: u64, whole: u64) -> String {
    prose_percent(part, whole)
}
