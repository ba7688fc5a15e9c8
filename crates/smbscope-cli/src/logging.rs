//! Log events on standard error: warnings by default, more with `-v` or `SMBSCOPE_LOG`.

use crate::terminal;
use std::fmt::{Debug, Write as _};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{EnvFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{Layer, registry};

/// Environment variable with directives of tracing's `EnvFilter`, such as `debug` or `smbscope_lab=trace`.
const VARIABLE: &str = "SMBSCOPE_LOG";

/// Installs the log of the process: warnings, with one `-v` also information, with two everything. `SMBSCOPE_LOG`
/// overrides both. Does nothing if the process has a log, as programs that embed this one may. An invalid directive
/// is an error of one line.
pub(crate) fn start(verbosity: u8) -> Result<(), String> {
    let directives = std::env::var(VARIABLE).unwrap_or_default();
    let filter: Box<dyn Layer<_> + Send + Sync> = if directives.is_empty() {
        // Hides events of other libraries.
        Box::new(Targets::new().with_target("smbscope", level(verbosity)))
    } else {
        let filter = EnvFilter::try_new(&directives).map_err(|error| format!("{VARIABLE}={directives}: {error}"))?;
        Box::new(filter)
    };
    let _ = tracing::subscriber::set_global_default(registry().with(filter).with(StandardError));
    Ok(())
}

fn level(verbosity: u8) -> LevelFilter {
    match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::TRACE,
    }
}

/// Writes each event as one line: `smbscope: `, the message, then the fields as `name=value`.
struct StandardError;

impl<S: Subscriber> Layer<S> for StandardError {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut line = EventLine::default();
        event.record(&mut line);
        terminal::say(&format!("{}{}", line.message, line.fields));
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
        assert_eq!(
            [0, 1, 2, 9].map(level),
            [LevelFilter::WARN, LevelFilter::INFO, LevelFilter::TRACE, LevelFilter::TRACE]
        );
    }
}
