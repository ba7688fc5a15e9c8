//! Completeness of a capture: counters of missing and damaged data, by reason, and the share of commands that could not
//! be timed as a result; and the memory limits of an analysis, whose evictions it counts.
//!
//! [`Coverage`] counts as damage: packet loss in the capture, a start in the middle of connections, a short snap
//! length, a clock that stepped back, or an end in the middle of a response. Encryption and silent servers are not.
//!
//! Everything that grows with the number of flows, requests, sessions and names is charged to a [`MemoryBudget`]. When
//! it is used up, the least recently active connections are evicted and counted in [`Quality`]. Data that does not
//! depend on the capture, such as reader buffers and statistics tables, has fixed bounds outside the budget;
//! `docs/limits.md` lists them all.

use crate::exchange::ExchangeOutcome;
use serde::{Deserialize, Serialize};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)* ; maxima: $($(#[$max_doc:meta])* $max:ident,)*) => {
        /// Counters of everything that limits what a capture can tell. They start at zero and only grow.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(default)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct Quality {
            $($(#[$doc])* pub $name: u64,)*
            $($(#[$max_doc])* pub $max: u64,)*
        }

        impl Quality {
            pub fn merge(&mut self, other: &Quality) {
                $(self.$name += other.$name;)*
                $(self.$max = self.$max.max(other.$max);)*
            }

            /// Returns the counts after `before`, an earlier state of these counters. Maxima cover the whole time.
            pub fn since(&self, before: &Quality) -> Quality {
                Quality { $($name: self.$name.saturating_sub(before.$name),)* $($max: self.$max,)* }
            }

            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)* $((stringify!($max), self.$max),)*]
            }
        }
    };
}

