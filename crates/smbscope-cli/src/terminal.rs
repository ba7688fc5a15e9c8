//! Sanitized terminal output: names from captures, servers, saved reports or state files can't move the cursor, set
//! the title, hide text or reverse it.
//!
//! Lines for standard error go through [`say`] and [`line()`], standard output through [`SanitizingWriter`] if it is a
//! terminal.

use indicatif::{ProgressBar, ProgressStyle};
use smbscope_report::{STYLES, clean};
use std::io::{self, IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};

/// Length of the longest sequence in [`STYLES`].
const STYLE_MAX: usize = 8;

static SHOWS_PRIORITIES: AtomicBool = AtomicBool::new(false);

/// Priority of a line in the journal, with the number of sd-daemon(3).
#[derive(Debug, Clone, Copy)]
pub(crate) enum Priority {
    Error = 3,
    Warning = 4,
    Info = 6,
    Debug = 7,
}

/// Writes a message of this program to standard error. Errors are ignored: the terminal may be gone.
pub fn say(text: &str) {
    say_as(if text.starts_with("warning: ") { Priority::Warning } else { Priority::Info }, text);
}

/// Writes a message, in the journal with its priority.
pub(crate) fn say_as(priority: Priority, text: &str) {
    match SHOWS_PRIORITIES.load(Ordering::Relaxed) {
        true => line(&format!("<{}>smbscope: {text}", priority as u8)),
        false => line(&format!("smbscope: {text}")),
    }
}

/// Begins messages with their priority.
pub(crate) fn show_priorities() {
    SHOWS_PRIORITIES.store(true, Ordering::Relaxed);
}

pub(crate) fn warn(notes: &[String]) {
    for note in notes {
        say(&format!("warning: {}", crate::readable_name(note)));
    }
}

/// Writes a line to standard error. Line ends within it become blanks.
pub(crate) fn line(text: &str) {
    let _ = writeln!(stderr(), "{}", clean(&one_line(text)));
}

pub(crate) fn one_line(text: &str) -> String {
    text.replace("\r\n", " ").replace('\n', " ")
}

/// Prints an error of clap and ends the process as clap would: on one line if an argument has control characters.
pub fn exit(error: &clap::Error) -> ! {
    let arguments = std::env::args_os();
    let mut unclean = arguments.filter_map(|argument| argument.into_string().ok()).filter(|text| clean(text) != *text);
    if unclean.next().is_none() {
        error.exit();
    }
    line(&error.render().to_string().split_whitespace().collect::<Vec<_>>().join(" "));
    std::process::exit(error.exit_code());
}

/// Terminal writer that passes only lines, tabs, and the styles of reports.
pub(crate) struct SanitizingWriter<W> {
    terminal: W,
    rest: Vec<u8>,
}

impl<W: Write> SanitizingWriter<W> {
    pub(crate) fn new(terminal: W) -> SanitizingWriter<W> {
        SanitizingWriter { terminal, rest: Vec::new() }
    }

    /// Sanitizes all complete tokens. `end` means that no more bytes follow.
    fn pass(&mut self, end: bool) -> io::Result<()> {
        let mut text = String::with_capacity(self.rest.len());
        let mut at = 0;
        while at < self.rest.len() {
            let rest = &self.rest[at..];
            match next(rest) {
                TerminalToken::Style(length) => {
                    text.push_str(&String::from_utf8_lossy(&rest[..length]));
                    at += length;
                }
                TerminalToken::Unknown if !end => break,
                TerminalToken::Unknown => {
                    text.push(char::REPLACEMENT_CHARACTER);
                    at += 1;
                }
                TerminalToken::Invalid(length) => {
                    text.push(char::REPLACEMENT_CHARACTER);
                    at += length;
                }
                TerminalToken::Char(found) => {
                    match found {
                        '\n' | '\t' => text.push(found),
                        _ => text.push_str(&clean(found.encode_utf8(&mut [0; 4]))),
                    }
                    at += found.len_utf8();
                }
            }
        }
        self.rest.drain(..at);
        self.terminal.write_all(text.as_bytes())
    }
}

