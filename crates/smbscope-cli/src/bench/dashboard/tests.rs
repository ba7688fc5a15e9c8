//! The dashboard on in-memory terminals, and on a real one taken over by a child process.

use super::view::{DashboardState, FinishedLoadPoint};
use super::{Screen, interval_line, load_point_line, view};
use crate::screen::Look;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use smbscope_load::engine::{self, EnginePhase, LiveGroup};
use smbscope_load::prepare;
use smbscope_model::{CommandGroup, Nanos};
use smbscope_run::progress::{Cpu, Heading, RampPosition, RampSnapshot};
use smbscope_wire::status::NtStatus;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

fn heading() -> Heading {
    Heading { workload: "netbench-like".into(), target: "127.0.0.1:14450, share share, SMB 3.1.1".into() }
}

/// Returns a snapshot of the second load point, `at` seconds into its measured part.
fn second(at: u64) -> RampSnapshot {
    let group = |group, commands, p50: i64| LiveGroup {
        group,
        commands,
        p50: Some(Nanos(p50)),
        p95: Some(Nanos(p50 * 3)),
        p99: (commands > 100).then_some(Nanos(p50 * 7)),
    };
    let live = engine::EngineSnapshot {
        phase: EnginePhase::Measuring,
        sessions: 16,
        over: Duration::from_secs(1),
        commands: 7_000 + at % 5 * 200,
        errors: 19,
        unexpected: 2,
        statuses: [(NtStatus::OBJECT_NAME_NOT_FOUND, 17), (NtStatus::SHARING_VIOLATION, 2)].into(),
        failures: 0,
        bytes_read: 70_200_000,
        bytes_written: 19_500_000,
        p50: Some(Nanos(1_560_000)),
        p95: Some(Nanos(2_330_000 + at as i64 % 7 * 300_000)),
        groups: vec![
            group(CommandGroup::OpenClose, 3_354, 1_250_000),
            group(CommandGroup::Attributes, 468, 622_000),
            group(CommandGroup::Directory, 90, 2_340_000),
            group(CommandGroup::Read, 2_340, 1_400_000),
            group(CommandGroup::Write, 1_248, 3_220_000),
        ],
        ..engine::EngineSnapshot::default()
    };
    RampSnapshot {
        point: RampPosition { number: 2, of: Some(4), users: 16 },
        remaining: Some((Duration::from_secs(30 - at), Duration::from_secs(30))),
        live,
        cpu: Some(Cpu { percent: 62.0, busiest_percent: 41.0, limited: false }),
    }
}

/// Returns the state after one load point and twenty seconds of the second.
fn state() -> DashboardState {
    let mut state = DashboardState::new(heading());
    let done = FinishedLoadPoint {
        users: 4,
        per_second: 4_100.0,
        p50: Some(Nanos(548_000)),
        p95: Some(Nanos(820_000)),
        errors: 102,
        unexpected: 0,
        limited: false,
    };
    state.finish(done);
    (0..20).for_each(|at| state.update(second(at)));
    state
}

fn drawn(state: &DashboardState, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(frame, state, Look { color: false })).unwrap();
    terminal.backend().to_string()
}

#[test]
fn dashboard_at_80_by_24() {
    insta::assert_snapshot!(drawn(&state(), 80, 24));
}

#[test]
fn dashboard_at_120_by_40() {
    insta::assert_snapshot!(drawn(&state(), 120, 40));
}

#[test]
fn dashboard_in_a_narrow_window() {
    insta::assert_snapshot!(drawn(&state(), 46, 14));
}

#[test]
fn dashboard_while_files_are_made() {
    let mut state = DashboardState::new(heading());
    state.prepare(&prepare::PrepareProgress { files: 17, of_files: 1_200, ..prepare::PrepareProgress::default() });
    insta::assert_snapshot!(drawn(&state, 80, 10));
}

#[test]
fn dashboard_of_a_limited_client_with_sessions_lost() {
    let mut state = state();
    let cpu = Cpu { percent: 190.0, busiest_percent: 99.0, limited: true };
    let RampSnapshot { live, .. } = second(20);
    let live = engine::EngineSnapshot { sessions: 13, failures: 3, ..live };
    state.update(RampSnapshot { cpu: Some(cpu), live, ..second(20) });
    insta::assert_snapshot!(drawn(&state, 80, 24));
}

#[test]
fn a_dashboard_of_any_size_is_drawn() {
    for (width, height) in [(1, 1), (2, 60), (200, 2), (20, 5), (300, 100)] {
        drawn(&state(), width, height);
    }
}

#[test]
fn no_color_means_none() {
    let colors = |color: bool| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| view::draw(frame, &state(), Look { color })).unwrap();
        let cells = terminal.backend().buffer().content.iter();
        cells.filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    assert_eq!(colors(false), 0);
    assert!(colors(true) > 0);
}

