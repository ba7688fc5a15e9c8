//! The entries of the JSON report that say where the time went: splits, heat map, load, the slowest exchanges.

use serde::{Deserialize, Serialize};
use smbscope_model::{Exchange, Group, Nanos, Protocol, Stamp, TimeKind, Timestamp};
use smbscope_stats::{TimePart, TimeSplit as Split};
use std::sync::Arc;

/// Where the time of connections went. Each moment is divided equally among the commands outstanding on its connection,
/// and each share goes to the phase in which its command is; while a response is coming in, or a lost segment is being
/// sent again, the moment is the transfer's, or the network's.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct TimeSplit {
    /// Connections that were added up: 1 for a connection.
    connections: u64,
    /// First to last packet, of all connections; the sum of the parts below.
    elapsed_ns: Nanos,
    /// The client's own time: nothing outstanding, for at most 10 s between a response and the next request.
    think_ns: Nanos,
    /// First to last packet of requests.
    request_transfer_ns: Nanos,
    /// Round trips between client, capture point and server, and waits for segments to be sent again.
    network_ns: Nanos,
    /// Service time less the round trip.
    server_ns: Nanos,
    /// Service time where the round trip is not known.
    server_or_network_ns: Nanos,
    /// First to last packet of responses.
    response_transfer_ns: Nanos,
    /// Nothing outstanding but expected waits.
    waiting_ns: Nanos,
    /// Nothing outstanding for more than 10 s, before the first request or after the last response.
    idle_ns: Nanos,
    /// A command was outstanding of which the capture does not hold the end.
    unknown_ns: Nanos,
    /// Only commands that a filter left out were outstanding, or the client thought before one of them; 0 without a
    /// filter.
    filtered_out_ns: Nanos,
    /// At least one command outstanding, expected waits not counted.
    busy_ns: Nanos,
    /// Sum over the commands of the time for which each was outstanding; divided by busy_ns, the mean concurrency.
    outstanding_ns: Nanos,
}

impl TimeSplit {
    pub(super) fn of(split: &Split) -> TimeSplit {
        TimeSplit {
            connections: split.connections,
            elapsed_ns: split.elapsed(),
            think_ns: split.part(TimePart::Think),
            request_transfer_ns: split.part(TimePart::RequestTransfer),
            network_ns: split.part(TimePart::Network),
            server_ns: split.part(TimePart::Server),
            server_or_network_ns: split.part(TimePart::ServerOrNetwork),
            response_transfer_ns: split.part(TimePart::ResponseTransfer),
            waiting_ns: split.part(TimePart::Waiting),
            idle_ns: split.part(TimePart::Idle),
            unknown_ns: split.part(TimePart::Unknown),
            filtered_out_ns: split.part(TimePart::FilteredOut),
            busy_ns: split.busy,
            outstanding_ns: split.outstanding,
        }
    }
}

/// Response times over time; expected waits are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HeatMap {
    /// Width of an interval; the smallest of 1, 2, 4 … ms that needs no more than 512 of them.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    width_ns: Nanos,
    /// Lower edges of the response time buckets, ascending; the first begins at 0, the last has no end.
    edges_ns: Vec<Nanos>,
    /// Intervals in which something began or was outstanding, in time order.
    bins: Vec<HeatMapBin>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct HeatMapBin {
    start_ns: Timestamp,
    /// Sum of the times for which commands were outstanding within the interval.
    outstanding_ns: Nanos,
    request_bytes: u64,
    response_bytes: u64,
    /// Pairs of bucket and count, of commands that began in the interval.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<(usize, std::num::NonZeroU64)>"))]
    counts: Vec<(usize, u64)>,
}

impl HeatMap {
    /// Nothing where it has no interval.
    pub(crate) fn if_any(self) -> Option<HeatMap> {
        (!self.bins.is_empty()).then_some(self)
    }

    pub(crate) fn of(map: &smbscope_stats::HeatMap) -> HeatMap {
        let bins = map.intervals.iter().map(|interval| HeatMapBin {
            start_ns: interval.start,
            outstanding_ns: interval.outstanding,
            request_bytes: interval.request_bytes,
            response_bytes: interval.response_bytes,
            counts: interval.counts.clone(),
        });
        HeatMap { width_ns: map.width, edges_ns: map.edges.clone(), bins: bins.collect() }
    }
}

