//! What the capture could not show, counted by reason. Damaged traffic is data, not an error.

use serde::{Deserialize, Serialize};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)* ; maxima: $($(#[$max_doc:meta])* $max:ident,)*) => {
        /// Counters of everything that limits what a capture can tell. All start at zero and only grow.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(default)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct Quality {
            $($(#[$doc])* pub $name: u64,)*
            $($(#[$max_doc])* pub $max: u64,)*
        }

        impl Quality {
            /// Adds the counts of another part of the same capture.
            pub fn merge(&mut self, other: &Quality) {
                $(self.$name += other.$name;)*
                $(self.$max = self.$max.max(other.$max);)*
            }

            /// Every counter with its name, in a fixed order.
            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)* $((stringify!($max), self.$max),)*]
            }
        }
    };
}

counters! {
    /// Records read from the captures.
    packets,
    /// Bytes of those packets on the wire (the original lengths).
    wire_bytes,
    /// Bytes of those packets in the capture.
    captured_bytes,
    /// Packets that the snap length cut short.
    snapped_packets,
    /// Packets of another protocol than TCP over IP; `skipped` names the protocols.
    not_tcp,
    /// TCP packets.
    tcp_packets,
    /// Packets whose link, IP or TCP header does not parse.
    malformed_packets,
    /// Packets that the snap length cut off inside their link, IP or TCP header.
    headers_not_captured,
    /// TCP packets that were in a tunnel: VXLAN, GENEVE, GRE, ERSPAN, IP in IP, GTP-U and others.
    tunneled_packets,
    /// IP fragments seen.
    ip_fragments,
    /// IP datagrams put together from fragments.
    ip_datagrams_reassembled,
    /// IP datagrams evicted because fragments are missing or the table was full.
    ip_datagrams_incomplete,
    /// Packets that a file held out of time order, put in order before the analysis.
    packets_reordered_by_time,
    /// Packets older than what was already analysed (a pipe out of order beyond the window, a clock step).
    packets_out_of_time_order,
    /// Capture files or streams that end in the middle of a record.
    truncated_captures,
    /// Records or blocks of a capture file that could not be read and were skipped.
    unreadable_records,

    /// TCP packets of flows that carry SMB; the counters from here to the losses of framing are about these flows.
    smb_flow_packets,
    /// Segments without data, SYN, FIN or RST that acknowledge.
    pure_acks,
    /// Data segments never acknowledged in the capture.
    unacknowledged_segments,
    /// The same packet captured twice.
    duplicate_packets,
    /// Of those, copies with another time to live: captured on both sides of a router.
    copies_behind_router,
    /// Of those, packets that repeat a record from before segmentation offload, or records that merge packets: captured at
    /// two layers of one host.
    copies_at_two_layers,
    /// Segments that carry bytes sent before.
    retransmitted_segments,
    /// Bytes sent more than once: lost by the network, or believed lost by the sender.
    retransmitted_bytes,
    /// Retransmitted segments whose bytes the receiver had already acknowledged.
    spurious_retransmissions,
    /// Segments sent again of which the capture holds only the late copy.
    retransmissions_seen_once,
    /// Segments that arrived before bytes that belong in front of them.
    out_of_order_segments,
    /// Gaps: runs of bytes that the receiver acknowledged but the capture never held.
    capture_gaps,
    /// Packets dropped by the capture, at least.
    dropped_packets,
    /// Bytes dropped by the capture.
    dropped_bytes,
    /// Bytes neither captured nor acknowledged.
    missing_unacknowledged_bytes,
    /// Packets that came too late, after the gap of their bytes was counted.
    late_segments,
    /// TCP keep-alives.
    keep_alives,
    /// Segments that announced a closed receive window.
    zero_windows,
    /// Flows whose beginning the capture does not hold.
    midstream_flows,
    /// Of them, those whose client and server are a guess by port numbers: neither a message nor a size told.
    sides_guessed,
    /// Flows closed by RST.
    reset_flows,
    /// Flows evicted because the table was full.
    evicted_flows,
    /// Segments held for reordering and evicted because a buffer was full.
    reorder_buffer_overflows,

    /// Times that the framing was lost (after a gap, a cut-off header, a mid-stream start).
    framing_lost,
    /// Of them, those at a frame header that the snap length cut off.
    framing_cut,
    /// Times that it was found again.
    framing_found,
    /// Bytes skipped while looking for a frame header.
    bytes_skipped,
    /// Frames that are no SMB message and were not expected as raw data.
    unknown_frames,
    /// SMB messages whose header or parameters contradict themselves.
    malformed_messages,
    /// SMB messages whose header was cut off before the message id; of a compound, its first such member.
    headers_truncated,
    /// Names of files and shares of which the capture holds only the beginning, or nothing.
    names_cut,
    /// Frames in an SMB2 TRANSFORM_HEADER.
    encrypted_frames,
    /// Frames in an SMB2 COMPRESSION_TRANSFORM_HEADER.
    compressed_frames,
    /// Compressed frames whose header could not be recovered.
    compressed_frames_opaque,
    /// Connections whose server answered in another protocol than SMB.
    foreign_replies,
    /// NetBIOS keep-alives.
    netbios_keep_alives,
    /// NetBIOS session requests and responses.
    netbios_session_packets,

    /// Responses whose request was not captured.
    responses_without_request,
    /// Requests never answered, with the server's stream whole.
    requests_unanswered,
    /// Requests never answered while the capture lacks bytes that may have held the response.
    responses_not_captured,
    /// Commands whose last packet was not captured: timed if answered, but without service time.
    request_end_missing,
    /// Exchanges left out because the last packet of the response is missing.
    response_end_missing,
    /// Responses refused because their TCP positions contradict the request with the same id.
    causality_refused,
    /// Responses refused because a gap could hide a recycled id.
    ambiguous_refused,
    /// Requests whose id was used again while they were outstanding.
    ids_reused,
    /// Exchanges left out because the clock stepped between request and response, or these were captured in the wrong order.
    clock_steps,
    /// Responses that begin before the last packet of their request; they have no service time and no server time.
    early_responses,
    /// Outstanding requests evicted because the table was full.
    evicted_requests,
    /// Names (sessions, trees, opens) evicted because a table was full.
    evicted_names,
    /// Interim responses (STATUS_PENDING and SMB1's "go ahead").
    interim_responses,
    /// Oplock and lease breaks that the server sent.
    server_breaks,
    /// Commands of which the capture shows nothing: SMB2's by their message ids, those of SMB1 and encrypted ones estimated
    /// by the bytes missing and the typical sizes around them.
    commands_unseen,
    /// The square of the standard error of that number.
    commands_unseen_variance,

    ; maxima:
    /// Captured bytes of the longest packet that the snap length cut short.
    longest_cut_packet,
    /// Bytes that are missing of a name that was cut off, at most.
    longest_name_tail,
}

impl Quality {
    /// A name was cut off, and the rest of it lies within so many bytes.
    pub fn name_was_cut(&mut self, missing: usize) {
        self.names_cut += 1;
        self.longest_name_tail = self.longest_name_tail.max(missing as u64);
    }

    /// The snap length that would have kept every name whole, if that is what cut any.
    pub fn snap_length_for_names(&self) -> Option<u64> {
        (self.longest_name_tail > 0 && self.longest_cut_packet > 0)
            .then(|| self.longest_cut_packet + self.longest_name_tail)
    }

    /// Commands that the capture shows in part but that were not timed because packets are missing.
    pub fn untimed_by_capture(&self) -> u64 {
        self.responses_without_request
            + self.responses_not_captured
            + self.response_end_missing
            + self.ambiguous_refused
            + self.headers_truncated
    }
}
