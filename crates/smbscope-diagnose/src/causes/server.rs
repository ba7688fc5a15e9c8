//! Servers: slow storage, software that delays file access, load, and execution in bursts.

use super::{Detect, Detector, Finding, Sufferers};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::classify::Fact;
use crate::facts::{CommandClass, Count, DiagnosisFacts, Pair, ServerTimeHistogram, Wait, bytes, server_name};
use smbscope_model::prose::{counted, span, unbroken};
use smbscope_model::{Command, CommandGroup, Nanos};
use smbscope_stats::TimePart;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;

pub(super) const DETECTORS: &[&Detector] =
    &[&SLOW_STORAGE, &FILTER_DELAY, &FAST_THEN_SLOW, &FLUSH_HEAVY, &SERVER_SATURATION, &THROTTLED];

const SLOW_STORAGE: Detector = Detector {
    id: "slow-storage",
    culprit: Culprit::Server,
    title: "Slow storage",
    condition: "The median server time of at least `transfers` reads or writes is `least` or longer, and `ratio` times the median of commands that touch no storage. Not reported if transfers fill the line.",
    advice: "Look at the disks below the share: queue length, utilisation, a rebuild of an array, snapshots. More memory for the server's cache helps reads; a write cache that keeps data without power helps writes.",
    source: "docs/studies.md: disk queue length of hard disk and SSD",
    thresholds: &[("transfers", "20"), ("ratio", "4"), ("least", "3ms")],
    covers: &[
        "rtt-bound",
        "serial-client",
        "small-io",
        "large-mtu-off",
        "server-saturation",
        "metadata-heavy",
        "small-file-copy",
        "slow-client-link",
    ],
    detect: Detect::Pair(slow_storage),
};

fn slow_storage(pair: &Pair<'_>) -> Option<Finding> {
    let clear = [
        (CommandClass::Read, "Reads", pair.facts.counted(Fact::Transfer), Confidence::Medium),
        (CommandClass::Write, "Writes", pair.facts.counted(Fact::Transfer), Confidence::Medium),
    ];
    let hidden = [
        (
            CommandClass::EncryptedRead,
            "Encrypted requests with large responses, most likely reads,",
            pair.facts.counted(Fact::Encrypted),
            Confidence::Low,
        ),
        (
            CommandClass::EncryptedWrite,
            "Large encrypted requests, most likely writes,",
            pair.facts.counted(Fact::Encrypted),
            Confidence::Low,
        ),
    ];
    let found = clear.into_iter().chain(hidden);
    let found = found.filter_map(|(kind, name, count, confidence)| slow_class(pair, kind, name, count, confidence));
    found.max_by_key(|(lost, _)| *lost).map(|(_, found)| found)
}

fn slow_class(
    pair: &Pair<'_>,
    kind: CommandClass,
    name: &str,
    count: &Count,
    confidence: Confidence,
) -> Option<(Nanos, Finding)> {
    const ID: &str = "slow-storage";
    let served = pair.served(kind);
    let is_hidden = matches!(kind, CommandClass::EncryptedRead | CommandClass::EncryptedWrite);
    let light = if is_hidden { pair.served(CommandClass::EncryptedOther).median() } else { pair.yardstick() };
    let typical = served.median();
    let ratio = typical.0 as f64 / light.0.max(50_000) as f64;
    // On a saturated link, requests queue behind earlier ones.
    let is_queued = pair.transfer_share() > 0.5 || (pair.depth() > 2.0 && pair.transfer_share() > 0.25);
    if (served.count as f64) < pair.threshold(ID, "transfers")
        || typical < pair.time(ID, "least")
        || ratio < pair.threshold(ID, "ratio")
        || is_queued
    {
        return None;
    }
    let what = format!(
        "{name} of {} took {} at {}, {ratio:.0}× as long as commands that touch no storage ({})",
        pair.client,
        unbroken(typical),
        pair.server_name(),
        unbroken(light),
    );
    let depth = pair.depth().max(1.0);
    let sum = |each: i64| pair.once(Nanos((each as f64 * served.count as f64 / depth) as i64));
    let mean = sum((served.mean() - light).0);
    let trimmed = sum((typical - light).0).min(mean);
    let found = Finding::new(confidence, what)
        .lost(LostTime::between(trimmed, mean, mean))
        .first_of(count)
        .on(&None, &count.path())
        .filter(if kind == CommandClass::Read { " && (smb2.cmd == 8 || smb.cmd == 0x2e)" } else { "" });
    Some((mean, found))
}

