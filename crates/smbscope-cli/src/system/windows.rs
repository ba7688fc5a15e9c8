//! Console of Windows: Ctrl-C and its other events, with the numbers of Unix signals, styles, and whether the window is
//! this program's own.

#![allow(unsafe_code)]

use crate::explorer::ExplorerStart;
use crate::terminal;
use smbscope_lab::command_for;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::signal::windows;
use tokio::sync::Notify;
use windows_sys::Win32::System::Console::GetConsoleProcessList;

pub(crate) const SIGHUP: i32 = 1;
pub(crate) const SIGINT: i32 = 2;
pub(crate) const SIGTERM: i32 = 15;

/// Ctrl-C that the dashboard read as a key.
static PRESSED: Notify = Notify::const_new();

pub(crate) fn code(status: ExitStatus) -> Option<i32> {
    status.code()
}

/// Calls this function, in a thread of its own, for every event that asks the process to end: Ctrl-C and Ctrl-Break as
/// SIGINT, a closed window as SIGHUP, the end of the session as SIGTERM.
pub(crate) fn follow(mut handle: impl FnMut(i32) + Send + 'static) {
    let follow = move || -> io::Result<()> {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
            let (mut ctrl_c, mut ctrl_break) = (windows::ctrl_c()?, windows::ctrl_break()?);
            let (mut close, mut logoff, mut shutdown) =
                (windows::ctrl_close()?, windows::ctrl_logoff()?, windows::ctrl_shutdown()?);
            loop {
                handle(tokio::select! {
                    _ = ctrl_c.recv() => SIGINT,
                    _ = ctrl_break.recv() => SIGINT,
                    () = PRESSED.notified() => SIGINT,
                    _ = close.recv() => SIGHUP,
                    _ = logoff.recv() => SIGTERM,
                    _ = shutdown.recv() => SIGTERM,
                });
            }
        })
    };
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(follow);
}

/// Does nothing: the service manager is systemd.
pub(crate) fn tell_service_manager(_state: &str) {}

/// Returns `None`: a watchdog is part of systemd.
pub(crate) fn watchdog_limit() -> Option<Duration> {
    None
}

/// Returns false: the journal is part of systemd.
pub(crate) fn logs_to_journal() -> bool {
    false
}

pub(crate) fn raise_ctrl_c() {
    PRESSED.notify_one();
}

/// Makes the console interpret styles. Returns false for one that is too old.
pub(crate) fn takes_styles() -> bool {
    crossterm::ansi_support::supports_ansi()
}

/// Waits for input, up to this time.
pub(crate) fn wait_for_input(longest: Duration) -> io::Result<()> {
    crossterm::event::poll(longest).map(drop)
}

const INTRODUCTION: &str = "\
smbscope measures what an SMB file server makes its users wait for, and why.

Drop a capture (.pcap or .pcapng) on smbscope.exe: its report opens in the browser.

Everything else is done on the command line. In a terminal in this folder, type

    .\\smbscope help";

/// Runs the program. If the Explorer started it, its window stays until the user has read it.
pub(crate) fn in_window(arguments: Vec<OsString>, run: impl FnOnce(Vec<OsString>) -> u8) -> u8 {
    if !has_own_window() {
        return run(arguments);
    }
    let status = match ExplorerStart::from_arguments(&arguments) {
        ExplorerStart::Command => return run(arguments),
        ExplorerStart::Explain => {
            INTRODUCTION.lines().for_each(terminal::line);
            0
        }
        ExplorerStart::Analyze { arguments, page } => match run(arguments) {
            0 if open(&page).is_ok() => return 0,
            status => status,
        },
    };
    terminal::line("");
    terminal::line("Press Enter to close this window.");
    let _ = io::stdin().read_line(&mut String::new());
    status
}

/// Returns true if no other program, such as a shell, shares the console.
fn has_own_window() -> bool {
    let mut processes = [0; 2];
    // SAFETY: the list has as many entries as are named.
    unsafe { GetConsoleProcessList(processes.as_mut_ptr(), processes.len() as u32) == 1 }
}

/// Opens a page as a double click does. The Explorer's whole path is given: a program of its name in the folder of this
/// one, which may be a folder of downloads, would be found first.
fn open(page: &Path) -> io::Result<()> {
    let windows = std::env::var_os("SystemRoot").unwrap_or_else(|| "C:\\Windows".into());
    command_for(Path::new(&windows).join("explorer.exe")).arg(page).spawn().map(drop)
}
