//! Exchanges for tests, with every field that a test does not care about at a plain value.

use smbscope_model::exchange::{Endpoints, Half, Outcome};
use smbscope_model::{Command, Exchange, FlowId, Group, Nanos, PacketRef, Stamp, Timestamp};
use smbscope_wire::smb2;

/// A complete SMB2 READ that starts at 0 and takes no time.
pub(crate) fn exchange() -> Exchange {
    let stamp = Some(Stamp { time: Timestamp(0), packet: PacketRef::default() });
    let half = Half { first: stamp, last: stamp, packets: 1, bytes: 100 };
    Exchange {
        flow: FlowId(0),
        endpoints: Endpoints {
            client: "10.0.0.1:50000".parse().expect("a socket address"),
            server: "10.0.0.9:445".parse().expect("a socket address"),
        },
        dialect: None,
        command: Command::Smb2(smb2::Command(8)),
        subcommand: None,
        group: Group::Read,
        message_id: None,
        session_id: None,
        tree_id: None,
        file_id: None,
        user: None,
        share: None,
        path: None,
        status: None,
        request: half,
        interim: None,
        response: half,
        offset: None,
        length: None,
        compounded: false,
        signed: false,
        encrypted: false,
        outcome: Outcome::Complete,
        retransmitted: 0,
        retransmission_delay: None,
        resent: None,
        standstill: None,
        server_round_trip: None,
        think_time: None,
    }
}

/// A complete SMB2 READ whose halves are one packet each, `response_time_ns` apart.
pub(crate) fn read(start_ns: i64, response_time_ns: i64) -> Exchange {
    let mut read = exchange();
    let at = |time| Some(Stamp { time: Timestamp(time), packet: PacketRef::default() });
    (read.request.first, read.request.last) = (at(start_ns), at(start_ns));
    let end = (Timestamp(start_ns).0).saturating_add(Nanos(response_time_ns).0);
    (read.response.first, read.response.last) = (at(end), at(end));
    read
}