impl<W: Write> Write for SanitizingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        self.pass(false)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass(true)?;
        self.terminal.flush()
    }
}

enum TerminalToken {
    Char(char),
    Style(usize),
    Invalid(usize),
    Unknown,
}

fn next(bytes: &[u8]) -> TerminalToken {
    if bytes[0] == 0x1b {
        if let Some(style) = STYLES.iter().find(|style| bytes.starts_with(style.as_bytes())) {
            return TerminalToken::Style(style.len());
        }
        let may_follow = bytes.len() < STYLE_MAX && STYLES.iter().any(|style| style.as_bytes().starts_with(bytes));
        return if may_follow { TerminalToken::Unknown } else { TerminalToken::Char('\u{1b}') };
    }
    let head = &bytes[..bytes.len().min(4)];
    let valid = match str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
        Err(error) => return error.error_len().map_or(TerminalToken::Unknown, TerminalToken::Invalid),
    };
    valid.chars().next().map_or(TerminalToken::Invalid(1), TerminalToken::Char)
}

pub(crate) struct ReadProgressBar {
    bar: Option<ProgressBar>,
}

impl ReadProgressBar {
    pub(crate) fn new(quiet: bool) -> ReadProgressBar {
        let visible = !quiet && std::io::stderr().is_terminal();
        ReadProgressBar { bar: visible.then(|| ProgressBar::new(0).with_style(style(false))) }
    }

    /// Updates the bar with the bytes done and their total. `progress` is only called if the bar is visible.
    pub(crate) fn show(&mut self, progress: impl FnOnce() -> (u64, Option<u64>)) {
        if let Some(bar) = &self.bar {
            let (done, total) = progress();
            if let Some(total) = total.filter(|total| Some(*total) != bar.length()) {
                bar.set_style(style(true));
                bar.set_length(total);
            }
            bar.set_position(done);
        }
    }

    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(length_known: bool) -> ProgressStyle {
    let template = if length_known {
        "{bar:40} {percent:>3}%  {bytes} of {total_bytes}  {bytes_per_sec}  {eta} left"
    } else {
        "{spinner} {bytes}  {bytes_per_sec}"
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(pieces: &[&[u8]]) -> String {
        let mut terminal = SanitizingWriter::new(Vec::new());
        for piece in pieces {
            terminal.write_all(piece).expect("memory takes all");
        }
        terminal.flush().expect("memory takes all");
        String::from_utf8(terminal.terminal).expect("only text goes through")
    }

    #[test]
    fn nothing_but_text_and_styles_of_reports_reaches_a_terminal() {
        // Title (OSC), alternate screen (CSI), concealed text (SGR 8), C1 and a direction mark.
        let hostile = "a\u{1b}]0;owned\u{7}b\u{1b}[?1049hc\u{1b}[8md\u{9b}31me\u{202e}f\u{7f}\r\n\tg";
        let expected = "a�]0;owned�b�[?1049hc�[8md�31me�f��\n\tg";
        assert_eq!(cleaned(&[hostile.as_bytes()]), expected);
        let styled = "\u{1b}[1mheading\u{1b}[0m";
        assert_eq!(cleaned(&[styled.as_bytes()]), styled);
    }

    #[test]
    fn it_does_not_matter_where_a_write_ends() {
        let text = "ä\u{1b}[1m\u{1f600}\u{1b}[0m\u{1b}[1x\u{9b}";
        let whole = cleaned(&[text.as_bytes()]);
        assert_eq!(whole, "ä\u{1b}[1m\u{1f600}\u{1b}[0m�[1x�");
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(cleaned(&bytes), whole);
        assert_eq!(cleaned(&[b"\xff\xc3", b"(\xf0\x9f"]), "��(��");
    }
}
