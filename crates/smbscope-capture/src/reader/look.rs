//! Decodes single packets for the checks made before the capture is read.

use super::record::PacketRecord;
use crate::decode::Decoder;
use crate::segment::{Packet, TcpSegment};
use smbscope_model::{Quality, Stamp, Timestamp};

/// Decoder with quality counters of its own, which are discarded.
#[derive(Default)]
pub(super) struct Looker {
    decoder: Decoder,
    quality: Quality,
}

impl Looker {
    /// Passes on the TCP segment that the packet contains or completes. `window` starts with its record.
    pub(super) fn look(&mut self, record: &PacketRecord, window: &[u8], take: impl FnOnce(&TcpSegment<'_>)) {
        let end = record.data_start.saturating_add(record.data_length);
        let Some(data) = window.get(record.data_start..end) else { return };
        let stamp = Stamp { time: Timestamp(record.time), ..Stamp::default() };
        let packet = Packet { stamp, link_type: record.link_type, data, wire_length: record.wire_length };
        if let Some(segment) = self.decoder.decode(&packet, &mut self.quality) {
            take(&segment);
        }
    }
}
