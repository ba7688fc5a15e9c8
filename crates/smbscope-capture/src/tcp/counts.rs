//! Packet counters of one flow: a small subset of [`Quality`], because there may be very many flows.

use smbscope_model::Quality;

macro_rules! counts {
    ($($field:ident),+ $(,)?) => {
        /// Fields of [`Quality`], under the same names.
        #[derive(Debug, Clone, Copy, Default)]
        pub(super) struct Counts {
            $(pub(super) $field: u64,)+
        }

        impl Counts {
            pub(super) fn quality(&self) -> Quality {
                Quality { $($field: self.$field,)+ ..Quality::default() }
            }
        }
    };
}

counts!(
    smb_flow_packets,
    duplicate_packets,
    copies_behind_router,
    copies_at_two_layers,
    retransmitted_segments,
    retransmitted_bytes,
    retransmissions_seen_once,
    spurious_retransmissions,
    out_of_order_segments,
    late_segments,
    keep_alives,
    zero_windows,
    pure_acks,
    reorder_buffer_overflows,
    capture_gaps,
    dropped_bytes,
    dropped_packets,
    missing_unacknowledged_bytes,
    unacknowledged_segments,
);
