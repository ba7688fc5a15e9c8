//! The entries of the JSON report that say where the time went: splits, the slowest exchanges.

use serde::{Deserialize, Serialize};
use smbscope_model::{CommandGroup, Exchange, Nanos, Protocol, Stamp, TimeKind, Timestamp};
use smbscope_stats::{TimePart, TimeSplit as Split};
use std::sync::Arc;

/// Where the time of connections went. Each moment is divided equally among the commands outstanding on its connection,
/// and each share goes to the phase in which its command is; while a response is coming in, or a lost segment is being
/// sent again, the moment is the transfer's, or the network's.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct TimeSplitEntry {
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

impl TimeSplitEntry {
    pub(super) fn new(split: &Split) -> TimeSplitEntry {
        TimeSplitEntry {
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
    group: CommandGroup,
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
    pub(crate) fn new(exchange: &Exchange, captures: &[Arc<str>]) -> SlowExchange {
        let Exchange { endpoints, request, response, .. } = exchange;
        let packet = |stamp: Option<Stamp>| stamp.map(|stamp| stamp.packet.number());
        let file =
            |stamp: Option<Stamp>| stamp.and_then(|stamp| captures.get(usize::from(stamp.packet.capture().0))).cloned();
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
