//! Metric families: name, unit, labels, help text and samples of each, declared once and encoded by
//! `prometheus-client`.

use super::figures::{
    GroupFigures, MetricFigures, MetricsRegistry, NATIVE_SCHEMA, RESPONSE_TIME_BOUNDS_NS, ShareFigures,
};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, MetricEncoder, NativeHistogram, NativeHistogramBuckets, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::metrics::histogram::DEFAULT_NATIVE_HISTOGRAM_ZERO_THRESHOLD;
use prometheus_client::registry::Unit;
use smbscope_capture::live::PacketDrops;
use smbscope_model::{CommandGroup, FlowDirection, Nanos};
use smbscope_stats::{OTHER, TimePart};
use std::collections::BTreeMap;
use std::fmt;

/// Description of a metric family, for documentation and dashboards.
#[derive(Debug, Clone)]
pub struct MetricFamily {
    /// Name of its series, with unit and suffix. The series of a histogram end in `_bucket`, `_sum` and `_count`.
    pub name: String,
    pub kind: &'static str,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

/// Returns all families that can be exposed, in the order of the exposition.
pub fn families() -> impl Iterator<Item = MetricFamily> {
    FAMILIES.iter().map(|family| {
        let unit = family.unit.as_ref().map_or_else(String::new, |unit| format!("_{}", unit.as_str()));
        let (kind, suffix) = match family.kind {
            MetricType::Counter => ("counter", "_total"),
            MetricType::Histogram => ("histogram", ""),
            MetricType::Info => ("info", "_info"),
            _ => ("gauge", ""),
        };
        MetricFamily { name: format!("{}{unit}{suffix}", family.name), kind, labels: family.labels, help: family.help }
    })
}

struct Family {
    name: &'static str,
    unit: Option<Unit>,
    kind: MetricType,
    labels: &'static [&'static str],
    help: &'static str,
    samples: fn(&MetricFigures) -> Samples,
}

/// Samples of a family: the values of its labels, and the value.
type Samples = Vec<(Vec<String>, SampleValue)>;

enum SampleValue {
    Count(u64),
    Seconds(f64),
    Times(Box<GroupFigures>),
}

impl SampleValue {
    fn time(time: Nanos) -> SampleValue {
        SampleValue::Seconds(time.0 as f64 / 1e9)
    }
}

const BY_SHARE: &[&str] = &["server", "share"];
const BY_GROUP: &[&str] = &["server", "share", "group"];

