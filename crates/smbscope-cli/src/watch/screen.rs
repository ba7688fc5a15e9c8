//! Draws the display of `watch`: the answers, a small history, and one table at a time.

use super::WatchState;
use super::minute::Minute;
use crate::screen::{Look, Screen, ScreenEvent, draw_spark, table_row};
use crossterm::event::KeyEvent;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Table, TableState, Wrap};
use smbscope_model::prose::{clean, time_of_day};
use smbscope_model::units::short_bytes;
use smbscope_report::{Report, counted, or_dash, rate};
use smbscope_run::analysis::live::Outstanding;
use smbscope_stats::{DurationStatistics, Entities, EntityStatistics};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// Rows prepared for a table; more don't fit a terminal.
const ROWS_MAX: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Groups,
    Clients,
    Users,
    Shares,
    Files,
    Errors,
    Outstanding,
    Minutes,
}

impl View {
    const ALL: [(View, char, &'static str); 8] = [
        (View::Groups, 'g', "Groups"),
        (View::Clients, 'c', "Clients"),
        (View::Users, 'u', "Users"),
        (View::Shares, 's', "Shares"),
        (View::Files, 'f', "Files"),
        (View::Errors, 'e', "Errors"),
        (View::Outstanding, 'n', "outstandiNg"),
        (View::Minutes, 'm', "Minutes"),
    ];

    pub(super) fn by_key(letter: char) -> Option<View> {
        View::ALL.iter().find(|(_, key, _)| *key == letter).map(|(view, ..)| *view)
    }

    pub(super) fn next(self) -> View {
        View::ALL[(self as usize + 1) % View::ALL.len()].0
    }

    pub(super) fn previous(self) -> View {
        View::ALL[(self as usize + View::ALL.len() - 1) % View::ALL.len()].0
    }
}

pub(super) struct WatchScreen(Screen);

impl WatchScreen {
    pub(super) fn open() -> io::Result<WatchScreen> {
        Screen::open(std::env::var_os("NO_COLOR").is_none()).map(WatchScreen)
    }

    pub(super) fn draw(&mut self, state: &WatchState) -> io::Result<()> {
        self.0.draw(|frame, look| draw(frame, state, look))
    }

    /// Returns a key that was pressed. Fails if the terminal is gone.
    pub(super) fn key(&mut self) -> io::Result<Option<KeyEvent>> {
        Ok(match self.0.event(Duration::ZERO)? {
            ScreenEvent::Key(key) => Some(key),
            ScreenEvent::None | ScreenEvent::Resized | ScreenEvent::CtrlC => None,
        })
    }
}

pub(super) fn draw(frame: &mut Frame, state: &WatchState, look: Look) {
    let area = frame.area();
    let minute = state.minutes.last();
    let server = minute.and_then(Minute::server_words).unwrap_or_default();
    let answers = [
        ("Last minute", minute.map_or("the first minute is not over", |minute| minute.headline.as_str())),
        ("Last hour", state.hour_headline.as_str()),
        ("Counters", server.as_str()),
    ];
    let answers: Vec<Line<'_>> = answers
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| Line::from(vec![Span::styled(format!("{name}  "), look.heading()), Span::raw(clean(text))]))
        .collect();
    // Words that don't fit leave up to a fifth of a line empty.
    let lines = answers.iter().map(|line| 1 + line.width() * 5 / 4 / usize::from(area.width.max(1)));
    let height = (lines.sum::<usize>() as u16).min(area.height / 3);
    let answers = Paragraph::new(answers).wrap(Wrap { trim: true });
    let titles = titles(state, look);
    let title_lines = if titles.width() <= usize::from(area.width) { 1 } else { 2 };
    let [top, said, history, tabs, table, help] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(height),
        Constraint::Length(if area.height >= 16 { 4 } else { 0 }),
        Constraint::Length(title_lines),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(heading(state, look)), top);
    frame.render_widget(answers, said);
    draw_history(frame, state, history, look);
    frame.render_widget(Paragraph::new(titles).wrap(Wrap { trim: true }), tabs);
    match state.client {
        Some(client) => draw_client(frame, state, client, table, look),
        None => draw_table(frame, state, table, look),
    }
    frame.render_widget(Paragraph::new(last_line(state, area.width)).style(look.faint()), help);
}

