//! Exchanges for tests of the code after the analysis, with plain values in all other fields.

use smbscope_model::{
    Command, CommandGroup, Endpoints, Exchange, ExchangeOutcome, FlowId, Half, PacketRef, Stamp, Timestamp,
};
use smbscope_wire::smb2;

/// Returns a complete SMB2 READ whose request and response are one packet each, `response_time_ns` apart.
pub fn read(start_ns: i64, response_time_ns: i64) -> Exchange {
    let endpoints = Endpoints { client: ([10, 0, 0, 1], 50_000).into(), server: ([10, 0, 0, 9], 445).into() };
    Exchange {
        request: packet(start_ns),
        response: packet(start_ns.saturating_add(response_time_ns)),
        outcome: ExchangeOutcome::Complete,
        ..Exchange::new(FlowId(0), endpoints, Command::Smb2(smb2::Smb2Command::READ), CommandGroup::Read)
    }
}

pub fn packet(time_ns: i64) -> Half {
    let stamp = Some(Stamp { time: Timestamp(time_ns), packet: PacketRef::default() });
    Half { first: stamp, last: stamp, packets: 1, bytes: 100 }
}
