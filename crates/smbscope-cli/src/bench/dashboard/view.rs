//! Content of the dashboard, and how it is drawn: most important parts first. Parts that do not fit are omitted from
//! the end.

use crate::screen::{Look, draw_spark, table_row};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Table};
use smbscope_load::engine::EnginePhase;
use smbscope_load::prepare;
use smbscope_model::{CommandGroup, Nanos};
use smbscope_report::{bench, clean, counted, or_dash, rate};
use smbscope_run::progress::{Heading, RampSnapshot};
use std::collections::{BTreeMap, VecDeque};

/// Intervals kept: ten minutes of seconds, more than the width of any terminal.
const HISTORY_MAX: usize = 600;

const STATUSES_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FinishedLoadPoint {
    pub(crate) users: u32,
    pub(crate) per_second: f64,
    pub(crate) p50: Option<Nanos>,
    pub(crate) p95: Option<Nanos>,
    pub(crate) errors: u64,
    /// Operations with an unexpected result.
    pub(crate) unexpected: u64,
    /// The client limited the load.
    pub(crate) limited: bool,
}

impl FinishedLoadPoint {
    pub(crate) fn from_run(run: &bench::BenchRun) -> FinishedLoadPoint {
        FinishedLoadPoint {
            users: run.users,
            per_second: run.operations_per_second,
            p50: run.headline().p50,
            p95: run.headline().p95,
            errors: run.error_count(),
            unexpected: run.unexpected_count(),
            limited: run.client_cpu.is_some_and(|cpu| cpu.limited),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct DashboardState {
    pub(crate) heading: Heading,
    pub(crate) preparing: Option<String>,
    pub(crate) now: RampSnapshot,
    /// Commands per second and p95 of each snapshot, newest last.
    pub(crate) history: VecDeque<(f64, Option<Nanos>)>,
    pub(crate) errors: u64,
    /// Operations of this load point with an unexpected result.
    pub(crate) unexpected: u64,
    pub(crate) statuses: BTreeMap<String, u64>,
    pub(crate) failures: u64,
    pub(crate) finished: Vec<FinishedLoadPoint>,
}

impl DashboardState {
    pub(crate) fn new(heading: Heading) -> DashboardState {
        DashboardState { heading, ..DashboardState::default() }
    }

    pub(crate) fn update(&mut self, snapshot: RampSnapshot) {
        if snapshot.point.number != self.now.point.number {
            (self.errors, self.unexpected, self.failures) = (0, 0, 0);
            self.statuses.clear();
        }
        let live = &snapshot.live;
        self.errors += live.errors;
        self.unexpected += live.unexpected;
        self.failures += live.failures;
        for (status, count) in &live.statuses {
            let status = status.to_string();
            if self.statuses.len() < STATUSES_MAX || self.statuses.contains_key(&status) {
                *self.statuses.entry(status).or_default() += count;
            }
        }
        if matches!(live.phase, EnginePhase::Warmup | EnginePhase::Measuring) {
            if self.history.len() == HISTORY_MAX {
                self.history.pop_front();
            }
            self.history.push_back((snapshot.per_second(live.commands), live.p95));
        }
        self.preparing = None;
        self.now = snapshot;
    }

    pub(crate) fn prepare(&mut self, made: &prepare::PrepareProgress) {
        self.preparing = Some(format!("file {} of {}", made.files, made.of_files));
    }

    pub(crate) fn phase_name(&self) -> &str {
        match &self.preparing {
            Some(what) => what,
            None => phase_name(self.now.live.phase),
        }
    }

    pub(crate) fn finish(&mut self, finished: FinishedLoadPoint) {
        self.finished.push(finished);
    }

    /// Returns statuses with their counts, most frequent first.
    pub(crate) fn top_statuses(&self) -> Vec<(&str, u64)> {
        let mut found: Vec<(&str, u64)> =
            self.statuses.iter().map(|(status, count)| (status.as_str(), *count)).collect();
        found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        found
    }
}

pub(super) fn phase_name(phase: EnginePhase) -> &'static str {
    match phase {
        EnginePhase::Connecting => "connecting",
        EnginePhase::Warmup => "warm-up",
        EnginePhase::Measuring => "measuring",
        EnginePhase::Ending => "ending",
        EnginePhase::Idle => "between load points",
    }
}

/// Returns e.g. ` (none unexpected)` to follow a number of errors, or nothing without errors.
pub(super) fn of_them(errors: u64, unexpected: u64) -> String {
    match (errors, unexpected) {
        (0, 0) => String::new(),
        (_, 0) => " (none unexpected)".to_owned(),
        (_, 1) => " (1 operation unexpected)".to_owned(),
        (_, n) => format!(" ({n} operations unexpected)"),
    }
}

const SPARK_HEIGHT: u16 = 3;

const STATUSES_LISTED: usize = 5;

pub(super) fn draw(frame: &mut Frame, state: &DashboardState, look: Look) {
    let area = frame.area();
    let width = area.width;
    let groups = group_rows(state);
    let errors = error_lines(state, look);
    let done = finished_lines(state, width);
    let lines_over_time = u16::from(!state.history.is_empty()) * (1 + SPARK_HEIGHT);
    let mut parts = [
        ("header", header(state, look, width).len() as u16),
        ("groups", if groups.is_empty() { 0 } else { groups.len() as u16 + 2 }),
        ("commands", lines_over_time),
        ("p95", lines_over_time),
        ("errors", if errors.is_empty() { 0 } else { errors.len() as u16 + 2 }),
        ("done", if done.is_empty() { 0 } else { done.len() as u16 + 2 }),
    ];
    fit(&mut parts, area.height.saturating_sub(1));
    let heights = parts.iter().map(|(_, height)| Constraint::Length(*height));
    let areas = Layout::vertical(heights.chain([Constraint::Fill(1), Constraint::Length(1)])).split(area);
    frame.render_widget(Paragraph::new(header(state, look, width)), areas[0]);
    draw_groups(frame, groups, areas[1], look);
    let rates = spark_title("Commands/s", rate_note(state), look);
    draw_spark(frame, rates, &commands_over_time(state), areas[2], look.tinted(Color::Cyan));
    let p95 = spark_title("p95", p95_note(state), look);
    draw_spark(frame, p95, &p95_over_time(state), areas[3], look.tinted(Color::Magenta));
    let heading = format!("Errors{}", of_them(state.errors, state.unexpected));
    draw_lines(frame, heading, errors, areas[4], look);
    draw_lines(frame, "Done", newest(done, areas[5].height), areas[5], look);
    let help = match state.preparing {
        Some(_) => "Ctrl-C or q ends the run; the next run reuses its files",
        None => "Ctrl-C or q ends this load point and keeps its results",
    };
    frame.render_widget(Paragraph::new(help).style(look.faint()), areas[7]);
}

/// Shrinks parts until they fit: first finished load points, then sparklines, then errors.
fn fit(parts: &mut [(&str, u16); 6], room: u16) {
    let least = [("done", 3), ("p95", 2), ("commands", 2), ("errors", 3), ("done", 0), ("p95", 0), ("commands", 0)];
    for (name, least) in least.into_iter().chain([("errors", 0), ("groups", 0)]) {
        let taken: u16 = parts.iter().map(|(_, height)| *height).sum();
        let too_much = taken.saturating_sub(room);
        if let Some((_, height)) = parts.iter_mut().find(|(part, _)| *part == name) {
            let smaller = height.saturating_sub(too_much).max(least.min(*height));
            // Below its minimum, a part is hidden.
            *height = if least == 0 && too_much > 0 { 0 } else { smaller };
        }
    }
}

fn header(state: &DashboardState, look: Look, width: u16) -> Vec<Line<'static>> {
    let (now, live) = (&state.now, &state.now.live);
    let mut lines = vec![Line::from(vec![
        Span::styled("smbscope bench  ", look.heading()),
        Span::raw(format!("{} on {}", clean(&state.heading.workload), clean(&state.heading.target))),
    ])];
    let users = counted(now.point.users.into(), "user", "users");
    let mut phase = vec![Span::styled(
        match (now.point.number, now.point.of) {
            (0, _) => String::new(),
            (number, Some(of)) => format!("Load point {number}/{of}: {users}  "),
            (number, None) => format!("Load point {number}: {users}  "),
        },
        look.heading(),
    )];
    phase.push(Span::styled(
        format!("{}  ", clean(state.phase_name())),
        if live.phase == EnginePhase::Measuring { look.tinted(Color::Green) } else { look.tinted(Color::Yellow) },
    ));
    if let Some((left, whole)) = now.remaining {
        let text = format!("{:.0} s left", left.as_secs_f64().ceil());
        let taken: usize = phase.iter().map(Span::width).sum::<usize>() + text.len() + 1;
        let room = usize::from(width).saturating_sub(taken).min(24);
        let share = if whole.is_zero() { 1.0 } else { 1.0 - left.as_secs_f64() / whole.as_secs_f64() };
        let full = (share.clamp(0.0, 1.0) * room as f64).round() as usize;
        phase.push(Span::styled("█".repeat(full), look.tinted(Color::Green)));
        phase.push(Span::styled("░".repeat(room - full), look.faint()));
        phase.push(Span::raw(if room > 0 { format!(" {text}") } else { text }));
    }
    lines.push(Line::from(phase));
    if now.point.number == 0 {
        return lines;
    }
    let megabytes = |bytes: u64| format!("{:.2}", now.per_second(bytes) / 1e6);
    let failed = if state.failures > 0 { format!(" ({} failed)", state.failures) } else { String::new() };
    let connected = format!("{}/{}{failed}", live.sessions, now.point.users);
    let are_missing = live.sessions < now.point.users && live.phase == EnginePhase::Measuring;
    let facts = [
        ("Users", connected, are_missing || state.failures > 0),
        ("Commands/s", rate(now.per_second(live.commands)), false),
        ("Errors", state.errors.to_string(), state.unexpected > 0),
        ("MB/s read", megabytes(live.bytes_read), false),
        ("written", megabytes(live.bytes_written), false),
    ];
    let mut spans = Vec::new();
    for (name, value, is_bad) in facts {
        spans.push(Span::styled(format!("{name} "), look.faint()));
        spans.push(Span::styled(format!("{value}  "), if is_bad { look.alarm() } else { look.heading() }));
    }
    lines.push(Line::from(spans));
    if let Some(cpu) = now.cpu {
        let text = format!("{:.0}% of one processor, busiest thread {:.0}%", cpu.percent, cpu.busiest_percent);
        let mut spans = vec![Span::styled("Client CPU ", look.faint()), Span::raw(text)];
        if cpu.limited {
            spans.insert(0, Span::styled("The client is the limit  ", look.warning()));
        }
        lines.push(Line::from(spans));
    }
    lines
}

fn group_rows(state: &DashboardState) -> Vec<[String; 5]> {
    let now = &state.now;
    now.live
        .groups
        .iter()
        .map(|group| {
            let rate = rate(now.per_second(group.commands));
            // Expected waits have no meaningful response time.
            let times =
                if group.group == CommandGroup::Waiting { [None; 3] } else { [group.p50, group.p95, group.p99] };
            let [p50, p95, p99] = times.map(or_dash);
            [group.group.to_string(), rate, p50, p95, p99]
        })
        .collect()
}

fn draw_groups(frame: &mut Frame, rows: Vec<[String; 5]>, area: Rect, look: Look) {
    if area.height < 2 {
        return;
    }
    let rows = rows.into_iter().map(table_row);
    let header = table_row(["Group", "/s", "Median", "p95", "p99"].map(str::to_owned));
    let header = header.style(look.heading()).top_margin(1);
    let widths = [Constraint::Length(11), Constraint::Length(8)].into_iter().chain([Constraint::Length(7); 3]);
    frame.render_widget(Table::new(rows, widths).header(header).column_spacing(1), area);
}

fn commands_over_time(state: &DashboardState) -> Vec<u64> {
    state.history.iter().map(|(rate, _)| rate.round() as u64).collect()
}

fn p95_over_time(state: &DashboardState) -> Vec<u64> {
    state.history.iter().map(|(_, p95)| p95.map_or(0, |p95| p95.0.max(0) as u64)).collect()
}

fn rate_note(state: &DashboardState) -> String {
    let most = state.history.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
    format!("at most {}", rate(most))
}

fn p95_note(state: &DashboardState) -> String {
    format!("at most {}", or_dash(state.history.iter().filter_map(|(_, p95)| *p95).max()))
}

fn spark_title(name: &str, note: String, look: Look) -> Line<'static> {
    Line::from(vec![Span::styled(format!("{name}  "), look.heading()), Span::styled(note, look.faint())])
}