static FAMILIES: [Family; 16] = [
    Family {
        name: "smbscope_build",
        unit: None,
        kind: MetricType::Info,
        labels: &["version"],
        help: "Version of smbscope.",
        samples: |_| vec![(vec![env!("CARGO_PKG_VERSION").to_owned()], SampleValue::Count(1))],
    },
    Family {
        name: "smbscope_response",
        unit: Some(Unit::Seconds),
        kind: MetricType::Histogram,
        labels: BY_GROUP,
        help: "Response times: first packet of the request to last packet of the response.",
        samples: |figures| {
            by_group(figures, |group| (group.timed > 0).then_some(SampleValue::Times(Box::new(group.clone()))))
        },
    },
    Family {
        name: "smbscope_commands",
        unit: None,
        kind: MetricType::Counter,
        labels: BY_GROUP,
        help: "Commands, with and without a response time.",
        samples: |figures| by_group(figures, |group| Some(SampleValue::Count(group.commands))),
    },
    Family {
        name: "smbscope_commands_untimed",
        unit: None,
        kind: MetricType::Counter,
        labels: &["outcome"],
        help: "Commands without a response time, by reason.",
        samples: |figures| {
            let mut sums = BTreeMap::new();
            for (outcome, count) in figures.shares.values().flat_map(|share| &share.untimed) {
                *sums.entry(outcome.name()).or_default() += count;
            }
            counts(sums)
        },
    },
    Family {
        name: "smbscope_errors",
        unit: None,
        kind: MetricType::Counter,
        labels: &["server", "share", "status"],
        help: "Error responses by status.",
        samples: |figures| {
            let errors = figures.shares.iter().flat_map(|((server, share), counted)| {
                counted.errors.iter().map(move |(status, count)| {
                    let status = status.map_or_else(|| OTHER.to_owned(), |status| status.to_string());
                    (vec![server.clone(), share.clone(), status], SampleValue::Count(*count))
                })
            });
            errors.collect()
        },
    },
    Family {
        name: "smbscope_read",
        unit: Some(Unit::Bytes),
        kind: MetricType::Counter,
        labels: BY_SHARE,
        help: "File data read.",
        samples: |figures| by_share(figures, |share| share.bytes_read),
    },
    Family {
        name: "smbscope_written",
        unit: Some(Unit::Bytes),
        kind: MetricType::Counter,
        labels: BY_SHARE,
        help: "File data written.",
        samples: |figures| by_share(figures, |share| share.bytes_written),
    },
    Family {
        name: "smbscope_outstanding",
        unit: None,
        kind: MetricType::Gauge,
        labels: &["group"],
        help: "Requests without a response yet.",
        samples: |figures| {
            let outstanding = figures.observed.outstanding.iter();
            outstanding.map(|(group, count)| (vec![group.name().to_owned()], SampleValue::Count(*count))).collect()
        },
    },
    Family {
        name: "smbscope_connections",
        unit: None,
        kind: MetricType::Gauge,
        labels: &[],
        help: "Open connections.",
        samples: |figures| one(figures.observed.connections.map(SampleValue::Count)),
    },
    Family {
        name: "smbscope_retransmitted_segments",
        unit: None,
        kind: MetricType::Counter,
        labels: &["server", "direction"],
        help: "TCP segments that repeat bytes sent before.",
        samples: retransmitted,
    },
    Family {
        name: "smbscope_time",
        unit: Some(Unit::Seconds),
        kind: MetricType::Counter,
        labels: &["part"],
        help: "Time of all connections, each moment divided among the parties that it was spent on.",
        samples: |figures| {
            let Some(time) = figures.observed.time else { return Vec::new() };
            let parts = TimePart::ALL.into_iter().filter(|part| *part != TimePart::FilteredOut);
            parts.map(|part| (vec![part_name(part).to_owned()], SampleValue::time(time.part(part)))).collect()
        },
    },
    Family {
        name: "smbscope_cause_active",
        unit: None,
        kind: MetricType::Gauge,
        labels: &["id"],
        help: "1 if the latest answer names this cause of waits, else 0; for all causes that smbscope knows.",
        samples: |figures| {
            let causes = figures.causes.iter().flatten();
            causes.map(|(id, cause)| (vec![id.clone()], SampleValue::Count(cause.is_active.into()))).collect()
        },
    },
    Family {
        name: "smbscope_cause_lost",
        unit: Some(Unit::Seconds),
        kind: MetricType::Counter,
        labels: &["id"],
        help: "Time that clients lost to this cause, best estimate.",
        samples: |figures| {
            let causes = figures.causes.iter().flatten();
            causes.map(|(id, cause)| (vec![id.clone()], SampleValue::time(cause.lost))).collect()
        },
    },
    Family {
        name: "smbscope_capture_dropped_packets",
        unit: None,
        kind: MetricType::Counter,
        labels: &["where"],
        help: "Packets lost on the way to the analysis: dropped by the kernel or the interface, or missing in the capture.",
        samples: |figures| {
            let observed = &figures.observed;
            let dropped = observed.dropped.into_iter().flat_map(PacketDrops::by_place);
            counts(dropped.chain(observed.missing.map(|missing| ("capture", missing))))
        },
    },
    Family {
        name: "smbscope_last_packet_timestamp",
        unit: Some(Unit::Seconds),
        kind: MetricType::Gauge,
        labels: &[],
        help: "Time of the latest packet, in seconds since 1970.",
        samples: |figures| one(figures.observed.last_packet.map(|at| SampleValue::time(Nanos(at.0)))),
    },
    Family {
        name: "smbscope_label_overflow",
        unit: None,
        kind: MetricType::Counter,
        labels: &["label"],
        help: "Counts under the label (other) because the limit of this label was reached.",
        samples: |figures| {
            let overflow = figures.overflow;
            counts([("server", overflow.server), ("share", overflow.share), ("status", overflow.status)])
        },
    },
];

fn one(value: Option<SampleValue>) -> Samples {
    value.into_iter().map(|value| (Vec::new(), value)).collect()
}

fn counts<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>) -> Samples {
    counts.into_iter().map(|(label, count)| (vec![label.to_owned()], SampleValue::Count(count))).collect()
}

fn by_share(figures: &MetricFigures, count: impl Fn(&ShareFigures) -> u64) -> Samples {
    let shares = figures.shares.iter();
    shares
        .map(|((server, share), counted)| (vec![server.clone(), share.clone()], SampleValue::Count(count(counted))))
        .collect()
}

