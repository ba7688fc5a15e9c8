//! Target for TCP reassembly: segments of two flows in any order and state. The output must be in order and genuine.
//!
//! The input is a list of eight-byte steps: kind of segment, elapsed time, length, offset, acknowledgment. The payload
//! is determined by the sequence numbers alone, so all copies of a byte are equal and the output can be verified.

use crate::Bytes;
use smbscope_capture::TcpFlags;
use smbscope_capture::tcp::{FlowEnd, FlowTable, FlowView, Retransmission, StreamChunk, StreamGap, StreamSink};
use smbscope_model::{FlowDirection, Timestamp};
use smbscope_testkit::packet::HEADERS;
use smbscope_testkit::{Packet, Side};
use std::net::SocketAddr;

/// Payload for any segment: each byte is the low byte of its sequence number.
static ALL: [u8; 65_536 + 256] = {
    let mut bytes = [0; 65_536 + 256];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = at as u8;
        at += 1;
    }
    bytes
};

struct Ends {
    next: [u32; 2],
}

/// Plays the steps with an ample and with a tight memory budget.
pub fn reassembly(data: &[u8]) {
    play(data, FlowTable::new(Checker::default()));
    play(data, FlowTable::within(Checker::default(), 20_000));
}

fn play(data: &[u8], mut table: FlowTable<Checker>) {
    let mut input = Bytes(data);
    let mut flows = [Ends { next: [1, 0xffff_f000] }, Ends { next: [77, 88] }];
    let mut time = 0i64;
    let mut number = 0;
    while let (Some(what), Some(passed), Some(length), Some(offset), Some(acknowledged)) =
        (input.u8(), input.u8(), input.u16(), input.u16(), input.u16())
    {
        number += 1;
        let side = usize::from(what >> 3 & 1);
        let which = usize::from(what >> 6 & 1);
        let flow = &mut flows[which];
        // The highest bits make the clock step back or a long time pass.
        time = match (what & 0x80, passed & 0x80) {
            (0, _) => time.saturating_add(i64::from(passed) * 20_000),
            (_, 0) => time.saturating_add(i64::from(passed) * 500_000_000),
            _ => time.saturating_sub(i64::from(passed) * 1_000_000),
        };
        let near = i32::from(offset as i16) as u32;
        let (at, flags, length) = match what & 7 {
            3 => (flow.next[side].wrapping_add(near), TcpFlags::ACK, length),
            4 => (u32::from(offset) << 16 | u32::from(acknowledged), TcpFlags::ACK, length),
            5 => {
                flow.next[side] = u32::from(offset) << 16;
                let answer = if what & 0x10 != 0 { TcpFlags::ACK } else { 0 };
                (flow.next[side], TcpFlags::SYN | answer, 0)
            }
            6 => (flow.next[side], TcpFlags::FIN | TcpFlags::ACK, length % 256),
            7 => (flow.next[side].wrapping_add(near), TcpFlags::RST | TcpFlags::ACK, 0),
            _ => (flow.next[side], TcpFlags::PSH | TcpFlags::ACK, length % 9000),
        };
        let control = u32::from(flags & (TcpFlags::SYN | TcpFlags::FIN) != 0);
        if matches!(what & 7, 0..=2 | 5 | 6) {
            flow.next[side] = at.wrapping_add(u32::from(length)).wrapping_add(control);
        }
        let acknowledgment = match what & 0x20 {
            0 => flow.next[1 - side],
            _ => flow.next[1 - side].wrapping_add(i32::from(acknowledged as i16) as u32),
        };
        let packet = Packet {
            origin: number,
            time: Timestamp(time),
            side: if side == 0 { Side::Client } else { Side::Server },
            offset: 0,
            source: SocketAddr::from(([10, 0, 0, 1 + side as u8], [50_000 + which as u16, 445][side])),
            destination: SocketAddr::from(([10, 0, 0, 2 - side as u8], [445, 50_000 + which as u16][side])),
            sequence: at,
            acknowledgment,
            flags: TcpFlags(flags),
            window: acknowledged,
            window_scale: None,
            ip_id: number as u16,
            payload: ALL[(at & 0xff) as usize..][..usize::from(length)].to_vec(),
            snap: if what & 0x10 != 0 && what & 7 != 5 { HEADERS + usize::from(length) / 2 } else { usize::MAX },
        };
        let mut segment = packet.segment(number);
        segment.timestamp_value = (passed & 1 != 0).then_some(time as u32);
        segment.ip_id = segment.ip_id.filter(|_| passed & 2 != 0);
        table.segment(&segment);
    }
    let checker = table.finish();
    assert_eq!(checker.opened, checker.closed, "flows that were opened, and closed");
}

#[derive(Default)]
struct Checker {
    opened: u64,
    closed: u64,
}

#[derive(Default)]
struct DirectionCheck {
    next: Option<u64>,
    /// Difference between a byte and its position, which is constant within a stream.
    base: Option<u8>,
    bytes: u64,
}

impl DirectionCheck {
    fn follow(&mut self, position: u64, length: u64) {
        assert!(self.next.is_none_or(|next| next == position), "{:?} expected, {position} came", self.next);
        self.next = position.checked_add(length);
        assert!(self.next.is_some(), "a position overflows");
    }
}

impl StreamSink for Checker {
    type Flow = [DirectionCheck; 2];

    fn opened(&mut self, _: &FlowView) -> [DirectionCheck; 2] {
        self.opened += 1;
        Default::default()
    }

    fn data(
        &mut self,
        flow: &mut [DirectionCheck; 2],
        _: &FlowView,
        direction: FlowDirection,
        chunk: &StreamChunk<'_>,
    ) {
        assert!(chunk.bytes.len() as u64 <= chunk.length && chunk.length > 0);
        let check = &mut flow[direction.index()];
        check.follow(chunk.position, chunk.length);
        check.bytes += chunk.length;
        let Some(first) = chunk.bytes.first() else { return };
        assert_eq!(chunk.bytes, &ALL[usize::from(*first)..][..chunk.bytes.len()], "a chunk of bytes from two places");
        let base = first.wrapping_sub(chunk.position as u8);
        assert_eq!(*check.base.get_or_insert(base), base, "bytes that belong elsewhere than {}", chunk.position);
    }

    fn gap(&mut self, flow: &mut [DirectionCheck; 2], _: &FlowView, direction: FlowDirection, gap: &StreamGap) {
        assert!(gap.length > 0);
        flow[direction.index()].follow(gap.position, gap.length);
    }

    fn retransmitted(&mut self, _: &mut [DirectionCheck; 2], _: &FlowView, _: FlowDirection, again: &Retransmission) {
        assert!(again.length > 0);
    }

    fn closed(&mut self, flow: [DirectionCheck; 2], _: &FlowView, end: FlowEnd) {
        self.closed += 1;
        for direction in FlowDirection::BOTH {
            assert_eq!(flow[direction.index()].bytes, end.counts[direction.index()].bytes, "bytes that were counted");
        }
    }
}