const FILTER_DELAY: Detector = Detector {
    id: "filter-delay",
    culprit: Culprit::Server,
    title: "Something inspects each file when it is opened",
    condition: "With at least `opens` opens, their median server time is `least` or longer, and `ratio` times the median of closes and queries. Or some opens are slow: their p95 is `p95` or longer and twice `ratio` times the p95 of closes and queries, and they take more than half of the server's time. Reads and writes take less than half of the median.",
    advice: "A virus scanner, an archiving or encryption filter, or tiered storage on the server inspects each file when it is opened. Measure with the scanner's exclusion for this share (studies/antivirus.toml). An exclusion costs protection: scan elsewhere instead.",
    source: "Microsoft, \"Slow SMB file transfer speed\"; docs/studies.md: antivirus on the server",
    thresholds: &[("opens", "10"), ("ratio", "4"), ("least", "4ms"), ("p95", "20ms")],
    covers: &[
        "slow-storage",
        "rtt-bound",
        "serial-client",
        "metadata-heavy",
        "small-file-copy",
        "office-slow-open",
        "server-saturation",
        "slow-client-link",
        "missing-file-probes",
    ],
    detect: Detect::Pair(filter_delay),
};

fn filter_delay(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "filter-delay";
    let opens = pair.served(CommandClass::Open);
    let others = pair.facts.served_together(&[CommandClass::Close, CommandClass::Query]);
    if (opens.count as f64) < pair.threshold(ID, "opens") || others.count < 5 {
        return None;
    }
    let reads = pair.facts.served_together(&[CommandClass::Read, CommandClass::Write]);
    let (typical, usual) = (opens.median(), others.median());
    let ratio = typical.0 as f64 / usual.0.max(50_000) as f64;
    // Storage that is slow for reads and writes is slow for opens, too.
    let all_slow = reads.count >= 5 && reads.median().0 * 2 > typical.0;
    if all_slow {
        return None;
    }
    if typical < pair.time(ID, "least") || ratio < pair.threshold(ID, "ratio") {
        return some_slow(pair, opens, &others);
    }
    let what = format!(
        "{} took {} to open a file for {}, {ratio:.0}× as long as to close or query one ({})",
        pair.server_name(),
        unbroken(typical),
        pair.client,
        unbroken(usual),
    );
    // Mean (all excess time) and median (excess of a typical open) bound the loss.
    let depth = pair.depth().max(1.0);
    let sum = |each: i64| pair.once(Nanos((each as f64 * opens.count as f64 / depth) as i64));
    let mean = sum((opens.mean() - usual).0);
    let trimmed = sum((typical - usual).0).min(mean.max(Nanos(1)));
    Some(
        Finding::new(Confidence::Medium, what)
            .lost(LostTime::between(trimmed, Nanos((trimmed.0 + mean.0) / 2), mean))
            .first_of(pair.facts.counted(Fact::Open))
            .filter(" && (smb2.cmd == 5 || smb.cmd == 0xa2)"),
    )
}

fn some_slow(pair: &Pair<'_>, opens: &ServerTimeHistogram, others: &ServerTimeHistogram) -> Option<Finding> {
    const ID: &str = "filter-delay";
    let (late, usual) = (opens.quantile(0.95), others.median());
    let excess = Nanos((opens.sum().0 - usual.0.saturating_mul(opens.count as i64)).max(0));
    let of_server = pair.split.server_ns.0.max(1);
    if opens.count < 5 * pair.threshold(ID, "opens") as u64
        || late < pair.time(ID, "p95")
        || (late.0 as f64) < 2.0 * pair.threshold(ID, "ratio") * others.quantile(0.95).0 as f64
        // No single open dominates, and together they make up more than half of the server time.
        || opens.longest.saturating_mul(2) > excess.0
        || excess.0.saturating_mul(2) < of_server
    {
        return None;
    }
    let what = format!(
        "{} took {} or longer to open one file in 20 for {}; a typical open took {}, closing or querying one {}",
        pair.server_name(),
        unbroken(late),
        pair.client,
        unbroken(opens.median()),
        unbroken(usual),
    );
    let lost = pair.once(Nanos((excess.0 as f64 / pair.depth().max(1.0)) as i64));
    Some(
        Finding::new(Confidence::Low, what)
            .lost(LostTime::between(Nanos(lost.0 * 8 / 10), lost, lost))
            .first_of(pair.facts.counted(Fact::Open))
            .filter(" && (smb2.cmd == 5 || smb.cmd == 0xa2)"),
    )
}

