//! Log events on standard error: warnings by default, more with `-v` or `SMBSCOPE_LOG`.

use crate::system;
use crate::terminal::{self, Priority};
use std::fmt::{Debug, Write as _};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{Layer, registry};

/// Environment variable with levels, for everything or by crate: `debug`, or `smbscope_lab=trace,info`.
const VARIABLE: &str = "SMBSCOPE_LOG";

/// Installs the log of the process: warnings, with one `-v` also information, with two everything. `SMBSCOPE_LOG`
/// overrides both. Does nothing if the process has a log, as programs that embed this one may. An invalid directive
/// is an error of one line.
pub(crate) fn start(verbosity: u8) -> Result<(), String> {
    if system::logs_to_journal() {
        terminal::show_priorities();
    }
    let directives = std::env::var(VARIABLE).unwrap_or_default();
    let filter = filter(&directives, verbosity).map_err(|error| format!("{VARIABLE}={directives}: {error}"))?;
    let _ = tracing::subscriber::set_global_default(registry().with(filter).with(StandardError));
    Ok(())
}

fn filter(directives: &str, verbosity: u8) -> Result<Targets, ParseError> {
    if !directives.is_empty() {
        return directives.parse();
    }
    let level = match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::TRACE,
    };
    // Hides events of other libraries.
    Ok(Targets::new().with_target("smbscope", level))
}

/// Writes each event as one line: `smbscope: `, the message, then the fields as `name=value`.
struct StandardError;

impl<S: Subscriber> Layer<S> for StandardError {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut line = EventLine::default();
        event.record(&mut line);
        let priority = match *event.metadata().level() {
            Level::ERROR => Priority::Error,
            Level::WARN => Priority::Warning,
            Level::INFO => Priority::Info,
            Level::DEBUG | Level::TRACE => Priority::Debug,
        };
        terminal::say_as(priority, &format!("{}{}", line.message, line.fields));
    }
}

#[derive(Default)]
struct EventLine {
    message: String,
    fields: String,
}

impl Visit for EventLine {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
        written.expect("a string takes any text");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_v_shows_more() {
        let level = |verbosity| filter("", verbosity).map(|filter| filter.into_iter().next().map(|(_, level)| level));
        let levels = [0, 1, 2, 9].map(|verbosity| level(verbosity).unwrap_or_default());
        let expected = [LevelFilter::WARN, LevelFilter::INFO, LevelFilter::TRACE, LevelFilter::TRACE];
        assert_eq!(levels, expected.map(Some));
    }

    #[test]
    fn directives_overrule_v_and_have_to_be_levels() {
        let chosen = filter("smbscope_lab=debug,warn", 2).expect("two levels");
        assert!(chosen.would_enable("smbscope_lab::server", &tracing::Level::DEBUG));
        assert!(!chosen.would_enable("smbscope_run", &tracing::Level::INFO));
        assert!(filter("smbscope=loud", 0).is_err());
    }
}