fn error_lines(state: &DashboardState, look: Look) -> Vec<Line<'static>> {
    let style = if state.unexpected > 0 { look.alarm() } else { Style::new() };
    let mut listed = state.top_statuses();
    listed.truncate(STATUSES_LISTED);
    let others = state.errors.saturating_sub(listed.iter().map(|(_, count)| count).sum());
    if others > 0 {
        listed.push(("others", others));
    }
    listed.into_iter().map(|(status, count)| Line::styled(format!("{count:>10}  {}", clean(status)), style)).collect()
}

fn finished_lines(state: &DashboardState, width: u16) -> Vec<Line<'static>> {
    let lines = state.finished.iter().map(|point| {
        let users = counted(point.users.into(), "user", "users");
        let (p50, p95) = (or_dash(point.p50), or_dash(point.p95));
        let mut text = format!("{users:>10} {:>8}/s  median {p50:>7}  p95 {p95:>7}", rate(point.per_second));
        if point.errors > 0 {
            text += &format!("  {} errors{}", point.errors, of_them(point.errors, point.unexpected));
        }
        if point.limited {
            text += "  client limited";
        }
        Line::raw(text.chars().take(usize::from(width)).collect::<String>())
    });
    lines.collect()
}

fn newest(mut lines: Vec<Line<'static>>, height: u16) -> Vec<Line<'static>> {
    let room = usize::from(height.saturating_sub(2));
    lines.drain(..lines.len().saturating_sub(room));
    lines
}

fn draw_lines(frame: &mut Frame, name: impl Into<String>, mut lines: Vec<Line<'static>>, area: Rect, look: Look) {
    if area.height < 3 || lines.is_empty() {
        return;
    }
    lines.splice(..0, [Line::raw(""), Line::styled(name.into(), look.heading())]);
    frame.render_widget(Paragraph::new(lines), area);
}
