//! `smbscope watch`: a display on a terminal or a line per minute, and the report of everything at the end.

mod metrics;
mod minute;
mod screen;
mod server;
mod service;

use crate::analyze;
use crate::interrupt;
use crate::lab;
use crate::output::{self, Output};
use crate::record::random_key;
use crate::terminal;
use anyhow::bail;
use crossterm::event::{KeyCode, KeyEvent};
use metrics::WatchMetrics;
use minute::Minute;
use screen::{View, WatchScreen};
use service::Service;
use smbscope_analyze::slim::{Anonymize, SlimOptions};
use smbscope_capture::live::PacketDrops;
use smbscope_model::prose::time_of_day;
use smbscope_model::{Exchange, Timestamp};
use smbscope_report::{Report, html};
use smbscope_run::WatchedServer;
use smbscope_run::analysis::AnalysisError;
use smbscope_run::analysis::live::{self, LiveMinute, LiveObserver, LiveSecond};
use smbscope_run::exposition::{self, MetricsEndpoint, MetricsRegistry};
use smbscope_run::files::Sources;
use smbscope_run::options::{AnalysisOptions, AnalyzeFormat, QueryOptions, WatchFormat, WatchOptions};
use smbscope_run::watch::{self, CaptureLosses, CauseEvents, WatchedCapture, sandbox};
use std::io::{self, IsTerminal, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rows that a page key moves.
const PAGE: usize = 10;
/// Minutes listed on the display.
const MINUTES_MAX: usize = 60;

pub(crate) fn run(options: &WatchOptions) -> anyhow::Result<()> {
    output::refuse_ending::<AnalyzeFormat>(false, options.output.as_deref())?;
    let mut sources = Sources::default();
    let read = options.file.iter().filter(|file| file.as_os_str() != "-").chain(&options.thresholds);
    let read = read.chain(&options.metrics.metrics_config);
    read.chain(options.reading.decryption.files()).for_each(|file| sources.add(file));
    // Certificates and passwords are read again when they change.
    let read_later = options.metrics.metrics_config.as_deref().map(exposition::directories_of).unwrap_or_default();
    sandbox::prepare(options, &read_later, shows_display(options));
    // The sandbox will forbid it.
    let samba = if options.machine_metrics { lab::samba_reader()? } else { None };
    let mut output = Output::open(options.output.as_deref(), &sources)?;
    let registry = MetricsRegistry::new();
    let endpoint = MetricsEndpoint::open(&options.metrics, &registry)?;
    let notices = Arc::<Notices>::default();
    let told = Arc::clone(&notices);
    let tell = move |text: &str| told.tell(text);
    let mut capture = WatchedCapture::open(options, slim_options(options)?, tell)?;
    let stop = capture.set.stop_flag();
    interrupt::any_end_sets(&stop);
    if let Some(duration) = options.duration {
        watch::stop_after(duration, Arc::clone(&stop));
    }
    let analysis = analysis_options(options);
    let metrics = endpoint.is_some().then(|| WatchMetrics::new(registry));
    let losses = capture.losses();
    let mut display = Display::open(options, losses.clone(), metrics, notices, Arc::clone(&stop));
    display.causes = capture.causes.take();
    let QueryOptions { prometheus, also } = &options.queries;
    display.server = WatchedServer::begin(options.counters(samba), prometheus.as_ref(), also)?;
    let report = live::follow(&mut capture.set, &analysis, capture.clock, &mut display);
    let causes = display.close();
    let ended = capture.ended_because();
    if let Some(Err(error)) = capture.finish(causes) {
        terminal::say(&format!("warning: the ring ended: {error}"));
    }
    let mut report = match (report, &ended) {
        (Err(_), Some(why)) if !stop.load(Ordering::Relaxed) => bail!("{why}"),
        (report, _) => report.map_err(analyze::error)?,
    };
    let PacketDrops { kernel, interface } = losses.and_then(|losses| losses.known()).unwrap_or_default();
    report.quality.packets_dropped_by_kernel = kernel;
    report.quality.packets_dropped_by_interface = interface;
    // Without --by, a report has no groups to list.
    let text_options = analyze::text_options(&options.terminal, 0, false, &output);
    let result = analyze::write_report(&report, options.report_format(), &text_options, &mut output);
    output.settle(result)?;
    // A service manager ends the capture program as well.
    match ended.filter(|_| !stop.load(Ordering::Relaxed)) {
        Some(why) => bail!("{why}; the report ends there"),
        None => Ok(()),
    }
}

fn shows_display(options: &WatchOptions) -> bool {
    options.format.is_none() && io::stdout().is_terminal() && io::stdin().is_terminal()
}

fn analysis_options(options: &WatchOptions) -> AnalysisOptions {
    AnalysisOptions {
        reading: options.reading.clone(),
        thresholds: options.thresholds.clone(),
        ..AnalysisOptions::default()
    }
}

fn slim_options(options: &WatchOptions) -> anyhow::Result<SlimOptions> {
    let key = options.anonymize.then(random_key).transpose()?;
    Ok(SlimOptions {
        limits: options.reading.memory.budget(),
        tunnels: options.reading.tunnels.ports(),
        anonymize: key.map(|key| Anonymize { key, depth: true, extensions: true }),
        // The ring keeps messages as they were sent; `analyze` decrypts them.
        keys: None,
    })
}

/// Messages of other threads, for the display or else for standard error.
#[derive(Default)]
struct Notices {
    is_display_open: AtomicBool,
    waiting: Mutex<Vec<String>>,
}

impl Notices {
    fn tell(&self, text: &str) {
        if self.is_display_open.load(Ordering::Relaxed) {
            self.waiting().push(text.to_owned());
        } else {
            terminal::say(text);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<String>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close_display(&self) {
        self.is_display_open.store(false, Ordering::Relaxed);
        self.waiting().drain(..).for_each(|text| terminal::say(&text));
    }
}

enum Medium {
    Screen(Box<WatchScreen>),
    /// Standard output: the lines are the result.
    Lines(WatchFormat),
    Nowhere,
}

struct Display {
    medium: Medium,
    state: WatchState,
    losses: Option<CaptureLosses>,
    metrics: Option<WatchMetrics>,
    causes: Option<CauseEvents>,
    server: Option<WatchedServer>,
    notices: Arc<Notices>,
    service: Service,
    stop: Arc<AtomicBool>,
    wants_report: bool,
}

/// Content of the display.
struct WatchState {
    name: String,
    second: LiveSecond,
    minutes: Vec<Minute>,
    /// The last minute, for its tables.
    report: Option<Report>,
    hour_headline: String,
    hour_from: Timestamp,
    dropped: Option<PacketDrops>,
    /// Times marked in the current minute.
    marks: Vec<Timestamp>,
    /// Message about the last action.
    said: Option<String>,
    frozen: bool,
    view: View,
    /// Row of the table, once an arrow key selected one.
    selected: Option<usize>,
    /// Client whose page is open.
    client: Option<IpAddr>,
    filter: String,
    is_typing: bool,
    sorts_by_time: bool,
}

impl WatchState {
    fn show(&mut self, view: View) {
        (self.view, self.client, self.selected) = (view, None, None);
    }

    fn select(&mut self, moved: impl Fn(usize) -> usize) {
        let last = screen::row_count(self).saturating_sub(1);
        self.selected = Some(self.selected.map_or(0, moved).min(last));
    }
}

impl Display {
    fn open(
        options: &WatchOptions,
        losses: Option<CaptureLosses>,
        metrics: Option<WatchMetrics>,
        notices: Arc<Notices>,
        stop: Arc<AtomicBool>,
    ) -> Display {
        let name = options.interface.clone().or(options.file.as_ref().map(|file| file.display().to_string()));
        let state = WatchState {
            name: name.unwrap_or_default(),
            second: LiveSecond::default(),
            minutes: Vec::new(),
            report: None,
            hour_headline: String::new(),
            hour_from: Timestamp::default(),
            dropped: None,
            marks: Vec::new(),
            said: None,
            frozen: false,
            view: View::Groups,
            selected: None,
            client: None,
            filter: String::new(),
            is_typing: false,
            sorts_by_time: false,
        };
        let screen = shows_display(options).then(|| WatchScreen::open().ok()).flatten();
        let medium = match (screen, options.format) {
            (Some(screen), _) => Medium::Screen(Box::new(screen)),
            (None, None) if options.terminal.progress.quiet => Medium::Nowhere,
            (None, format) => Medium::Lines(format.unwrap_or(WatchFormat::Text)),
        };
        notices.is_display_open.store(matches!(medium, Medium::Screen(_)), Ordering::Relaxed);
        Display {
            medium,
            state,
            losses,
            metrics,
            causes: None,
            server: None,
            notices,
            service: Service::ready(),
            stop,
            wants_report: false,
        }
    }

    fn close(self) -> Option<CauseEvents> {
        drop(self.medium);
        self.notices.close_display();
        self.causes
    }

    fn draw(&mut self) {
        if let Medium::Screen(screen) = &mut self.medium {
            // A failed drawing must not end the capture.
            let _ = screen.draw(&self.state);
        }
    }

    fn press(&mut self, key: KeyEvent) {
        let state = &mut self.state;
        if state.is_typing {
            match key.code {
                KeyCode::Enter => state.is_typing = false,
                KeyCode::Esc => {
                    state.is_typing = false;
                    state.filter.clear();
                }
                KeyCode::Backspace => _ = state.filter.pop(),
                KeyCode::Char(letter) => state.filter.push(letter),
                _ => {}
            }
            return;
        }
        state.said = None;
        match key.code {
            KeyCode::Char('q') => self.stop.store(true, Ordering::Relaxed),
            KeyCode::Char(' ') => state.frozen = !state.frozen,
            KeyCode::Char('o') => state.sorts_by_time = !state.sorts_by_time,
            KeyCode::Char('/') => state.is_typing = true,
            KeyCode::Char('w') => self.wants_report = true,
            KeyCode::Char('k') => self.mark(),
            KeyCode::Down => state.select(|row| row + 1),
            KeyCode::Up => state.select(|row| row.saturating_sub(1)),
            KeyCode::PageDown => state.select(|row| row + PAGE),
            KeyCode::PageUp => state.select(|row| row.saturating_sub(PAGE)),
            KeyCode::Enter if state.view == View::Clients => state.client = screen::selected_client(state),
            KeyCode::Esc => (state.client, state.selected) = (None, None),
            KeyCode::Tab | KeyCode::Right => state.show(state.view.next()),
            KeyCode::BackTab | KeyCode::Left => state.show(state.view.previous()),
            KeyCode::Char(letter) => state.show(View::by_key(letter).unwrap_or(state.view)),
            _ => {}
        }
    }

    /// Marks this moment in the list of minutes. With a ring, the minute is saved.
    fn mark(&mut self) {
        let time = self.state.second.time;
        self.state.marks.push(time);
        let is_saved = self.causes.as_mut().is_some_and(CauseEvents::mark);
        let saved = if is_saved { "; its minute will be saved" } else { "" };
        self.state.said = Some(format!("marked: {} UTC{saved}", time_of_day(time, 0)));
    }
}

impl LiveObserver for Display {
    fn exchange(&mut self, exchange: &Exchange) {
        if let Some(metrics) = &mut self.metrics {
            metrics.exchange(exchange);
        }
    }

    fn second(&mut self, second: &LiveSecond) {
        if let Some(metrics) = &mut self.metrics {
            metrics.second(second);
        }
        // The answer comes later, so the count is asked for more often than it is needed.
        if second.time.0 / 1_000_000_000 % 10 == 0 {
            self.state.dropped = self.losses.as_ref().and_then(CaptureLosses::dropped);
        }
        if !self.state.frozen {
            self.state.second = second.clone();
        }
    }

    fn minute(&mut self, live: LiveMinute) {
        if !live.is_over && live.minute.as_ref().map_or(0, |report| report.aggregate.count) == 0 {
            return;
        }
        let dropped = self.losses.as_ref().and_then(CaptureLosses::dropped);
        if let (Some(metrics), Ok(report)) = (&mut self.metrics, &live.minute) {
            metrics.minute(report, dropped);
        }
        let mut minute = Minute::new(&live, &self.state.second, dropped);
        minute.marks = std::mem::take(&mut self.state.marks);
        if let Some(server) = &mut self.server {
            minute.server = server.minute(live.from, live.to);
            server.warnings().iter().for_each(|why| self.notices.tell(&format!("warning: {why}")));
        }
        if let Some(causes) = &mut self.causes {
            causes.minute(live.from, live.to, minute.answer.as_ref(), || minute.json());
        }
        self.service.minute(&minute.line());
        if let Medium::Lines(format) = self.medium {
            let line = match format {
                WatchFormat::Text => minute.line(),
                WatchFormat::Json => minute.json(),
            };
            if writeln!(io::stdout(), "{line}").is_err() {
                // The reader is gone.
                self.stop.store(true, Ordering::Relaxed);
            }
        }
        let state = &mut self.state;
        state.dropped = dropped;
        if state.minutes.len() == MINUTES_MAX {
            state.minutes.remove(0);
        }
        state.minutes.push(minute);
        if !state.frozen {
            state.hour_headline = minute::headline(&live.hour);
            state.hour_from = live.hour_from;
            state.report = live.minute.ok();
        }
    }

    fn pulse(&mut self) -> bool {
        self.service.pulse();
        let Medium::Screen(screen) = &mut self.medium else { return false };
        match screen.key() {
            Ok(Some(key)) => self.press(key),
            Ok(None) => {}
            Err(_the_terminal_is_gone) => {
                self.medium = Medium::Nowhere;
                self.notices.close_display();
                return false;
            }
        }
        if let Some(text) = self.notices.waiting().drain(..).next_back() {
            self.state.said = Some(text);
        }
        self.draw();
        std::mem::take(&mut self.wants_report)
    }

    fn report(&mut self, report: Result<Report, AnalysisError>) {
        let time = time_of_day(self.state.second.time, 0).replace(':', "");
        let path = PathBuf::from(format!("smbscope-{time}.html"));
        let written = report.map_err(anyhow::Error::from).and_then(|report| {
            let mut page = Vec::new();
            html::write_report(&report, &mut page)?;
            output::write_file(&path, &page)
        });
        self.state.said = Some(match written {
            Ok(()) => format!("written: {}", path.display()),
            Err(error) => format!("not written: {error:#}"),
        });
    }
}
