//! A progress bar on standard error, when that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// Shows how far the reading has come.
pub(crate) struct ReadProgressBar {
    bar: Option<ProgressBar>,
}

impl ReadProgressBar {
    /// A bar, or none when nobody would see it.
    pub(crate) fn new(quiet: bool) -> ReadProgressBar {
        let visible = !quiet && std::io::stderr().is_terminal();
        ReadProgressBar { bar: visible.then(|| ProgressBar::new(0).with_style(style(false))) }
    }

    /// Shows how many bytes are done, of how many; asks only when somebody sees it.
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

    /// Takes the bar away.
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