counters! {
    /// Packet records read from the captures.
    packets,
    /// Original length of these packets on the wire, in bytes.
    wire_bytes,
    /// Captured length of these packets, in bytes.
    captured_bytes,
    /// Packets truncated by the snap length.
    snapped_packets,
    /// Packets that are not TCP over IP; `skipped` names the protocols.
    not_tcp,
    /// TCP packets.
    tcp_packets,
    /// Packets whose link, IP or TCP header does not parse.
    malformed_packets,
    /// Packets truncated by the snap length inside their link, IP or TCP header.
    headers_not_captured,
    /// TCP packets inside a tunnel: VXLAN, GENEVE, GRE, ERSPAN, IP in IP, GTP-U, etc.
    tunneled_packets,
    /// Frames of 802.11 aggregates (A-MSDU) beyond the first of their packet.
    aggregated_frames,
    /// TCP packets in a tunnel or of a process that is not named, because the table of them was full.
    origins_left_out,
    /// IP fragments.
    ip_fragments,
    /// IP datagrams reassembled from fragments.
    ip_datagrams_reassembled,
    /// IP datagrams evicted because fragments were missing or the table was full.
    ip_datagrams_incomplete,
    /// Packets stored out of time order in a file and sorted before the analysis.
    packets_reordered_by_time,
    /// Packets older than data already analysed, because of a clock step or a pipe that is out of order beyond the
    /// sorting window.
    packets_out_of_time_order,
    /// Capture files or streams that end in the middle of a record.
    truncated_captures,
    /// Unreadable records or blocks of a capture file that were skipped.
    unreadable_records,
    /// Packets that the kernel dropped because the capture was too slow, by its own count. Zero for files.
    packets_dropped_by_kernel,
    /// Packets, of any traffic, that the network interface dropped during the capture, by its own count. Zero for files.
    packets_dropped_by_interface,

    /// TCP packets of flows that carry SMB. This counter and the following ones, up to the framing losses, cover only
    /// these flows.
    smb_flow_packets,
    /// Segments that only acknowledge, without data, SYN, FIN or RST.
    pure_acks,
    /// Data segments whose acknowledgment is not in the capture.
    unacknowledged_segments,
    /// Packets captured twice.
    duplicate_packets,
    /// Duplicates with a different time to live: captured on both sides of a router.
    copies_behind_router,
    /// Duplicates captured at two layers of one host, before and after segmentation offload or receive coalescing.
    copies_at_two_layers,
    /// Segments that repeat bytes sent before.
    retransmitted_segments,
    /// Bytes sent more than once, because they were lost or the sender assumed so.
    retransmitted_bytes,
    /// Retransmitted segments whose bytes the receiver had already acknowledged.
    spurious_retransmissions,
    /// Retransmitted segments whose first copy was not captured.
    retransmissions_seen_once,
    /// Segments that arrived ahead of earlier bytes.
    out_of_order_segments,
    /// Gaps: ranges of bytes that the receiver acknowledged but the capture does not hold.
    capture_gaps,
    /// Minimum number of packets that the capture dropped.
    dropped_packets,
    /// Bytes that the capture dropped.
    dropped_bytes,
    /// Bytes neither captured nor acknowledged.
    missing_unacknowledged_bytes,
    /// Packets that arrived after their bytes had been counted as a gap.
    late_segments,
    /// TCP keep-alives.
    keep_alives,
    /// Segments that announced a zero receive window.
    zero_windows,
    /// Flows that began before the capture.
    midstream_flows,
    /// Such flows whose client and server were guessed from port numbers, because neither messages nor packet sizes
    /// decided it.
    sides_guessed,
    /// Flows closed by RST.
    reset_flows,
    /// Flows evicted because the table was full.
    evicted_flows,
    /// Segments evicted from a full reorder buffer.
    reorder_buffer_overflows,

    /// Number of times that framing was lost, after a gap, a truncated header or a mid-stream start.
    framing_lost,
    /// Framing losses at a frame header truncated by the snap length.
    framing_cut,
    /// Number of times that framing was recovered.
    framing_found,
    /// Bytes skipped while searching for a frame header.
    bytes_skipped,
    /// Frames that are neither SMB messages nor expected raw data.
    unknown_frames,
    /// SMB messages whose header or parameters are inconsistent.
    malformed_messages,
    /// SMB messages truncated before the message id. A compound counts once.
    headers_truncated,
    /// File and share names that were captured only in part or not at all.
    names_cut,
    /// Frames in an SMB2 TRANSFORM_HEADER.
    encrypted_frames,
    /// Frames in an SMB2 COMPRESSION_TRANSFORM_HEADER.
    compressed_frames,
    /// Compressed frames whose SMB header could not be recovered.
    compressed_frames_opaque,
    /// Connections whose server responded in a protocol other than SMB.
    foreign_replies,
    /// NetBIOS keep-alives.
    netbios_keep_alives,
    /// NetBIOS session requests and responses.
    netbios_session_packets,

    /// Responses whose request was not captured.
    responses_without_request,
    /// Those whose request was sent before the capture began.
    requests_before_capture,
    /// Requests never answered although the server's whole stream was captured.
    requests_unanswered,
    /// Requests without a response where the capture lacks bytes that may have held it.
    responses_not_captured,
    /// Commands whose last request packet was not captured. They have a response time if answered, but no service time.
    request_end_missing,
    /// Exchanges excluded because the last packet of the response is missing.
    response_end_missing,
    /// Responses rejected because their TCP position contradicts the request with the same id.
    causality_refused,
    /// Responses rejected because a gap may hide a reuse of the id.
    ambiguous_refused,
    /// Requests whose id was reused while they were outstanding.
    ids_reused,
    /// Exchanges excluded because the clock stepped between request and response, or the capture reordered them.
    clock_steps,
    /// Responses that begin before the last packet of their request. They have no service time and no server time.
    early_responses,
    /// Outstanding requests evicted because the table was full.
    evicted_requests,
    /// Names of sessions, trees and opens evicted because a table was full.
    evicted_names,
    /// Interim responses: STATUS_PENDING, and SMB1's "go ahead".
    interim_responses,
    /// Oplock and lease breaks sent by the server.
    server_breaks,
    /// Commands that were not captured at all. Counted by message ids in SMB2; estimated for SMB1 and encrypted
    /// commands from the missing bytes and the typical sizes around them.
    commands_unseen,
    /// Squared standard error of `commands_unseen`.
    commands_unseen_variance,

    ; maxima:
    /// Captured bytes of the longest packet truncated by the snap length.
    longest_cut_packet,
    /// Largest number of bytes that may be missing from a truncated name.
    longest_name_tail,
}

impl Quality {
    pub fn name_was_cut(&mut self, missing: usize) {
        self.names_cut += 1;
        self.longest_name_tail = self.longest_name_tail.max(missing as u64);
    }

    /// Returns the snap length that would have kept every name whole. Absent if none was truncated by the snap length.
    pub fn snap_length_for_names(&self) -> Option<u64> {
        (self.longest_name_tail > 0 && self.longest_cut_packet > 0)
            .then(|| self.longest_cut_packet + self.longest_name_tail)
    }

    pub fn untimed_by_capture(&self) -> u64 {
        self.responses_without_request
            + self.responses_not_captured
            + self.response_end_missing
            + self.ambiguous_refused
            + self.headers_truncated
    }
}

