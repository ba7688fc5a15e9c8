//! The verdict's sentences.

use super::stall::Stall;
use super::{Who, Work};
use crate::format::{clean, counted, date, percent, shorten, span, unbroken};
use crate::{Report, dialects, names};
use smbscope_model::{Command, Exchange, Nanos, TimeKind};
use smbscope_stats::{CommandRow, TimePart, TimeSplit};

/// Longest name of a file in a sentence.
const NAME_MAX: usize = 60;
/// What a person takes for instantaneous (Miller, "Response time in man-computer conversational transactions", AFIPS 1968).
const NOTICED: Nanos = Nanos(100_000_000);
/// Percent of all retransmitted segments from which on they are mentioned (0.1 %).
const LOSS_PER_MILLE: u64 = 1;

/// The answer in a sentence.
pub(super) fn headline(who: Who, work: &Work, stall: Option<&Stall<'_>>, split: &TimeSplit) -> String {
    let of = |part: Nanos, whole: Nanos| share(part, whole);
    let waited = work.waited();
    match (who, stall) {
        (Who::Server, Some(stall)) => format!(
            "It is the server: it kept {} waiting for {}.",
            counted(stall.commands, "command", "commands"),
            unbroken(span(stall.length)),
        ),
        (Who::Network, Some(stall)) => format!(
            "It is the network: {} waited {} while lost packets were sent again.",
            counted(stall.commands, "command", "commands"),
            unbroken(span(stall.length)),
        ),
        (Who::Server, None) => format!(
            "It is the server: {} of the {} spent waiting for answers went by in it.",
            of(work.server, waited),
            unbroken(span(waited)),
        ),
        (Who::Network, None) => format!(
            "It is the network: {} of the {} spent waiting for answers went by on the wire.",
            of(work.network, waited),
            unbroken(span(waited)),
        ),
        (Who::Client, _) => format!(
            "It is the client: {} of the {} with work in hand went by in it, with nothing outstanding.",
            of(work.client, work.total()),
            unbroken(span(work.total())),
        ),
        (Who::Waiting, _) => "Nobody was kept waiting: all waits are by design, such as for changes.".to_owned(),
        (Who::Idle, _) => "Nobody was kept waiting: nothing was outstanding.".to_owned(),
        (Who::Unknown, _) if work.unclear.0 > 0 => {
            "It is the server or the network: the round trip between them is not known.".to_owned()
        }
        (Who::Unknown, _) if split.part(TimePart::Unknown).0 > 0 => {
            "The capture does not tell: too many commands were not captured from end to end.".to_owned()
        }
        (Who::Unknown, _) => "The capture does not tell: no command could be read.".to_owned(),
    }
}

/// What supports the answer.
pub(super) fn sentences(report: &Report, who: Who, work: &Work, stall: Option<&Stall<'_>>) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(stall.map(|stall| kept_waiting(stall)));
    sentences.extend(seconds(work));
    sentences.extend(encrypted(report));
    sentences.extend(hurts_most(report));
    if stall.is_none() {
        sentences.extend(slowest(report));
    }
    sentences.extend(load(report));
    sentences.extend(network(report, who));
    let smb1: Vec<String> =
        dialects::lines(report).into_iter().filter(|line| line.is_smb1).map(|line| line.text + ".").collect();
    sentences.extend(smb1);
    sentences.extend(left_out(&report.aggregate.splits.whole));
    sentences
}

/// `The longest began at 2026-11-22 08:15:02 UTC with a READ of report.docx (request packet 17, response packet 20).`
fn kept_waiting(stall: &Stall<'_>) -> String {
    let when = date(stall.start).map_or_else(String::new, |date| format!(" at {} UTC", unbroken(date)));
    let more = match stall.count {
        1 => "It".to_owned(),
        count => format!("There were {count} such waits, {} in all; the longest", unbroken(span(stall.total))),
    };
    format!("{more} began{when} with {}.", one(stall.longest))
}

