//! Terminal report of a ramp: at the top headline, warnings, suggested commands and test setup, then throughput and
//! response time over users (figures 2 and 3 of Swartz 1997), then details of a load point. The report of launches has
//! a table of launches instead.

pub(super) mod breakdown;
mod point;
mod ramp;

use crate::bench::{
    BenchDocument, BenchRun, Caches, JobEntry, Launch, LoopModel, RunCapture, TargetEntry, far_below_its_rate,
    load_name,
};
use crate::format::{bytes, capital, clean, counted, date, median_and_p95, span, thousands, unbroken};
use crate::page::{Paint, TextPage};
use crate::tables::{BYTES_READ, BYTES_WRITTEN, ColumnHead, Row, Table, Unit, Value, percent_of};
use smbscope_diagnose::next::quoted;
use smbscope_model::Nanos;
use smbscope_stats::DurationStatistics;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RampDetailLevel {
    /// One screen: the load curve, and groups and at most ten commands of one load point.
    Brief,
    /// The full report with details of one load point: at the capacity if known, otherwise the last.
    #[default]
    One,
    /// The full report with details of every load point.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RampTextOptions {
    /// Width of the terminal in columns, clamped to 60–160. Lines may be longer below 80.
    pub width: usize,
    pub color: bool,
    pub detail: RampDetailLevel,
}

impl Default for RampTextOptions {
    fn default() -> RampTextOptions {
        RampTextOptions { width: 100, color: false, detail: RampDetailLevel::One }
    }
}

pub fn render(document: &BenchDocument, options: &RampTextOptions) -> String {
    render_on(TextPage::new(options.width, options.color), document, options.detail)
}

/// Formats the report in Markdown, for a ticket or a pull request.
pub fn markdown(document: &BenchDocument, detail: RampDetailLevel) -> String {
    render_on(TextPage::markdown(), document, detail)
}

fn render_on(mut page: TextPage, document: &BenchDocument, detail: RampDetailLevel) -> String {
    if let Some(launch) = &document.launch {
        render_launch(&mut page, document, launch, detail);
        return page.into_text();
    }
    overview(&mut page, document, detail == RampDetailLevel::Brief);
    let points = match detail {
        RampDetailLevel::Brief => {
            ramp::brief(&mut page, document);
            ramp::jobs(&mut page, document);
            document.shown().into_iter().for_each(|run| point::brief(&mut page, document, run));
            return page.into_text();
        }
        RampDetailLevel::One => document.shown().into_iter().collect(),
        RampDetailLevel::All => document.runs.iter().collect::<Vec<_>>(),
    };
    ramp::render(&mut page, document);
    ramp::jobs(&mut page, document);
    breakdown::server(&mut page, document);
    ramp::tried_loads(&mut page, document);
    breakdown::wire_by_load_point(&mut page, document);
    points.into_iter().for_each(|run| point::render(&mut page, document, run));
    page.into_text()
}

const LISTED: usize = 10;

/// Returns the statistics, or None if there are no values.
fn timed(times: &DurationStatistics) -> Option<&DurationStatistics> {
    (times.count > 0).then_some(times)
}

fn render_launch(page: &mut TextPage, document: &BenchDocument, launch: &Launch, detail: RampDetailLevel) {
    let is_brief = detail == RampDetailLevel::Brief;
    page.title(&clean(&document.heading()), is_brief);
    page.paragraph(Paint::Heading, &clean(&document.answer.headline));
    document.warnings.iter().for_each(|warning| page.beside(Paint::Warning, "- ", &clean(warning)));
    page.what_next(&document.answer.next);
    page.blank();
    launch_setup(page, document, launch);
    launches(page, document, if is_brief { LISTED } else { usize::MAX });
    let Some(run) = document.runs.first().filter(|run| run.operations > 0) else { return };
    match is_brief {
        true => point::brief(page, document, run),
        false => point::render(page, document, run),
    }
}

