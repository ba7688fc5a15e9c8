//! Packet counts of Swartz (1997): packets in the capture, and the kinds of packets in each direction.

use crate::Report;
use smbscope_model::{DirectionCounts, Subcommand};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PacketCounts {
    pub(crate) all: u64,
    /// TCP packets of flows that carry SMB: `data` + `acks` + `unacknowledged`.
    pub(crate) smb_flows: u64,
    pub(crate) acks: u64,
    /// Data segments never acknowledged.
    pub(crate) unacknowledged: u64,
    /// Retransmitted segments with both copies in the capture.
    pub(crate) retransmitted: u64,
    /// Retransmitted segments that had already been acknowledged.
    pub(crate) spurious: u64,
    /// Retransmitted segments with only the last copy in the capture.
    pub(crate) seen_once: u64,
    /// Packets dropped by the capture, at least.
    pub(crate) dropped: u64,
    /// Packets that continue a message, in both directions.
    pub(crate) continuations: u64,
    pub(crate) commands: DirectionCounts,
    pub(crate) replies: DirectionCounts,
    /// Packets of the asynchronous part of Write_Raw commands.
    pub(crate) asynchronous: u64,
}

impl PacketCounts {
    pub(crate) fn from_report(report: &Report) -> PacketCounts {
        let mut commands = DirectionCounts::default();
        let mut replies = DirectionCounts::default();
        for connection in &report.connections {
            add(&mut commands, &connection.to_server);
            add(&mut replies, &connection.to_client);
        }
        let asynchronous: u64 = report
            .aggregate
            .commands
            .iter()
            .flat_map(|command| &command.apart)
            .filter(|part| part.subcommand == Subcommand::AsyncPortion)
            .map(|part| part.row.request_packets)
            .sum();
        let quality = &report.quality;
        PacketCounts {
            all: quality.packets,
            smb_flows: quality.smb_flow_packets,
            acks: quality.pure_acks,
            unacknowledged: quality.unacknowledged_segments,
            retransmitted: quality.retransmitted_segments,
            spurious: quality.spurious_retransmissions.min(quality.retransmitted_segments),
            seen_once: quality.retransmissions_seen_once,
            dropped: quality.dropped_packets,
            continuations: commands.continuation_packets + replies.continuation_packets,
            commands,
            replies,
            asynchronous: asynchronous.min(commands.continuation_packets),
        }
    }

    /// Returns the acknowledged data packets, and packets that open or close a connection.
    pub(crate) fn data(&self) -> u64 {
        self.smb_flows.saturating_sub(self.acks + self.unacknowledged)
    }

    pub(crate) fn others(&self) -> u64 {
        self.all.saturating_sub(self.smb_flows)
    }
}

/// Returns all other packets of a direction: SYN, FIN, RST, keep-alives.
pub(crate) fn control(counts: &DirectionCounts) -> u64 {
    counts
        .packets
        .saturating_sub(counts.message_packets + counts.continuation_packets + counts.pure_acks + counts.retransmitted)
}

fn add(sum: &mut DirectionCounts, part: &DirectionCounts) {
    sum.packets += part.packets;
    sum.bytes += part.bytes;
    sum.message_packets += part.message_packets;
    sum.continuation_packets += part.continuation_packets;
    sum.pure_acks += part.pure_acks;
    sum.retransmitted += part.retransmitted;
    sum.dropped_bytes += part.dropped_bytes;
    sum.dropped_packets += part.dropped_packets;
}