fn heading(state: &WatchState, look: Look) -> Line<'static> {
    let second = &state.second;
    let commands: u64 = second.groups.iter().map(|group| group.commands).sum();
    let mut spans = vec![Span::styled(format!("smbscope watch {}  ", clean(&state.name)), look.heading())];
    if second.seconds > 0 {
        let per_second = rate(commands as f64 / f64::from(second.seconds));
        spans.push(Span::raw(format!("{} UTC  {per_second} commands/s", time_of_day(second.time, 0))));
    } else {
        spans.push(Span::raw("no packet yet"));
    }
    if second.outstanding_count > 0 {
        spans.push(Span::raw(format!("  {} outstanding", second.outstanding_count)));
    }
    if let Some(oldest) = second.outstanding.first().filter(|oldest| (second.looked - oldest.since).0 >= 5_000_000_000)
    {
        let waited = smbscope_report::span(second.looked - oldest.since);
        spans.push(Span::styled(format!("  the oldest for {waited}"), look.alarm()));
    }
    for (place, packets) in state.dropped.unwrap_or_default().by_place() {
        if packets > 0 {
            let packets = counted(packets, "packet", "packets");
            spans.push(Span::styled(format!("  {packets} dropped by the {place}"), look.alarm()));
        }
    }
    if state.frozen {
        spans.push(Span::styled("  frozen", look.warning()));
    }
    Line::from(spans)
}

fn draw_history(frame: &mut Frame, state: &WatchState, area: Rect, look: Look) {
    let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).spacing(2).areas(area);
    let p95 = |time: &DurationStatistics| time.p95.map_or(0, |p95| p95.0.max(0) as u64);
    let minutes: Vec<u64> = state.minutes.iter().map(|minute| p95(&minute.response_time)).collect();
    let most = state.minutes.iter().filter_map(|minute| minute.response_time.p95).max();
    let parts = [
        (left, format!("Commands of each second, at most {}", most_of(&state.second.commands)), &state.second.commands),
        (right, format!("p95 of each minute, at most {}", or_dash(most)), &minutes),
    ];
    for (area, title, values) in parts {
        draw_spark(frame, Line::styled(title, look.faint()), values, area, Style::new());
    }
}

fn most_of(values: &[u64]) -> u64 {
    values.iter().copied().max().unwrap_or_default()
}

fn titles(state: &WatchState, look: Look) -> Line<'static> {
    let spans = View::ALL.iter().map(|(view, _, title)| {
        let style = if *view == state.view { look.selected() } else { look.faint() };
        Span::styled(format!(" {title} "), style)
    });
    Line::from(spans.collect::<Vec<_>>())
}

fn last_line(state: &WatchState, width: u16) -> String {
    match (&state.said, state.is_typing) {
        (_, true) => format!("/{}_  Enter keeps the filter, Esc removes it", clean(&state.filter)),
        (Some(said), _) => clean(said),
        _ if state.client.is_some() => "Esc: all clients  space: freeze  k: mark  w: report  q: end".to_owned(),
        _ => {
            let order = if state.sorts_by_time { "by commands" } else { "by time" };
            let open = if state.view == View::Clients { "  Enter: open" } else { "" };
            let filter = match state.filter.as_str() {
                "" => String::new(),
                filter => format!("  only: {}", clean(filter)),
            };
            let keys = format!("o: {order}  /: filter  space: freeze  k: mark  w: report  q: end{filter}");
            match format!("letter or Tab: table{open}  {keys}") {
                all if all.chars().count() <= usize::from(width) => all,
                _ => format!("/: filter  space: freeze  w: report  q: end{filter}"),
            }
        }
    }
}

