//! The entries of the JSON report that say where the time went: splits, heat map, load, the slowest exchanges.

use serde::Serialize;
use smbscope_model::{Exchange, Group, Nanos, Protocol, Stamp, TimeKind, Timestamp};
use smbscope_stats::{TimePart, TimeSplit as Split};

#[derive(Serialize)]
pub(super) struct TimeSplit {
    connections: u64,
    elapsed_ns: Nanos,
    think_ns: Nanos,
    request_transfer_ns: Nanos,
    network_ns: Nanos,
    server_ns: Nanos,
    server_or_network_ns: Nanos,
    response_transfer_ns: Nanos,
    waiting_ns: Nanos,
    idle_ns: Nanos,
    unknown_ns: Nanos,
    filtered_out_ns: Nanos,
    busy_ns: Nanos,
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

#[derive(Serialize)]
pub(super) struct HeatMap<'a> {
    width_ns: Nanos,
    edges_ns: &'a [Nanos],
    bins: Vec<Interval<'a>>,
}

#[derive(Serialize)]
struct Interval<'a> {
    start_ns: Timestamp,
    outstanding_ns: Nanos,
    request_bytes: u64,
    response_bytes: u64,
    counts: &'a [(usize, u64)],
}

impl<'a> HeatMap<'a> {
    pub(super) fn of(map: &'a smbscope_stats::HeatMap) -> HeatMap<'a> {
        let bins = map.intervals.iter().map(|interval| Interval {
            start_ns: interval.start,
            outstanding_ns: interval.outstanding,
            request_bytes: interval.request_bytes,
            response_bytes: interval.response_bytes,
            counts: &interval.counts,
        });
        HeatMap { width_ns: map.width, edges_ns: &map.edges, bins: bins.collect() }
    }
}

#[derive(Serialize)]
pub(super) struct Concurrency {
    outstanding_from: f64,
    outstanding_to: f64,
    time_ns: Nanos,
    commands: u64,
    request_bytes: u64,
    response_bytes: u64,
    response_time: LoadTimes,
}

#[derive(Serialize)]
struct LoadTimes {
    mean: Option<Nanos>,
    p50: Option<Nanos>,
    p95: Option<Nanos>,
}

impl Concurrency {
    pub(super) fn of(class: &smbscope_stats::Concurrency) -> Concurrency {
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

#[derive(Serialize)]
pub(super) struct SlowExchange<'a> {
    flow_id: u64,
    client: String,
    client_port: u16,
    server: String,
    server_port: u16,
    protocol: Protocol,
    command: String,
    subcommand: Option<String>,
    group: Group,
    user: Option<&'a str>,
    share: Option<&'a str>,
    path: Option<&'a str>,
    status: Option<String>,
    capture: Option<&'a str>,
    response_capture: Option<&'a str>,
    request_first_packet: Option<u64>,
    request_last_packet: Option<u64>,
    response_first_packet: Option<u64>,
    response_last_packet: Option<u64>,
    request_first_ns: Option<Timestamp>,
    response_time_ns: Option<Nanos>,
    request_transfer_ns: Option<Nanos>,
    service_time_ns: Option<Nanos>,
    server_time_ns: Option<Nanos>,
    response_transfer_ns: Option<Nanos>,
    retransmission_delay_ns: Option<Nanos>,
    request_bytes: u64,
    response_bytes: u64,
}

impl<'a> SlowExchange<'a> {
    /// An entry. `captures` are the names of the files by [`CaptureId`](smbscope_model::CaptureId).
    pub(super) fn of(exchange: &'a Exchange, captures: &[&'a str]) -> SlowExchange<'a> {
        let Exchange { endpoints, request, response, .. } = exchange;
        let packet = |stamp: Option<Stamp>| stamp.map(|stamp| stamp.packet.number);
        let file =
            |stamp: Option<Stamp>| stamp.and_then(|stamp| captures.get(usize::from(stamp.packet.capture.0))).copied();
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
            user: exchange.user.as_deref(),
            share: exchange.share.as_deref(),
            path: exchange.path.as_deref(),
            status: exchange.status.map(|status| status.to_string()),
            capture,
            response_capture: file(response.first).filter(|name| Some(*name) != capture),
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