/// How response time depends on load (Swartz 1997, figures 2 and 3, from a capture).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Concurrency {
    /// Mean number of commands outstanding in an interval of heatmap.width_ns, over all connections: from, inclusive.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    outstanding_from: f64,
    /// To, exclusive.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    outstanding_to: f64,
    /// How long it was like that, all intervals together.
    time_ns: Nanos,
    /// Commands of the headline groups with a response time that began in these intervals.
    commands: u64,
    request_bytes: u64,
    response_bytes: u64,
    /// Mean is exact; percentiles have the resolution of a histogram with 24 buckets a decade (10%), p50 needs 1
    /// value, p95 20.
    response_time: LoadTimes,
}

/// Mean is exact; percentiles have the resolution of a histogram with 24 buckets a decade (10%), p50 needs 1 value,
/// p95 20.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LoadTimes {
    mean: Option<Nanos>,
    p50: Option<Nanos>,
    p95: Option<Nanos>,
}

impl Concurrency {
    pub(crate) fn of(class: &smbscope_stats::Concurrency) -> Concurrency {
        Concurrency {
            outstanding_from: class.from,
            outstanding_to: class.to,
            time_ns: class.time,
            commands: class.commands,
            request_bytes: class.request_bytes,
            response_bytes: class.response_bytes,
            response_time: LoadTimes { mean: class.mean, p50: class.p50, p95: class.p95 },
        }
    }
}

/// One of the slowest exchanges; expected waits are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SlowExchange {
    flow_id: u64,
    client: String,
    client_port: u16,
    server: String,
    server_port: u16,
    protocol: Protocol,
    pub(crate) command: String,
    subcommand: Option<String>,
    group: Group,
    user: Option<Arc<str>>,
    share: Option<Arc<str>>,
    pub(crate) path: Option<Arc<str>>,
    pub(crate) status: Option<String>,
    /// Name of the file that holds the request.
    capture: Option<Arc<str>>,
    /// Name of the file that holds the response, where it is another one.
    response_capture: Option<Arc<str>>,
    /// Packet numbers as Wireshark counts them in that file, from 1; 0 where none was seen.
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    request_first_packet: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    request_last_packet: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    response_first_packet: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    response_last_packet: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(with = "Timestamp"))]
    pub(crate) request_first_ns: Option<Timestamp>,
    #[cfg_attr(feature = "schema", schemars(with = "Nanos"))]
    pub(crate) response_time_ns: Option<Nanos>,
    request_transfer_ns: Option<Nanos>,
    pub(crate) service_time_ns: Option<Nanos>,
    server_time_ns: Option<Nanos>,
    response_transfer_ns: Option<Nanos>,
    retransmission_delay_ns: Option<Nanos>,
    request_bytes: u64,
    response_bytes: u64,
}

impl SlowExchange {
    /// An entry. `captures` are the names of the files by [`CaptureId`](smbscope_model::CaptureId).
    pub(crate) fn of(exchange: &Exchange, captures: &[Arc<str>]) -> SlowExchange {
        let Exchange { endpoints, request, response, .. } = exchange;
        let packet = |stamp: Option<Stamp>| stamp.map(|stamp| stamp.packet.number);
        let file =
            |stamp: Option<Stamp>| stamp.and_then(|stamp| captures.get(usize::from(stamp.packet.capture.0))).cloned();
        let capture = file(request.first);
        SlowExchange {
            flow_id: exchange.flow.0,
            client: endpoints.client.ip().to_string(),
            client_port: endpoints.client.port(),
            server: endpoints.server.ip().to_string(),
            server_port: endpoints.server.port(),
            protocol: exchange.command.protocol(),
            command: exchange.command.to_string(),
            subcommand: exchange.subcommand.map(|subcommand| subcommand.to_string()),
            group: exchange.group,
            user: exchange.user.clone(),
            share: exchange.share.clone(),
            path: exchange.path.clone(),
            status: exchange.status.map(|status| status.to_string()),
            response_capture: file(response.first).filter(|name| Some(name) != capture.as_ref()),
            capture,
            request_first_packet: packet(request.first),
            request_last_packet: packet(request.last),
            response_first_packet: packet(response.first),
            response_last_packet: packet(response.last),
            request_first_ns: request.first.map(|stamp| stamp.time),
            response_time_ns: exchange.time(TimeKind::ResponseTime),
            request_transfer_ns: exchange.time(TimeKind::RequestTransfer),
            service_time_ns: exchange.time(TimeKind::ServiceTime),
            server_time_ns: exchange.time(TimeKind::ServerTime),
            response_transfer_ns: exchange.time(TimeKind::ResponseTransfer),
            retransmission_delay_ns: exchange.time(TimeKind::RetransmissionDelay),
            request_bytes: request.bytes,
            response_bytes: response.bytes,
        }
    }
}