fn by_group(figures: &MetricFigures, value: impl Fn(&GroupFigures) -> Option<SampleValue>) -> Samples {
    let mut samples = Samples::new();
    for ((server, share), counted) in &figures.shares {
        let labels = |group: &CommandGroup| vec![server.clone(), share.clone(), group.name().to_owned()];
        samples.extend(counted.groups.iter().filter_map(|(group, of)| Some((labels(group), value(of)?))));
    }
    samples
}

fn retransmitted(figures: &MetricFigures) -> Samples {
    let mut sums: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for (server, direction, count) in &figures.observed.retransmitted {
        let direction = match direction {
            FlowDirection::Forward => "to_server",
            FlowDirection::Backward => "to_client",
        };
        *sums.entry((figures.server_label(*server), direction)).or_default() += count;
    }
    sums.into_iter()
        .map(|((server, direction), count)| (vec![server, direction.to_owned()], SampleValue::Count(count)))
        .collect()
}

/// Names of the parts as in the JSON report, without the unit.
fn part_name(part: TimePart) -> &'static str {
    match part {
        TimePart::Think => "think",
        TimePart::RequestTransfer => "request_transfer",
        TimePart::Network => "network",
        TimePart::Server => "server",
        TimePart::ServerOrNetwork => "server_or_network",
        TimePart::ResponseTransfer => "response_transfer",
        TimePart::Waiting => "waiting",
        TimePart::Idle => "idle",
        TimePart::Unknown => "unknown",
        TimePart::FilteredOut => "filtered_out",
    }
}

impl Collector for MetricsRegistry {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let figures = self.snapshot();
        for family in &FAMILIES {
            let samples = (family.samples)(&figures);
            if samples.is_empty() {
                continue;
            }
            let mut metric = encoder.encode_descriptor(family.name, family.help, family.unit.as_ref(), family.kind)?;
            for (values, value) in &samples {
                let labels: Vec<(&str, &str)> =
                    family.labels.iter().copied().zip(values.iter().map(String::as_str)).collect();
                if family.kind == MetricType::Info {
                    metric.encode_info(&labels)?;
                } else {
                    encode(value, family.kind, metric.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}

fn encode(value: &SampleValue, kind: MetricType, mut encoder: MetricEncoder) -> fmt::Result {
    let is_gauge = kind == MetricType::Gauge;
    match value {
        SampleValue::Count(count) if is_gauge => encoder.encode_gauge(count),
        SampleValue::Seconds(seconds) if is_gauge => encoder.encode_gauge(seconds),
        SampleValue::Count(count) => encoder.encode_counter(count, None::<&Exemplar<NoLabelSet, f64>>),
        SampleValue::Seconds(seconds) => encoder.encode_counter(seconds, None::<&Exemplar<NoLabelSet, f64>>),
        SampleValue::Times(times) => {
            let bounds = RESPONSE_TIME_BOUNDS_NS.iter().map(|bound| *bound as f64 / 1e9).chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(times.buckets).collect();
            let (spans, deltas) = native_buckets(&times.native);
            let native = NativeHistogram {
                schema: NATIVE_SCHEMA,
                zero_threshold: DEFAULT_NATIVE_HISTOGRAM_ZERO_THRESHOLD,
                zero_count: times.timed - times.native.values().sum::<u64>(),
                negative: NativeHistogramBuckets { spans: &[], deltas: &[] },
                positive: NativeHistogramBuckets { spans: &spans, deltas: &deltas },
                created: None,
            };
            let sum = times.sum.0 as f64 / 1e9;
            encoder.encode_histogram_with_native::<NoLabelSet>(sum, times.timed, &buckets, None, native)
        }
    }
}

/// Returns spans of consecutive buckets, each as its distance from the end of the span before and its length, and the
/// difference of each bucket's count from the one before.
fn native_buckets(counts: &BTreeMap<i32, u64>) -> (Vec<(i32, u32)>, Vec<i64>) {
    let (mut spans, mut deltas): (Vec<(i32, u32)>, Vec<i64>) = (Vec::new(), Vec::new());
    let (mut next, mut previous) = (0, 0);
    for (bucket, count) in counts {
        match spans.last_mut() {
            Some((_, length)) if *bucket == next => *length += 1,
            _ => spans.push((bucket - next, 1)),
        }
        deltas.push(*count as i64 - previous);
        (next, previous) = (bucket + 1, *count as i64);
    }
    (spans, deltas)
}
