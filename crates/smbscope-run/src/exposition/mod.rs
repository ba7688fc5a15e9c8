//! Serves the figures of a running command to Prometheus (`--metrics`). `metrics` is another thing: the server's own
//! counters, which a run reads.
//!
//! Each thread that sees commands counts them in its own [`MetricsRecorder`] and adds its counts to the shared
//! [`MetricsRegistry`] from time to time. [`MetricsEndpoint`] encodes the registry when it is scraped.

mod access;
mod families;
mod figures;
mod http;
#[cfg(test)]
mod tests;

pub use access::directories_of;
pub use families::{MetricFamily, families};
pub use figures::{
    MetricsRecorder, MetricsRegistry, ObservedFigures, RESPONSE_TIME_BOUNDS_NS, SERVERS_LABELLED_MAX,
    SHARES_LABELLED_MAX, STATUSES_LABELLED_MAX,
};
pub use http::MetricsEndpoint;
