//! Progress bar on standard error, if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

pub(crate) struct ReadProgressBar {
    bar: Option<ProgressBar>,
}

impl ReadProgressBar {
    /// Creates a bar, hidden if quiet or without a terminal.
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

    /// Removes the bar.
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