/// `Of 12.3 s with work in hand, 71.0 % went by in the server, …`
fn seconds(work: &Work) -> Option<String> {
    let total = work.total();
    if total.0 == 0 {
        return None;
    }
    let parts = [
        (work.server, "in the server"),
        (work.unclear, "in the server or the network"),
        (work.transfers, "in transfers"),
        (work.network - work.transfers, "in round trips and retransmissions"),
        (work.client, "in the client"),
    ];
    let mut parts: Vec<(Nanos, &str)> = parts.into_iter().filter(|(time, _)| time.0 * 1_000 >= total.0).collect();
    parts.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    let mut parts = parts.into_iter();
    let (time, whose) = parts.next()?;
    let first = format!("{} went by {whose}", share(time, total));
    let rest: Vec<String> = parts.map(|(time, whose)| format!(", {} {whose}", share(time, total))).collect();
    Some(format!("Of {} with work in hand, {first}{}.", unbroken(span(total)), rest.concat()))
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
    let mut text = format!(
        "Most of the waiting was for {}: {} of it, {}",
        name(most.command),
        share(clamp(sum(most)), clamp(all)),
        counted(time.count, "command", "commands"),
    );
    if let Some(p50) = time.p50 {
        text += &format!(", half answered within {}", unbroken(p50));
    }
    if let Some(p95) = time.p95 {
        text += &format!(", {} within {}", unbroken("95 %"), unbroken(p95));
    }
    Some(text + ".")
}

fn slowest(report: &Report) -> Option<String> {
    let slowest = report.aggregate.slowest.first()?;
    let time = slowest.time(TimeKind::ResponseTime)?;
    let long = if time < NOTICED { "Nobody waited long for a single command: the slowest" } else { "The slowest" };
    Some(format!("{long} took {}, {}.", unbroken(time), one(slowest)))
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
            format!(" (request packet {}, response packet {})", request.packet.number, response.packet.number)
        }
        _ => String::new(),
    };
    format!("{article} {name}{on}{packets}")
}

fn load(report: &Report) -> Option<String> {
    let aggregate = &report.aggregate;
    let elapsed = aggregate.elapsed().filter(|elapsed| elapsed.0 > 0)?.as_secs_f64();
    let clients = aggregate.clients.entries.len() as u64;
    let (read, written) = aggregate
        .servers
        .entries
        .iter()
        .map(|(_, server)| server)
        .chain(&aggregate.servers.other)
        .fold((0, 0), |(read, written), server| (read + server.bytes_read, written + server.bytes_written));
    let moved: Vec<String> = [(read, "read"), (written, "written")]
        .into_iter()
        .filter(|(bytes, _)| *bytes > 0)
        .map(|(bytes, how)| format!(", {} {how}", unbroken(throughput(bytes as f64 / elapsed))))
        .collect();
    let at_once = report.connections.iter().map(|connection| connection.max_outstanding).max().unwrap_or(0);
    let concurrency = aggregate.splits.whole.concurrency().map_or_else(String::new, |mean| {
        format!("; {mean:.1} outstanding on a busy connection on average, at most {at_once}")
    });
    Some(format!(
        "The load: {} of {}, {} commands/s{}{concurrency}.",
        counted(report.connections.len() as u64, "connection", "connections"),
        counted(clients, "client", "clients"),
        figure(aggregate.count as f64 / elapsed),
        moved.concat(),
    ))
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
        .collect::<Option<Vec<Nanos>>>()?;
    let trip = trips.iter().max().map_or_else(String::new, |trip| {
        format!("a round trip between client and server takes up to {}", unbroken(*trip))
    });
    let loss = match again {
        0 => "no segment was sent again".to_owned(),
        _ => format!("{} had to be sent again ({})", counted(again, "segment", "segments"), share_of(again, segments)),
    };
    Some(format!("The network: {trip}; {loss}."))
}

/// What the answer does not go by.
fn left_out(split: &TimeSplit) -> Option<String> {
    let parts = [
        (split.part(TimePart::Idle), "idle"),
        (split.part(TimePart::Waiting), "waits by design"),
        (split.part(TimePart::Unknown), "around commands that were not captured in full"),
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

fn clamp(sum: i128) -> Nanos {
    Nanos(sum.clamp(0, i64::MAX.into()) as i64)
}

fn share(part: Nanos, whole: Nanos) -> String {
    share_of(part.0.unsigned_abs(), whole.0.unsigned_abs())
}

fn share_of(part: u64, whole: u64) -> String {
    unbroken(format!("{} %", percent(part, whole)))
}

/// `12 MB/s`, `3.4 kB/s`.
fn throughput(bytes_per_second: f64) -> String {
    match bytes_per_second {
        v if v >= 1e5 => format!("{} MB/s", figure(v / 1e6)),
        v => format!("{} kB/s", figure(v / 1e3)),
    }
}

/// Three digits that matter: `0.12`, `3.4`, `5,883`.
fn figure(value: f64) -> String {
    match value {
        v if v >= 100.0 => crate::format::thousands(v.round() as u64),
        v if v >= 10.0 => format!("{v:.0}"),
        v if v >= 1.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