/// Rows of a table with its headings. The first column takes the room that is left.
#[derive(Debug, Clone, PartialEq)]
struct Rows {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// Width of every column but the first, without the space before it.
const COLUMN: u16 = 10;
/// Width that the first column keeps while others can be left out.
const NAME_MIN: u16 = 16;
/// Headings of the columns that a narrow terminal leaves out first.
const EXPENDABLE: [&str; 4] = ["p99", "Median", "Longest", "Waiting"];

impl Rows {
    /// Leaves out columns until the names fit.
    fn fitted(mut self, width: u16) -> Rows {
        let others = |rows: &Rows| rows.headings.len().saturating_sub(1) as u16;
        while others(&self) > 1 && width < NAME_MIN + others(&self) * (COLUMN + 1) {
            let place = EXPENDABLE.iter().find_map(|name| self.headings.iter().position(|heading| heading == name));
            let place = place.unwrap_or(self.headings.len() - 1);
            self.headings.remove(place);
            self.rows.iter_mut().filter(|row| row.len() > place).for_each(|row| drop(row.remove(place)));
        }
        self
    }

    fn table(self, width: u16, look: Look) -> Table<'static> {
        let Rows { headings, rows } = self.fitted(width);
        let others = headings.iter().skip(1).map(|_| Constraint::Length(COLUMN));
        let widths: Vec<Constraint> = std::iter::once(Constraint::Fill(1)).chain(others).collect();
        let header = table_row(headings.iter().map(|heading| (*heading).to_owned())).style(look.heading());
        Table::new(rows.into_iter().map(table_row), widths).header(header).column_spacing(1)
    }
}

fn draw_table(frame: &mut Frame, state: &WatchState, area: Rect, look: Look) {
    let rows = filtered_rows(state);
    if rows.rows.is_empty() {
        let text = match (state.view, state.filter.is_empty()) {
            (_, false) => "none with this name",
            (View::Groups, _) => "none in the last 60 seconds",
            (View::Outstanding, _) => "none",
            _ if state.minutes.is_empty() => "the first minute is not over",
            _ => "none in the last minute",
        };
        frame.render_widget(Paragraph::new(text).style(look.faint()), area);
        return;
    }
    let table = rows.table(area.width, look);
    let mut selection = TableState::new().with_selected(state.selected);
    frame.render_stateful_widget(table.row_highlight_style(look.selected()), area, &mut selection);
}

fn filtered_rows(state: &WatchState) -> Rows {
    let mut rows = rows(state);
    let wanted = state.filter.to_lowercase();
    rows.rows.retain(|texts| texts.first().is_none_or(|name| name.to_lowercase().contains(&wanted)));
    rows.rows.truncate(ROWS_MAX);
    rows
}

/// Returns the number of rows of the table that is shown.
pub(super) fn row_count(state: &WatchState) -> usize {
    filtered_rows(state).rows.len()
}

/// Returns the client in the selected row of the clients.
pub(super) fn selected_client(state: &WatchState) -> Option<IpAddr> {
    let rows = filtered_rows(state).rows;
    rows.get(state.selected.unwrap_or(0))?.first()?.parse().ok()
}

/// Draws what the last minute says of a client: its causes, connections, commands without a response, and groups.
fn draw_client(frame: &mut Frame, state: &WatchState, client: IpAddr, area: Rect, look: Look) {
    let Some(report) = &state.report else { return };
    let lines = client_lines(state, report, client);
    let wrapped = lines.iter().map(|line| 1 + line.chars().count() / usize::from(area.width.max(1))).sum::<usize>();
    let text = Paragraph::new(lines.into_iter().map(Line::from).collect::<Vec<_>>()).wrap(Wrap { trim: false });
    let [above, below] =
        Layout::vertical([Constraint::Length((wrapped as u16).min(area.height * 2 / 3)), Constraint::Fill(1)])
            .areas(area);
    frame.render_widget(text, above);
    let groups = client_row(report, client).map_or(&[][..], |row| &row.groups);
    let rows = groups.iter().map(|(group, time)| {
        let cells = [time.p50, time.p95, time.p99, time.max].map(or_dash);
        [group.to_string(), time.count.to_string()].into_iter().chain(cells).collect()
    });
    let headings = vec!["Group", "Commands", "Median", "p95", "p99", "Longest"];
    frame.render_widget(Rows { headings, rows: rows.collect() }.table(below.width, look), below);
}