const FAST_THEN_SLOW: Detector = Detector {
    id: "fast-then-slow",
    culprit: Culprit::Server,
    title: "Writes fast at first, then slow",
    condition: "Within writes of `bytes` or more without a pause of 2 s, throughput fell by the factor `throughput`, and a write took `write_time` times as long, at least `slow_write`, for `time`. Not reported if transfers took most of the waits.",
    advice: "A cache of the server filled up: memory for pages not yet written (Linux: vm.dirty_bytes), the write cache of a controller, the fast part of an SSD. The rate after that is the rate of the disks. Look at the disks' queue at that time, and size the cache for the copies that matter.",
    source: "Microsoft, \"Slow SMB file transfer speed\": copies that start fast and slow down",
    thresholds: &[("bytes", "16MiB"), ("time", "1s"), ("throughput", "2"), ("write_time", "3"), ("slow_write", "2ms")],
    covers: &["slow-storage", "server-saturation"],
    detect: Detect::Pair(fast_then_slow),
};

fn fast_then_slow(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "fast-then-slow";
    let found = pair.facts.slowdown.as_ref()?;
    let (fast, slow) = (&found.fast, &found.slow);
    if ((fast.bytes + slow.bytes) as f64) < pair.threshold(ID, "bytes")
        || slow.elapsed < pair.time(ID, "time")
        // Storage is slower than this; faster writes slow down with the CPU.
        || slow.write_time < pair.time(ID, "slow_write")
        || found.throughput_ratio() < pair.threshold(ID, "throughput")
        || found.time_ratio() < pair.threshold(ID, "write_time")
        // A saturated link slows down writes, too.
        || pair.transfer_share() > 0.5
    {
        return None;
    }
    let what = format!(
        "{} wrote {} at {}/s with {} for a write, then {} at {}/s with {} for a write",
        pair.client,
        bytes(fast.bytes),
        bytes(fast.rate() as u64),
        unbroken(fast.write_time),
        bytes(slow.bytes),
        bytes(slow.rate() as u64),
        unbroken(slow.write_time),
    );
    Some(
        Finding::new(Confidence::Medium, what)
            .lost(LostTime::between(Nanos(0), found.lost(), found.lost()))
            .from(Some(found.first))
            .on(&found.share, &found.path)
            .filter(" && smb2.cmd == 9"),
    )
}

const FLUSH_HEAVY: Detector = Detector {
    id: "flush-heavy",
    culprit: Culprit::Application,
    title: "A flush for every few writes",
    condition: "`flushes` FLUSH commands, and more than `share` of the number of writes. If the median FLUSH takes `slow` at the server, the culprit is the server.",
    advice: "Each FLUSH waits for the disks. Databases, mail stores and build tools do it: keep them off the share, or give the server a log device or write cache that keeps data without power. Switching flushes off (strict sync = no) risks data.",
    source: "MS-SMB2 3.3.5.11; Samba, smb.conf(5)",
    thresholds: &[("flushes", "8"), ("share", "20%"), ("slow", "12ms")],
    covers: &["slow-storage", "serial-client", "rtt-bound", "server-saturation", "small-io"],
    detect: Detect::Pair(flush_heavy),
};

fn flush_heavy(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "flush-heavy";
    let flushes = pair.facts.counted(Fact::Flush);
    let share = pair.facts.share(Fact::Flush, Fact::Write);
    if (flushes.count as f64) < pair.threshold(ID, "flushes") || share <= pair.threshold(ID, "share") {
        return None;
    }
    let served = pair.served(CommandClass::Flush);
    let what = format!(
        "{} flushed {} for {}; each took {} at {}",
        pair.client,
        counted(flushes.count, "time", "times"),
        counted(pair.facts.count(Fact::Write), "write", "writes"),
        unbroken(served.mean()),
        pair.server_name(),
    );
    let excess = Nanos((served.mean() - pair.yardstick()).0.max(0));
    let lost = pair.once(Nanos(excess.0.saturating_mul(served.count as i64).min(flushes.outstanding)));
    // A server with a protected write cache answers at once.
    let is_slow = served.median() >= pair.time(ID, "slow");
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::between(lost, lost, pair.once(Nanos(flushes.outstanding))))
            .first_of(flushes)
            .on(&None, &flushes.path())
            .culprit(if is_slow { Culprit::Server } else { Culprit::Application })
            .filter(" && (smb2.cmd == 7 || smb.cmd == 0x05)"),
    )
}

