//! Suggested follow-up commands, filled in for the current captures and ready to paste.

use serde::{Deserialize, Serialize};
use smbscope_model::prose::clean;
use smbscope_model::{CaptureInfo, Nanos};

/// Captures named in proposed commands.
const NAMED_MAX: usize = 4;
const BINS: i64 = 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SuggestedCommand {
    /// Subject of the command's output.
    pub label: String,
    /// Command line, quoted for a shell. `FILE` stands for captures that cannot be named.
    pub command: String,
}

impl SuggestedCommand {
    pub fn new(label: &str, command: String) -> SuggestedCommand {
        SuggestedCommand { label: label.to_owned(), command }
    }

    /// Builds `smbscope analyze --filter '…' --by file capture.pcap`, keeping the user's own filter and `--slow`.
    pub(crate) fn analyze(
        label: &str,
        (given, slow): (Option<&str>, Option<&str>),
        filter: Option<&str>,
        options: &str,
        captures: &[CaptureInfo],
    ) -> SuggestedCommand {
        let mut words = vec!["smbscope analyze".to_owned()];
        let filter = match (given, filter) {
            (Some(given), Some(more)) if !given.contains(more) => Some(format!("({given}) and {more}")),
            (given, more) => given.or(more).map(str::to_owned),
        };
        words.extend(filter.map(|filter| format!("--filter {}", quoted(&filter))));
        words.extend(slow.map(|slow| format!("--slow {}", quoted(slow))));
        words.push(options.to_owned());
        words.push(files(captures));
        SuggestedCommand::new(label, words.join(" "))
    }
}

fn files(captures: &[CaptureInfo]) -> String {
    let names: Option<Vec<String>> = captures.iter().map(|capture| file(&capture.name)).collect();
    match names {
        Some(names) if (1..=NAMED_MAX).contains(&names.len()) => names.join(" "),
        _ => "FILE".to_owned(),
    }
}

pub(crate) fn interval(elapsed: Nanos) -> &'static str {
    const WIDTHS: [(&str, i64); 8] = [
        ("10ms", 10),
        ("100ms", 100),
        ("1s", 1_000),
        ("10s", 10_000),
        ("1min", 60_000),
        ("10min", 600_000),
        ("1h", 3_600_000),
        ("1d", 86_400_000),
    ];
    let elapsed = elapsed.0 / 1_000_000;
    WIDTHS.iter().find(|(_, width)| width * BINS * 3 >= elapsed).unwrap_or(&WIDTHS[WIDTHS.len() - 1]).0
}

/// Quotes a file name. Returns `None` for stdin and for names with unprintable or replaced characters.
pub fn file(name: &str) -> Option<String> {
    if name.is_empty() || name == "-" || clean(name) != name || name.contains('\u{fffd}') {
        return None;
    }
    Some(if name.starts_with('-') { quoted(&format!("./{name}")) } else { quoted(name) })
}

pub fn time(time: Nanos) -> String {
    time.to_string().replace(' ', "")
}

/// Quotes a word for a POSIX shell (POSIX.1-2024, Shell Command Language, 2.2.2).
pub fn quoted(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "._/-+,:@%".contains(c);
    match !text.is_empty() && text.chars().all(is_safe) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