fn client_row(report: &Report, client: IpAddr) -> Option<&EntityStatistics> {
    report.aggregate.clients.entries.iter().find(|(address, _)| *address == client).map(|(_, row)| row)
}

fn client_lines(state: &WatchState, report: &Report, client: IpAddr) -> Vec<String> {
    let figures = match client_row(report, client) {
        None => "no commands in the last minute".to_owned(),
        Some(row) => {
            let [read, written] = [row.bytes_read, row.bytes_written].map(|bytes| short_bytes(bytes as f64));
            let commands = counted(row.count, "command", "commands");
            let errors = counted(row.errors, "error", "errors");
            format!("{commands} in the last minute, {errors}, {read} read, {written} written")
        }
    };
    let mut lines = vec![format!("Client {client}: {figures}")];
    let address = client.to_string();
    let causes = report.explanation.answer.causes.iter();
    lines.extend(causes.filter(|cause| cause.subject.client.as_ref() == Some(&address)).map(|cause| cause.in_full()));
    for connection in report.connections.iter().filter(|connection| connection.endpoints.client.ip() == client) {
        let resent = connection.to_server.retransmitted + connection.to_client.retransmitted;
        let dialect = connection.dialect.map_or_else(|| "dialect unknown".to_owned(), |dialect| dialect.to_string());
        let names: Vec<&str> = connection.users.iter().chain(&connection.shares).map(|name| &**name).collect();
        lines.push(format!(
            "→ {}  {dialect}, round trip {}, {}, {}  {}",
            connection.endpoints.server,
            or_dash(connection.round_trip()),
            counted(connection.exchanges, "command", "commands"),
            counted(resent, "retransmission", "retransmissions"),
            names.join(" ")
        ));
    }
    for command in state.second.outstanding.iter().filter(|command| command.client.ip() == client) {
        let waited = smbscope_report::span(state.second.looked - command.since);
        lines.push(format!("{} without a response for {waited}: {}", command.group, place(command)));
    }
    lines.iter().map(|line| clean(line)).collect()
}

fn rows(state: &WatchState) -> Rows {
    let report = state.report.as_ref().map(|report| &report.aggregate);
    match state.view {
        View::Groups => group_rows(state),
        View::Clients => entity_rows(state, "Client", report.map(|report| &report.clients), ToString::to_string),
        View::Users => entity_rows(state, "User", report.map(|report| &report.users), |user| clean(user)),
        View::Shares => entity_rows(state, "Share", report.map(|report| &report.shares), |share| clean(share)),
        View::Files => entity_rows(state, "File", report.map(|report| &report.files), |file| {
            clean(&format!(
                "{}{}",
                file.share.as_deref().map(|share| format!("{share}\\")).unwrap_or_default(),
                file.path
            ))
        }),
        View::Errors => {
            let mut sums = std::collections::BTreeMap::<&str, u64>::new();
            for (status, count) in
                report.into_iter().flat_map(|report| &report.groups).flat_map(|group| &group.row.errors)
            {
                *sums.entry(status).or_default() += count;
            }
            let mut rows: Vec<(&str, u64)> = sums.into_iter().collect();
            rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let rows = rows.into_iter().map(|(status, count)| vec![clean(status), count.to_string()]).collect();
            Rows { headings: vec!["Status", "Count"], rows }
        }
        View::Outstanding => outstanding_rows(state),
        View::Minutes => {
            let rows = state.minutes.iter().rev().map(|minute| {
                let time = minute.response_time;
                let marks: Vec<String> = minute.marks.iter().map(|mark| time_of_day(*mark, 0)).collect();
                let marks = if marks.is_empty() { String::new() } else { format!("[marked {}] ", marks.join(", ")) };
                let name = format!("{}  {marks}{}", &time_of_day(minute.from_ns, 0)[..5], minute.headline);
                vec![name, minute.commands.to_string(), minute.errors.to_string(), or_dash(time.p50), or_dash(time.p95)]
            });
            Rows { headings: vec!["Minute (UTC)", "Commands", "Errors", "Median", "p95"], rows: rows.collect() }
        }
    }
}