const SERVER_SATURATION: Detector = Detector {
    id: "server-saturation",
    culprit: Culprit::Server,
    title: "Response times grow with load",
    condition: "On the only server of a capture, the median response time with many outstanding requests is `median` or longer and `ratio` times that with few, from `commands` commands each, and server time is most of the wait of `clients` clients.",
    advice: "The server is at its limit at these times. See what its processors, disks and network do then (bench --server-metrics), and who loads it (--by client).",
    source: "Swartz (1997), figures 2 and 3",
    thresholds: &[("commands", "200"), ("ratio", "3"), ("median", "5ms"), ("clients", "3")],
    covers: &["rtt-bound", "serial-client"],
    detect: Detect::Server(server_saturation),
};

fn server_saturation(facts: &DiagnosisFacts<'_>, server: SocketAddr) -> Option<Finding> {
    // Response time against load is known only for the capture as a whole.
    if facts.servers().len() > 1 {
        return None;
    }
    const ID: &str = "server-saturation";
    let threshold = |name: &str| facts.context.catalogue.threshold(ID, name);
    let loads = facts.context.aggregate.concurrency.iter();
    let loads: Vec<_> = loads.filter(|load| load.commands as f64 >= threshold("commands")).collect();
    let (low, high) = (loads.first()?, loads.last()?);
    let (few, many) = (low.response_time.p50?, high.response_time.p50?);
    let grown = many.0 as f64 / few.0.max(1) as f64;
    // Clients that wait mainly for the server itself.
    let slow = |pair: &&Pair<'_>| {
        let server = pair.part(TimePart::Server).0 as f64;
        server > 0.5 * pair.whole.waited.0 as f64 && pair.transfer_share() < 0.4
    };
    let clients: BTreeSet<_> = facts.of_server(server).filter(slow).map(|pair| pair.client).collect();
    if high.outstanding_from < low.outstanding_to.max(1.0) * 2.0
        || grown < threshold("ratio")
        || (many.0 as f64) < threshold("median")
        || (clients.len() as f64) < threshold("clients")
    {
        return None;
    }
    let few_outstanding =
        if low.outstanding_to < 1.5 { "one".to_owned() } else { format!("{:.0}", low.outstanding_to) };
    let what = format!(
        "{} slowed down under load: the median response time grew from {} to {} ({grown:.1}×) as requests outstanding grew \
         from fewer than {} to {:.0} and more",
        server_name(server),
        unbroken(few),
        unbroken(many),
        few_outstanding,
        high.outstanding_from,
    );
    let server_part: i64 = facts
        .of_server(server)
        .filter(|pair| clients.contains(&pair.client))
        .map(|pair| pair.part(TimePart::Server).0)
        .fold(0, i64::saturating_add);
    let lost = Nanos((server_part as f64 * (1.0 - 1.0 / grown)) as i64);
    Some(
        Finding::new(Confidence::Medium, what)
            .lost(LostTime::between(Nanos(lost.0 / 2), lost, Nanos(server_part)))
            .about(Sufferers { client: None, ..Sufferers::of_server(facts, server, &clients) }),
    )
}

const THROTTLED: Detector = Detector {
    id: "throttled",
    culprit: Culprit::Server,
    title: "The server works in bursts",
    condition: "The server paused `pauses` times for `least` or longer, for about the same time each, whatever it was asked for. It answered fast in between, and hardly any segment was lost.",
    advice: "The server, or the virtual machine that it runs on, stops at regular intervals: a processor quota (cgroup, cloud burst credits), an I/O limit of the storage, snapshots, or a hypervisor without free processors. Look at its steal time and throttling counters.",
    source: "Linux cgroup v2 cpu.max (nr_throttled); Azure and AWS burst credits",
    thresholds: &[("pauses", "5"), ("least", "100ms")],
    covers: &["server-hang", "slow-storage", "filter-delay", "server-saturation", "flush-heavy"],
    detect: Detect::Server(throttled),
};