fn launch_setup(page: &mut TextPage, document: &BenchDocument, launch: &Launch) {
    let mut fact = |label: &str, text: &str| page.fact(Paint::Plain, label, &clean(text));
    fact("Command", &launch.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
    fact("Until", &launch.until);
    let mounted = launch.mounted_by.as_ref().map_or_else(String::new, |program| format!(", mounted by {program}"));
    fact("Files on", &format!("{}{mounted}", where_to(&document.target)));
    if !document.target.is_local() {
        fact("Protocol", &protocol(&document.target));
    }
    fact(
        "Caches",
        match launch.caches {
            Caches::Warm => "warm: as the previous launches left them",
            Caches::Cold => "cold: file caches of this machine emptied before each launch, and the share remounted",
        },
    );
}

fn launches(page: &mut TextPage, document: &BenchDocument, listed: usize) {
    let Some(jobs) = document.runs.first().and_then(|run| run.jobs.as_ref()) else { return };
    if jobs.list.is_empty() {
        return;
    }
    let is_local = document.target.is_local();
    let seen = move |job: &JobEntry| job.waited_ns.filter(|_| !is_local);
    let known = move |job: &JobEntry, value: Value| value.shown_if(seen(job).is_some());
    let lines = jobs.list.iter().take(listed).enumerate().map(|(at, job)| Row::new((at + 1).to_string(), job));
    let rendered = Table::new()
        .column(
            ColumnHead::new("elapsed_ns", "Took", Unit::Duration, "")
                .explained("from the start of the program until it was ready"),
            |job: &&JobEntry| span(job.elapsed_ns),
        )
        .column(
            ColumnHead::new("waited_ns", "Wait", Unit::Duration, "")
                .explained("the part of it with a command outstanding at the server"),
            move |job| seen(job).map(Value::from),
        )
        .column(ColumnHead::new("waited_share", "Wait share", Unit::Percent, "Wait in percent of Took"), move |job| {
            let elapsed = job.elapsed_ns.0.unsigned_abs();
            seen(job).map(|waited| percent_of(waited.0.unsigned_abs(), elapsed))
        })
        .column(ColumnHead::new("opens", "Opens", Unit::Count, "files opened").expendable(1), move |job| {
            known(job, Value::Count(job.files))
        })
        .column(BYTES_READ.expendable(1), move |job| known(job, Value::Bytes(job.bytes_read)))
        .column(BYTES_WRITTEN.expendable(2), move |job| known(job, Value::Bytes(job.bytes_written)))
        .section("Launches", lines)
        .render(page);
    let text = match jobs.list.len().saturating_sub(listed) {
        0 => String::new(),
        more => format!("{} more with --full.", thousands(more as u64)),
    };
    rendered.note(page, &text);
}

const WARNINGS_MAX: usize = 3;

fn overview(page: &mut TextPage, document: &BenchDocument, is_brief: bool) {
    page.title(&clean(&document.heading()), is_brief);
    if let Some(behind) = far_below_its_rate(document) {
        page.paragraph(Paint::Alarm, &behind);
    }
    page.paragraph(Paint::Heading, &clean(&document.answer.headline));
    if let Some(capacity) = capacity(document) {
        page.paragraph(Paint::Heading, &capacity);
    }
    due(document, is_brief).iter().for_each(|text| page.paragraph(Paint::Plain, text));
    document.answer.evidence.iter().for_each(|text| page.beside(Paint::Plain, "- ", &clean(text)));
    let listed = if is_brief { WARNINGS_MAX } else { usize::MAX };
    if !document.warnings.is_empty() && !is_brief {
        page.heading("Warnings");
    }
    for warning in document.warnings.iter().take(listed) {
        page.beside(Paint::Warning, "- ", &clean(warning));
    }
    let left = document.warnings.len().saturating_sub(listed);
    if left > 0 {
        page.line(Paint::Warning, &format!("- {} with --full.", counted(left as u64, "more warning", "more warnings")));
    }
    page.beside(Paint::Plain, "- ", &quality(document));
    page.what_next(&document.answer.next);
    page.blank();
    setup(page, document, is_brief);
}

/// Formats `All 4,100 commands were timed inside the client; the capture has 4,098.`
fn quality(document: &BenchDocument) -> String {
    let sum = |count: fn(&BenchRun) -> u64| document.runs.iter().map(count).fold(0, u64::saturating_add);
    let (timed, unanswered) = (sum(|run| run.operations), sum(|run| run.unanswered));
    let all = thousands(timed.saturating_add(unanswered));
    let mut text = match unanswered {
        _ if timed == 0 => "No command was timed".to_owned(),
        0 => format!("All {} were timed inside the client", counted(timed, "command", "commands")),
        _ => format!("{} of {all} commands were timed inside the client; the others had no answer", thousands(timed)),
    };
    let captured = |run: &BenchRun| match &run.capture {
        Some(RunCapture::Made(made)) => made.wire_commands,
        _ => 0,
    };
    if document.runs.iter().any(|run| matches!(run.capture, Some(RunCapture::Made(_)))) {
        let wire: u64 = document.runs.iter().map(captured).fold(0, u64::saturating_add);
        text += &format!("; the capture has {}", thousands(wire));
    }
    text + "."
}

/// Formats the response times since the intended start at the fastest load point and, unless brief, of the ramp.
fn due(document: &BenchDocument, is_brief: bool) -> Option<String> {
    let fastest =
        document.runs.iter().reduce(|a, b| if b.operations_per_second > a.operations_per_second { b } else { a })?;
    let mut text = Vec::new();
    if let Some(due) = &fastest.due {
        let due = median_and_p95(due).unwrap_or_else(|| "too rarely to tell".to_owned());
        let server = median_and_p95(&fastest.total.client);
        let server = server.map_or_else(String::new, |server| format!("; their commands took {server}"));
        text.push(format!("Operations ended {due} after they were due at {}{server}.", document.load_name(fastest)));
    }
    if let (Some(overall), true) = (document.overall_response_time_ns, document.runs.len() > 1 && !is_brief) {
        text.push(format!("Overall response time {} (mean of the ramp).", unbroken(overall)));
    }
    (!text.is_empty()).then(|| text.join(" "))
}

fn capacity(document: &BenchDocument) -> Option<String> {
    let capacity = document.capacity.as_ref()?;
    let criterion = clean(&capacity.criterion);
    let by_rate = document.is_ramp_of_rates();
    let load = |users: u32, rate: Option<u32>| if by_rate { rate.unwrap_or_default() } else { users };
    let name = |load: u32| if by_rate { load_name(0, Some(load.into())) } else { load_name(load, None) };
    let tried = || capacity.tried.iter().map(|tried| load(tried.users, tried.rate));
    let run = |run: &BenchRun| load(run.users, run.rate().map(|rate| rate as u32));
    let most = tried().chain(document.runs.iter().map(run)).max();
    let found = if by_rate { capacity.rate } else { capacity.users };
    Some(match found {
        None => {
            let at = tried().min().map_or_else(String::new, |fewest| format!(", not even at {}", name(fewest)));
            format!("Capacity: no load that was tried met {criterion}{at}.")
        }
        Some(found) if most <= Some(found) => {
            format!("Capacity: at least {}; every load met {criterion}.", name(found))
        }
        Some(found) => {
            let certain = match (capacity.always, capacity.never) {
                (Some(always), Some(never)) => {
                    format!(" All 3 tries met it at {}, none at {}.", name(always), name(never))
                }
                (Some(always), None) => format!(" All 3 tries met it at {}.", name(always)),
                (None, Some(never)) => format!(" None of 3 tries met it at {}.", name(never)),
                (None, None) => String::new(),
            };
            format!("Capacity: {} is the highest load with {criterion}.{certain}", name(found))
        }
    })
}

fn setup(page: &mut TextPage, document: &BenchDocument, is_brief: bool) {
    let mut fact = |label: &str, text: &str| page.fact(Paint::Plain, label, &clean(text));
    let BenchDocument { target, workload, settings, runs, .. } = document;
    fact("Target", &where_to(target));
    fact("Protocol", &protocol(target));
    let source = workload.source.as_ref().map_or("built in", |source| source);
    let mut parts = vec![format!("{} ({source})", workload.name)];
    parts.extend(workload.parameters.iter().map(|(name, value)| format!("{name}={}", clean(value))));
    parts.extend(workload.file_set.map(|set| format!("{}, {}", counted(set.files, "file", "files"), bytes(set.bytes))));
    parts.extend(workload.seed.map(|seed| format!("seed {seed}")));
    fact("Workload", &parts.join("; "));
    let schedule = match settings.schedule {
        LoopModel::Closed { think_ns: Nanos(0) } => "closed loop".to_owned(),
        LoopModel::Closed { think_ns } => format!("closed loop, {} between operations", unbroken(think_ns)),
        LoopModel::Open { rate, per_user, random } => {
            let random = if random { ", at random" } else { "" };
            let rate = match (settings.rates.as_slice(), per_user) {
                ([first, .., last], _) => format!("{first} to {last} operations/s of all users together"),
                (_, true) => format!("{} operations/s of each user", number(rate)),
                (_, false) => format!("{} operations/s of all users together", number(rate)),
            };
            format!("open loop, {rate}{random}")
        }
    };
    let warmup = match settings.warmup_ns {
        Nanos(0) => "without warm-up".to_owned(),
        length => format!("after {} of warm-up", unbroken(span(length))),
    };
    let length = match settings.passes {
        Some(passes) => format!("{} of each user", counted(passes.into(), "pass", "passes")),
        None => unbroken(span(settings.duration_ns)),
    };
    let mut load = format!("{schedule}; {length} at each load point {warmup}");
    if settings.sessions_per_user > 1 {
        load += &format!("; {} sessions a user", settings.sessions_per_user);
    }
    if settings.connections_per_session > 1 {
        load += &format!("; {} connections a session", settings.connections_per_session);
    }
    if settings.busy_poll {
        load += "; busy polling";
    }
    if let Some(rate) = settings.connects_per_second {
        load += &format!("; {} connects/s", number(rate));
    }
    fact("Load", &format!("{load}; {}", counted(settings.threads.into(), "thread", "threads")));
    if is_brief {
        return;
    }
    if runs.iter().any(BenchRun::has_wire) {
        fact("Times", "inside the client, and on the wire for comparison");
    }
    for (name, value) in &document.environment {
        fact(&capital(&name.replace('_', " ")), value);
    }
    if let Some(date) = date(document.started_ns) {
        fact("Started", &format!("{date} UTC with smbscope {}", document.generator.version));
    }
}

fn where_to(target: &TargetEntry) -> String {
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    let mut text = match target.is_local() {
        true => format!("local folder {}", target.share),
        false => format!("{host}:{}, share {}", target.port, target.share),
    };
    if let Some(directory) = &target.directory {
        text += &format!(", directory {directory}");
    }
    if let Some(user) = &target.user {
        text += &format!(", as {user}");
    }
    text
}

fn protocol(target: &TargetEntry) -> String {
    if target.is_local() {
        return "none: calls on the file system, counted as the SMB2 commands that they stand for".to_owned();
    }
    let dialect = match &target.dialect {
        Some(dialect) if dialect.starts_with(|c: char| c.is_ascii_digit()) => format!("SMB {dialect}"),
        Some(dialect) => format!("SMB1 ({dialect})"),
        None => "not negotiated".to_owned(),
    };
    let with = |asked: &str, found: &Option<String>| match found {
        Some(found) => format!("{asked} ({found})"),
        // `on` was requested and the dialect negotiated, but the server did not require signing.
        None if asked == "on" && target.dialect.is_some() => "enabled, not required".to_owned(),
        None => asked.to_owned(),
    };
    let signing = with(&target.signing, &target.signing_algorithm);
    format!("{dialect}, signing {signing}, encryption {}", with(&target.encryption, &target.cipher))
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 { thousands(value as u64) } else { format!("{value:.1}") }
}