#[test]
fn names_from_outside_cannot_steer_the_terminal() {
    let mut state = state();
    state.heading.target = "\u{1b}[2J".into();
    state.statuses.insert("\u{1b}]0;x\u{7}".into(), 1_000_000);
    assert!(!drawn(&state, 80, 24).contains(['\u{1b}', '\u{7}']));
}

#[test]
fn errors_are_those_of_the_load_point() {
    let mut state = state();
    // 20 seconds with 19 errors each.
    assert_eq!((state.errors, state.unexpected), (380, 40));
    state.update(RampSnapshot { point: RampPosition { number: 3, of: Some(4), users: 32 }, ..second(0) });
    assert_eq!((state.errors, state.top_statuses()[0]), (19, ("STATUS_OBJECT_NAME_NOT_FOUND", 17)));
}

#[test]
fn errors_that_are_not_listed_are_added_up() {
    let mut state = DashboardState::new(heading());
    let statuses = (1..=7).map(|kind| (NtStatus(0xc000_0ab0 | kind), kind.into())).collect();
    // Three errors have no known status.
    let live = engine::EngineSnapshot { statuses, errors: 28 + 3, ..second(0).live };
    state.update(RampSnapshot { live, ..second(0) });
    let drawn = drawn(&state, 80, 40);
    assert!(drawn.contains(" 7  0xc0000ab7") && drawn.contains(" 3  0xc0000ab3"), "{drawn}");
    assert!(!drawn.contains("0xc0000ab2") && drawn.contains(" 6  others"), "{drawn}");
}

#[test]
fn what_is_remembered_has_a_bound() {
    let mut state = state();
    (0..2_000).for_each(|at| state.update(second(at % 30)));
    assert_eq!(state.history.len(), 600);
}

#[test]
fn a_plain_line_says_what_the_dashboard_shows() {
    let line = interval_line(&state(), &second(3)).unwrap();
    let expected = "16 users measuring: 16/16 connected, 7,600 commands/s, 70.20 MB/s read, 19.50 written, median 1.56 ms, p95 \
                    3.23 ms, 19 errors (2 operations unexpected), 27 s left";
    assert_eq!(line, expected);
    let done = FinishedLoadPoint { limited: true, ..state().finished[0] };
    assert_eq!(
        load_point_line(&done),
        "4 users done: 4,100 commands/s, median 548 µs, p95 820 µs, 102 errors (none unexpected); the client was the limit"
    );
}

#[test]
fn plain_lines_come_once_a_phase_while_nothing_is_measured() {
    let mut state = DashboardState::new(heading());
    let live = engine::EngineSnapshot { phase: EnginePhase::Connecting, ..second(0).live };
    let connecting = RampSnapshot { live, ..second(0) };
    assert_eq!(interval_line(&state, &connecting).as_deref(), Some("load point 2 of 4: 16 users, connecting"));
    state.update(connecting.clone());
    assert_eq!(interval_line(&state, &connecting), None);
}

/// Tells the child of [`the_terminal_is_given_back`] how to end.
const HOW: &str = "SMBSCOPE_TEST_DASHBOARD_ENDS";

/// Not an independent test: takes the terminal over and ends as the environment says.
#[test]
fn child_that_takes_the_terminal_over() {
    let Ok(how) = std::env::var(HOW) else { return };
    let mut screen = Screen::open(true).expect("script gives it a terminal");
    screen.draw(|frame, look| view::draw(frame, &state(), look)).expect("there is a terminal");
    match how.as_str() {
        "panic" => panic!("on purpose"),
        "error" => assert!(fails(screen).is_err()),
        _ => {}
    }
}

fn fails(mut screen: Screen) -> io::Result<()> {
    screen.draw(|frame, look| view::draw(frame, &state(), look))?;
    Err(io::Error::other("on purpose"))
}

#[test]
fn the_terminal_is_given_back() {
    let installed = Command::new("script").arg("--version").stdout(Stdio::null()).status();
    if !installed.is_ok_and(|status| status.success()) {
        println!("skipped: no script (util-linux) to make a terminal with");
        return;
    }
    for how in ["well", "panic", "error"] {
        let exe = std::env::current_exe().unwrap();
        let test = "bench::dashboard::tests::child_that_takes_the_terminal_over";
        // The terminal's settings before and after show if raw mode was left.
        let line = format!("stty -a; '{}' --exact {test} --nocapture; echo; stty -a", exe.display());
        let output = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env(HOW, how)
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let (entered, left) = (text.find("\u{1b}[?1049h"), text.rfind("\u{1b}[?1049l"));
        assert!(entered.is_some() && left > entered, "{how}: {text}");
        assert_eq!(text.matches("isig icanon").count(), 2, "{how}: {text}");
    }
}