/// Maximum coefficient of variation of regular pauses.
const REGULAR: f64 = 0.35;

fn throttled(facts: &DiagnosisFacts<'_>, server: SocketAddr) -> Option<Finding> {
    const ID: &str = "throttled";
    let pauses = server_pauses(long_waits(facts, server, facts.context.catalogue.time(ID, "least")));
    let is_rare = (pauses.len() as f64) < facts.context.catalogue.threshold(ID, "pauses");
    if is_rare || !are_of_several_kinds(&pauses) {
        return None;
    }
    let n = pauses.len() as f64;
    let mean = pauses.iter().map(|(_, length)| length.0 as f64).sum::<f64>() / n;
    let mut all = ServerTimeHistogram::default();
    facts.of_server(server).for_each(|pair| all.merge(&pair.facts.served_together(&CommandClass::ALL)));
    let is_fast_between = all.median().0 as f64 * 8.0 < mean && all.count as f64 > 3.0 * n;
    if !is_fast_between || !are_regular(&pauses, mean) || loses_segments(facts, server) {
        return None;
    }
    let clients: BTreeSet<_> = facts
        .of_server(server)
        .filter(|pair| pair.facts.waits.iter().next().is_some())
        .map(|pair| pair.client)
        .collect();
    let total = Nanos((mean * n) as i64);
    let what = format!(
        "{} stopped {} for about {} each, whatever it was asked for, and answered within {} in between",
        server_name(server),
        counted(pauses.len() as u64, "time", "times"),
        unbroken(span(Nanos(mean as i64))),
        unbroken(all.median()),
    );
    Some(
        Finding::new(Confidence::Medium, what)
            .lost(LostTime::between(Nanos(total.0 * 8 / 10), total, total))
            .from(pauses.first().map(|(wait, _)| wait.from))
            .about(Sufferers::of_server(facts, server, &clients)),
    )
}

fn long_waits<'a>(facts: &'a DiagnosisFacts<'_>, server: SocketAddr, least: Nanos) -> Vec<&'a Wait> {
    let mut waits: Vec<&Wait> = facts
        .of_server(server)
        .flat_map(|pair| pair.facts.waits.iter())
        .filter(|wait| wait.group != CommandGroup::Waiting)
        .filter(|wait| {
            wait.to.is_some_and(|to| to.time - wait.from.time >= least) && wait.retransmitted == 0 && !wait.failed()
        })
        .collect();
    waits.sort_by_key(|wait| (wait.to.map(|to| to.time), wait.from.time));
    waits
}

/// Returns the first wait and the length of each pause. Responses within 20 ms of each other ended the same pause.
fn server_pauses(waits: Vec<&Wait>) -> Vec<(&Wait, Nanos)> {
    let mut pauses: Vec<(&Wait, Nanos)> = Vec::new();
    for wait in waits {
        let Some(to) = wait.to else { continue };
        let length = to.time - wait.from.time;
        match pauses.last_mut() {
            Some((last, longest)) if last.to.is_some_and(|end| to.time - end.time < Nanos(20_000_000)) => {
                *longest = (*longest).max(length);
            }
            _ => pauses.push((wait, length)),
        }
    }
    pauses
}

/// Reads, writes and flushes are of one kind, since slow storage delays all of them.
fn are_of_several_kinds(pauses: &[(&Wait, Nanos)]) -> bool {
    let mut kinds: HashMap<Option<Command>, usize> = HashMap::new();
    for (wait, _) in pauses {
        let needs_storage = matches!(wait.group, CommandGroup::Read | CommandGroup::Write);
        *kinds.entry((!needs_storage).then_some(wait.command)).or_default() += 1;
    }
    let most = kinds.values().copied().max().unwrap_or(0);
    kinds.len() > 1 && most as f64 <= 0.9 * pauses.len() as f64
}

fn are_regular(pauses: &[(&Wait, Nanos)], mean: f64) -> bool {
    let squares = pauses.iter().map(|(_, length)| (length.0 as f64 - mean).powi(2)).sum::<f64>();
    (squares / pauses.len() as f64).sqrt() <= REGULAR * mean
}

/// Returns true if retransmission timeouts, which are regular, may explain the pauses.
fn loses_segments(facts: &DiagnosisFacts<'_>, server: SocketAddr) -> bool {
    let (segments, lost) =
        facts.of_server(server).map(|pair| pair.segments()).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    lost * 1_000 > segments
}