/// Half-width of the confidence interval in standard errors: covers 99.7% of a normal distribution.
const STANDARD_ERRORS: f64 = 3.0;
/// Relative half-width up to which an estimate is reported as a single figure.
const SURE: f64 = 0.1;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage {
    pub timed: u64,
    /// Commands that are partly captured but have no time because of damage.
    pub in_part: u64,
    /// Commands that were not captured at all: counted if they are numbered, else estimated.
    pub unseen: u64,
    unseen_variance: u64,
    /// Encrypted frames that a capture with losses left unpaired.
    unpaired: u64,
    pub others: u64,
}

/// Percentage of commands that could not be timed: those partly captured, and those not captured at all
/// (commands_unseen). It is an estimate if the bounds differ.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UntimedShare {
    /// Best estimate.
    pub percent: f64,
    /// Lower bound: three standard errors below.
    pub at_least: f64,
    /// Upper bound: three standard errors above.
    pub at_most: f64,
}

impl Coverage {
    pub fn new(ended: impl Fn(ExchangeOutcome) -> u64, untimed: u64, quality: &Quality) -> Coverage {
        let both_halves = ended(ExchangeOutcome::ResponseEndMissing) + ended(ExchangeOutcome::ClockStep);
        let one_half = ended(ExchangeOutcome::ResponseNotCaptured)
            + ended(ExchangeOutcome::RequestNotCaptured)
            + ended(ExchangeOutcome::AmbiguousMatch);
        // A truncated header hides one half of a command. The other half may be counted already in `one_half`;
        // whatever exceeds that is a command with both halves truncated.
        let cut = quality.headers_truncated.saturating_sub(one_half).div_ceil(2);
        let lossy = quality.dropped_packets + quality.capture_gaps > 0;
        let unpaired = if lossy { ended(ExchangeOutcome::NotPairable) } else { 0 };
        Coverage {
            timed: ended(ExchangeOutcome::Complete),
            in_part: one_half + both_halves + cut,
            // Commands with truncated headers have no known message id either, so they are part of the unseen ones.
            unseen: quality.commands_unseen.saturating_sub(cut),
            unseen_variance: quality.commands_unseen_variance,
            unpaired,
            others: untimed.saturating_sub(one_half + both_halves + unpaired),
        }
    }

    /// Commands without a time because of damage. An upper bound if some are encrypted.
    pub fn missed(&self) -> u64 {
        self.in_part + self.unseen + self.unpaired
    }

    pub fn not_timed(&self) -> UntimedShare {
        let error = STANDARD_ERRORS * (self.unseen_variance as f64).sqrt();
        let unseen = self.unseen as f64;
        let unpaired = self.unpaired as f64;
        let percent = |unseen: f64, paired: f64| {
            let missed = self.in_part as f64 + unseen + unpaired - paired;
            let all = missed + paired + (self.timed + self.others) as f64;
            if all > 0.0 { 100.0 * missed / all } else { 0.0 }
        };
        UntimedShare {
            percent: percent(unseen, 0.0),
            at_least: percent((unseen - error).max(0.0), unpaired),
            at_most: percent(unseen + error, 0.0),
        }
    }
}

impl UntimedShare {
    /// Returns true if the bounds are close enough to report a single figure.
    pub fn is_sure(&self) -> bool {
        let within = SURE * self.percent;
        self.percent - self.at_least <= within && self.at_most - self.percent <= within
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Bytes for flows: reassembly buffers, incomplete frames, outstanding requests.
    pub flows: usize,
    /// Bytes for the names of SMB2 sessions: users, shares, paths of open files.
    pub names: usize,
    /// Number of connections listed individually. Commands of the others still count.
    pub connections: usize,
}

impl MemoryBudget {
    pub const DEFAULT_MEMORY: usize = 512 << 20;
    /// With less memory, ordinary captures would hit the limits.
    pub const LEAST_MEMORY: usize = 32 << 20;

    pub const fn for_memory(memory: usize) -> MemoryBudget {
        let connections = if memory / 4096 < 100_000 { memory / 4096 } else { 100_000 };
        MemoryBudget { flows: memory / 4 * 3, names: memory / 4, connections }
    }

    /// Returns the budgets of one of `parts` parts. Flows are distributed by hash, so a part may list up to four times
    /// its share of connections; the merged list is cut to the total.
    pub const fn part(self, parts: usize) -> MemoryBudget {
        let connections = if parts > 4 { self.connections / parts * 4 } else { self.connections };
        MemoryBudget { flows: self.flows / parts, names: self.names / parts, connections }
    }
}

impl Default for MemoryBudget {
    fn default() -> MemoryBudget {
        MemoryBudget::for_memory(MemoryBudget::DEFAULT_MEMORY)
    }
}