fn group_rows(state: &WatchState) -> Rows {
    let second = &state.second;
    let seconds = f64::from(second.seconds.max(1));
    let mut groups: Vec<_> = second.groups.iter().collect();
    if state.sorts_by_time {
        groups.sort_by_key(|group| std::cmp::Reverse(group.response_time.sum_ns));
    } else {
        groups.sort_by_key(|group| std::cmp::Reverse(group.commands));
    }
    let rows = groups.into_iter().map(|group| {
        let DurationStatistics { p50, p95, p99, max, .. } = group.response_time;
        let mut row = vec![group.group.to_string(), rate(group.commands as f64 / seconds)];
        row.extend([p50, p95, p99, max].map(or_dash));
        row.extend([group.errors, group.outstanding].map(|count| count.to_string()));
        row
    });
    let headings = vec!["Last 60 seconds", "/s", "Median", "p95", "p99", "Longest", "Errors", "Waiting"];
    Rows { headings, rows: rows.collect() }
}

fn entity_rows<K>(
    state: &WatchState,
    heading: &'static str,
    entities: Option<&Entities<K>>,
    name: impl Fn(&K) -> String,
) -> Rows {
    let mut entries: Vec<&(K, EntityStatistics)> =
        entities.into_iter().flat_map(|entities| &entities.entries).collect();
    match state.sorts_by_time {
        true => entries.sort_by_key(|(_, row)| std::cmp::Reverse(row.response_time.sum_ns)),
        false => entries.sort_by_key(|(_, row)| std::cmp::Reverse(row.count)),
    }
    let rows = entries.into_iter().map(|(key, row)| {
        let DurationStatistics { p50, p95, max, .. } = row.response_time;
        let mut cells = vec![name(key), row.count.to_string()];
        cells.extend([p50, p95, max].map(or_dash));
        cells.push(row.errors.to_string());
        cells
    });
    Rows { headings: vec![heading, "Commands", "Median", "p95", "Longest", "Errors"], rows: rows.collect() }
}

fn place(command: &Outstanding) -> &str {
    command.path.as_deref().or(command.share.as_deref()).unwrap_or_default()
}

fn outstanding_rows(state: &WatchState) -> Rows {
    let second = &state.second;
    let rows = second.outstanding.iter().map(|command| {
        let name = format!("{} {} → {} {}", command.group, command.client.ip(), command.server, place(command));
        vec![clean(&name), (second.looked - command.since).to_string()]
    });
    Rows { headings: vec!["Command without a response", "Since"], rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_keeps_names_and_drops_whole_columns() {
        let headings = vec!["Last 60 seconds", "/s", "Median", "p95", "p99", "Longest", "Errors", "Waiting"];
        let row = ["Open/Close", "58", "1 ms", "2 ms", "3 ms", "4 ms", "5", "6"].map(str::to_owned).to_vec();
        let rows = Rows { headings, rows: vec![row] };
        // Seven columns of ten and a space, and a name of 16.
        assert_eq!(rows.clone().fitted(16 + 7 * 11), rows);
        let narrow = rows.clone().fitted(50);
        assert_eq!(narrow.headings, ["Last 60 seconds", "/s", "p95", "Errors"]);
        assert_eq!(narrow.rows, [["Open/Close", "58", "2 ms", "5"]]);
        assert_eq!(rows.fitted(1).headings, ["Last 60 seconds", "/s"]);
    }
}
