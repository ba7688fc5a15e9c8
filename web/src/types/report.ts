// Made from schema/smbscope.report-1.schema.json by scripts/types.mjs; do not edit.

/**
 * Party that has to act.
 */
export type Culprit = "server" | "network" | "client" | "application" | "capture" | "nothing";
/**
 * Reliability of an explanation.
 */
export type Confidence = "low" | "medium" | "high";
/**
 * Kind of work in an episode.
 */
export type EpisodeKind =
  "logon" | "logoff" | "launch" | "document" | "save" | "settings" | "download" | "upload" | "search" | "other";
/**
 * SMB1 (MS-CIFS, MS-SMB) or SMB2/3 (MS-SMB2).
 */
export type Protocol = "SMB1" | "SMB2";
/**
 * Operation group of a command. `Attributes`, `Directory` and `Locking` together are the paper's *Other*.
 */
export type GroupName =
  | "Open/Close"
  | "Attributes"
  | "Directory"
  | "Locking"
  | "Read"
  | "Write"
  | "Session"
  | "Control"
  | "Waiting"
  | "Encrypted";

/**
 * Output of `smbscope analyze --format json`. Times are integers in nanoseconds, timestamps count from the Unix epoch. Null is unknown or, for a statistic, based on too few values.
 */
export interface SmbscopeReportDocument {
  schema: "smbscope.report/1";
  generator: Generator;
  title: string | null;
  /**
   * Expression of --filter, as described in docs/filter.md. Null if the statistics cover all exchanges. Captures, quality and connections always cover everything.
   */
  filter: string | null;
  /**
   * Exchanges selected by the filter.
   */
  matched: Matched | null;
  /**
   * Captures in the order in which exchanges number them.
   */
  captures: CaptureInfo[];
  quality: Quality;
  totals: Totals;
  answer: Answer;
  /**
   * SMB1 in use: clients, servers, users and shares. Null if SMB1 is not in use.
   */
  smb1: Smb1Usage | null;
  /**
   * Bursts of work of single clients, in time order.
   */
  episodes: Episode[];
  /**
   * Commands of the episode selected by --episode, in time order, the first 5,000.
   */
  waterfall: SlowExchange[];
  time_split: TimeSplit;
  /**
   * Offers of both sides in protocol negotiation and the outcome, most connections first.
   */
  negotiations: Negotiation[];
  /**
   * TCP connections that carried SMB.
   */
  connections: ConnectionEntry[];
  /**
   * By command. Expected waits of a command are a separate entry with the group Waiting.
   */
  commands: CommandEntry[];
  /**
   * By operation group. The entries add up; `Other` holds its parts.
   */
  groups: GroupEntry[];
  shares: ShareEntity[];
  files: FileEntity[];
  clients: ClientEntity[];
  servers: ServerEntity[];
  users: UserEntity[];
  caching: CachingEntry;
  /**
   * Commands grouped by --by. Null without it.
   */
  slices: SliceListing | null;
  timeline: ReportTimeline;
  heatmap: HeatMap;
  concurrency: Concurrency[];
  /**
   * Slowest exchanges, slowest first, at most 100.
   */
  slowest: SlowExchange[];
  omitted: Omitted;
  warnings: string[];
  /**
   * Ways between the capture points, if there are several, such as client and server. All other figures then come from the point nearest to the client. Absent for captures of one point.
   */
  sides?: SidesFigures | null;
}
/**
 * Program that wrote a document.
 */
export interface Generator {
  /**
   * Always `smbscope`.
   */
  name: "smbscope";
  /**
   * Version of the program.
   */
  version: string;
}
/**
 * Exchanges selected by the filter, out of all.
 */
export interface Matched {
  exchanges: number;
  of: number;
}
/**
 * One capture file or stream.
 */
export interface CaptureInfo {
  /**
   * Name as given on the command line; `-` for standard input.
   */
  name: string;
  /**
   * `pcap`, `pcap (ns)`, `pcapng`, `snoop`, `ERF`, `Network Monitor 2`, etc.
   */
  format: string;
  /**
   * `gzip`, `zstd`, `lz4` or `xz`; null for a plain file.
   */
  compression: string | null;
  /**
   * Packets in the file.
   */
  packets: number;
  /**
   * File size, after compression if any.
   */
  bytes: number;
  /**
   * Earliest timestamp.
   */
  first_ns: number | null;
  /**
   * Latest timestamp.
   */
  last_ns: number | null;
  /**
   * Tick of the coarsest clock in nanoseconds, at least 1.
   */
  resolution_ns: number;
  /**
   * Largest snap length stated in the file.
   */
  snap_length: number | null;
  /**
   * LINKTYPE_* values of the interfaces.
   */
  link_types: number[];
  /**
   * Smallest observed step of the clock if it is 100 µs or more, whatever resolution the file states; 0 if the clock stood still, null for a finer clock. Shorter times cannot be measured.
   */
  coarse_clock_ns: number | null;
  /**
   * Correction applied because the two directions were stamped by different clocks; null if one clock stamped both.
   */
  clock_offset: CaptureClockOffset | null;
  /**
   * Problems found in the file.
   */
  warnings: string[];
}
/**
 * Offset between the clocks of the two directions, bounded by the minimum delays between data and acknowledgments. The sum of a response time and the following think time is exact for any offset.
 */
export interface CaptureClockOffset {
  /**
   * True if packets from servers carried the later time, false if packets from clients did.
   */
  of_servers: boolean;
  /**
   * Time subtracted from these packets.
   */
  applied_ns: number;
  /**
   * Lower bound of the offset.
   */
  low_ns: number;
  /**
   * Upper bound of the offset.
   */
  high_ns: number;
}
/**
 * Gaps in the captures: in one sentence, and counted by reason.
 */
export interface Quality {
  /**
   * Share of commands not timed because of gaps in the capture, with the reason, in plain English.
   */
  sentence: string;
  not_timed: UntimedShare;
  /**
   * Packet records read from the captures.
   */
  packets: number;
  /**
   * Original length of these packets on the wire, in bytes.
   */
  wire_bytes: number;
  /**
   * Captured length of these packets, in bytes.
   */
  captured_bytes: number;
  /**
   * Packets truncated by the snap length.
   */
  snapped_packets: number;
  /**
   * Packets that are not TCP over IP; `skipped` names the protocols.
   */
  not_tcp: number;
  /**
   * TCP packets.
   */
  tcp_packets: number;
  /**
   * Packets whose link, IP or TCP header does not parse.
   */
  malformed_packets: number;
  /**
   * Packets truncated by the snap length inside their link, IP or TCP header.
   */
  headers_not_captured: number;
  /**
   * TCP packets inside a tunnel: VXLAN, GENEVE, GRE, ERSPAN, IP in IP, GTP-U, etc.
   */
  tunneled_packets: number;
  /**
   * Frames of 802.11 aggregates (A-MSDU) beyond the first of their packet.
   */
  aggregated_frames: number;
  /**
   * TCP packets in a tunnel or of a process that is not named, because the table of them was full.
   */
  origins_left_out: number;
  /**
   * IP fragments.
   */
  ip_fragments: number;
  /**
   * IP datagrams reassembled from fragments.
   */
  ip_datagrams_reassembled: number;
  /**
   * IP datagrams evicted because fragments were missing or the table was full.
   */
  ip_datagrams_incomplete: number;
  /**
   * Packets stored out of time order in a file and sorted before the analysis.
   */
  packets_reordered_by_time: number;
  /**
   * Packets older than data already analysed, because of a clock step or a pipe that is out of order beyond the sorting window.
   */
  packets_out_of_time_order: number;
  /**
   * Capture files or streams that end in the middle of a record.
   */
  truncated_captures: number;
  /**
   * Unreadable records or blocks of a capture file that were skipped.
   */
  unreadable_records: number;
  /**
   * Packets that the kernel dropped because the capture was too slow, by its own count. Zero for files.
   */
  packets_dropped_by_kernel: number;
  /**
   * Packets, of any traffic, that the network interface dropped during the capture, by its own count. Zero for files.
   */
  packets_dropped_by_interface: number;
  /**
   * TCP packets of flows that carry SMB. This counter and the following ones, up to the framing losses, cover only these flows.
   */
  smb_flow_packets: number;
  /**
   * Segments that only acknowledge, without data, SYN, FIN or RST.
   */
  pure_acks: number;
  /**
   * Data segments whose acknowledgment is not in the capture.
   */
  unacknowledged_segments: number;
  /**
   * Packets captured twice.
   */
  duplicate_packets: number;
  /**
   * Duplicates with a different time to live: captured on both sides of a router.
   */
  copies_behind_router: number;
  /**
   * Duplicates captured at two layers of one host, before and after segmentation offload or receive coalescing.
   */
  copies_at_two_layers: number;
  /**
   * Segments that repeat bytes sent before.
   */
  retransmitted_segments: number;
  /**
   * Bytes sent more than once, because they were lost or the sender assumed so.
   */
  retransmitted_bytes: number;
  /**
   * Retransmitted segments whose bytes the receiver had already acknowledged.
   */
  spurious_retransmissions: number;
  /**
   * Retransmitted segments whose first copy was not captured.
   */
  retransmissions_seen_once: number;
  /**
   * Segments that arrived ahead of earlier bytes.
   */
  out_of_order_segments: number;
  /**
   * Gaps: ranges of bytes that the receiver acknowledged but the capture does not hold.
   */
  capture_gaps: number;
  /**
   * Minimum number of packets that the capture dropped.
   */
  dropped_packets: number;
  /**
   * Bytes that the capture dropped.
   */
  dropped_bytes: number;
  /**
   * Bytes neither captured nor acknowledged.
   */
  missing_unacknowledged_bytes: number;
  /**
   * Packets that arrived after their bytes had been counted as a gap.
   */
  late_segments: number;
  /**
   * TCP keep-alives.
   */
  keep_alives: number;
  /**
   * Segments that announced a zero receive window.
   */
  zero_windows: number;
  /**
   * Flows that began before the capture.
   */
  midstream_flows: number;
  /**
   * Such flows whose client and server were guessed from port numbers, because neither messages nor packet sizes decided it.
   */
  sides_guessed: number;
  /**
   * Flows closed by RST.
   */
  reset_flows: number;
  /**
   * Flows evicted because the table was full.
   */
  evicted_flows: number;
  /**
   * Segments evicted from a full reorder buffer.
   */
  reorder_buffer_overflows: number;
  /**
   * Number of times that framing was lost, after a gap, a truncated header or a mid-stream start.
   */
  framing_lost: number;
  /**
   * Framing losses at a frame header truncated by the snap length.
   */
  framing_cut: number;
  /**
   * Number of times that framing was recovered.
   */
  framing_found: number;
  /**
   * Bytes skipped while searching for a frame header.
   */
  bytes_skipped: number;
  /**
   * Frames that are neither SMB messages nor expected raw data.
   */
  unknown_frames: number;
  /**
   * SMB messages whose header or parameters are inconsistent.
   */
  malformed_messages: number;
  /**
   * SMB messages truncated before the message id. A compound counts once.
   */
  headers_truncated: number;
  /**
   * File and share names that were captured only in part or not at all.
   */
  names_cut: number;
  /**
   * Frames in an SMB2 TRANSFORM_HEADER.
   */
  encrypted_frames: number;
  /**
   * Frames in an SMB2 COMPRESSION_TRANSFORM_HEADER.
   */
  compressed_frames: number;
  /**
   * Compressed frames whose SMB header could not be recovered.
   */
  compressed_frames_opaque: number;
  /**
   * Connections whose server responded in a protocol other than SMB.
   */
  foreign_replies: number;
  /**
   * NetBIOS keep-alives.
   */
  netbios_keep_alives: number;
  /**
   * NetBIOS session requests and responses.
   */
  netbios_session_packets: number;
  /**
   * Responses whose request was not captured.
   */
  responses_without_request: number;
  /**
   * Those whose request was sent before the capture began.
   */
  requests_before_capture: number;
  /**
   * Requests never answered although the server's whole stream was captured.
   */
  requests_unanswered: number;
  /**
   * Requests without a response where the capture lacks bytes that may have held it.
   */
  responses_not_captured: number;
  /**
   * Commands whose last request packet was not captured. They have a response time if answered, but no service time.
   */
  request_end_missing: number;
  /**
   * Exchanges excluded because the last packet of the response is missing.
   */
  response_end_missing: number;
  /**
   * Responses rejected because their TCP position contradicts the request with the same id.
   */
  causality_refused: number;
  /**
   * Responses rejected because a gap may hide a reuse of the id.
   */
  ambiguous_refused: number;
  /**
   * Requests whose id was reused while they were outstanding.
   */
  ids_reused: number;
  /**
   * Exchanges excluded because the clock stepped between request and response, or the capture reordered them.
   */
  clock_steps: number;
  /**
   * Responses that begin before the last packet of their request. They have no service time and no server time.
   */
  early_responses: number;
  /**
   * Outstanding requests evicted because the table was full.
   */
  evicted_requests: number;
  /**
   * Names of sessions, trees and opens evicted because a table was full.
   */
  evicted_names: number;
  /**
   * Interim responses: STATUS_PENDING, and SMB1's "go ahead".
   */
  interim_responses: number;
  /**
   * Oplock and lease breaks sent by the server.
   */
  server_breaks: number;
  /**
   * Commands that were not captured at all. Counted by message ids in SMB2; estimated for SMB1 and encrypted commands from the missing bytes and the typical sizes around them.
   */
  commands_unseen: number;
  /**
   * Squared standard error of `commands_unseen`.
   */
  commands_unseen_variance: number;
  /**
   * Captured bytes of the longest packet truncated by the snap length.
   */
  longest_cut_packet: number;
  /**
   * Largest number of bytes that may be missing from a truncated name.
   */
  longest_name_tail: number;
  /**
   * Packets other than TCP by protocol, most packets first, at most 33 entries. They add up to `not_tcp`.
   */
  skipped: SkippedProtocolEntry[];
  /**
   * SMB connections in other headers than Ethernet and IP (link types, tags, tunnels), most packets first.
   */
  encapsulations: EncapsulatedTraffic[];
}
/**
 * Percentage of commands that could not be timed: those partly captured, and those not captured at all (commands_unseen). It is an estimate if the bounds differ.
 */
export interface UntimedShare {
  /**
   * Best estimate.
   */
  percent: number;
  /**
   * Lower bound: three standard errors below.
   */
  at_least: number;
  /**
   * Upper bound: three standard errors above.
   */
  at_most: number;
}
/**
 * Packets of a protocol that is not analysed.
 */
export interface SkippedProtocolEntry {
  /**
   * Layer that assigns the number.
   */
  layer:
    | "link type"
    | "address family"
    | "EtherType"
    | "802.2 SAP"
    | "PPP protocol"
    | "802.11 frame"
    | "MPLS payload"
    | "GRE protocol"
    | "IP protocol"
    | "UDP port"
    | "nested tunnels"
    | "other protocols";
  /**
   * Protocol number, if there is one. For UDP the well-known port, or the lower one.
   */
  number: number | null;
  /**
   * Common name.
   */
  name: string | null;
  packets: number;
}
/**
 * SMB connections whose packets are inside the same headers.
 */
export interface EncapsulatedTraffic {
  /**
   * Headers around their packets other than Ethernet and IP, outermost first: `VXLAN on UDP port 4789`.
   */
  headers: string;
  /**
   * Number of connections.
   */
  connections: number;
  /**
   * TCP packets of these connections.
   */
  packets: number;
}
export interface Totals {
  /**
   * Commands of all groups.
   */
  commands: number;
  /**
   * Commands that should have a response time but couldn't be timed.
   */
  untimed: number;
  /**
   * Exchanges by outcome. Only values that occur.
   */
  outcomes: {
    [k: string]: number;
  };
  first_ns: number | null;
  last_ns: number | null;
  /**
   * Time from the first to the last packet of the captures.
   */
  elapsed_ns: number | null;
  load: LoadTotals;
  headline: StatisticsEntry;
}
/**
 * Load on the servers. All rates, error counts and byte counts are derived from it.
 */
export interface LoadTotals {
  /**
   * Time from the first to the last packet of the commands, the base of all rates.
   */
  elapsed_ns: number;
  /**
   * Commands of all groups per second. Null if no time elapsed.
   */
  commands_per_second: number | null;
  /**
   * Error responses of all groups.
   */
  errors: number;
  /**
   * Bytes of file data read.
   */
  bytes_read: number;
  /**
   * Bytes of file data written.
   */
  bytes_written: number;
  read_bytes_per_second: number | null;
  written_bytes_per_second: number | null;
}
/**
 * Counts and times of a set of exchanges.
 */
export interface StatisticsEntry {
  /**
   * Number of exchanges, timed or not.
   */
  count: number;
  /**
   * Exchanges with a response time.
   */
  timed: number;
  /**
   * Error responses by status. `(other)` is the sum of the statuses not listed.
   */
  errors: {
    [k: string]: number;
  };
  /**
   * Exchanges by outcome. Only values that occur.
   */
  outcomes: {
    [k: string]: number;
  };
  /**
   * Mean number of packets per exchange, request and response, over exchanges whose packets are all known.
   */
  average_packets: number | null;
  /**
   * Bytes of SMB requests.
   */
  request_bytes: number;
  /**
   * Bytes of final SMB responses.
   */
  response_bytes: number;
  /**
   * Response times by decade: below 1 µs, 10 µs, 100 µs, 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, and longer. Lower bounds are inclusive.
   *
   * @minItems 10
   * @maxItems 10
   */
  distribution: [number, number, number, number, number, number, number, number, number, number];
  response_time: Times;
  service_time: Times;
  server_time: Times;
  request_transfer: Times;
  response_transfer: Times;
  srt: Times;
  retransmission_delay: Times;
  think_time: Times;
}
/**
 * Statistics of a time in nanoseconds. The standard deviation divides by n − 1. Percentiles interpolate linearly (Hyndman and Fan 7), are exact up to 10,000 values and have three significant digits above; p50 needs 1 value, p90 10, p95 20, p99 100, p999 1000. Statistics with too few values are null.
 */
export interface Times {
  /**
   * Number of values.
   */
  count: number;
  /**
   * Minimum.
   */
  min: number | null;
  /**
   * Maximum.
   */
  max: number | null;
  /**
   * Arithmetic mean, rounded to whole nanoseconds.
   */
  mean: number | null;
  /**
   * Sample standard deviation (divisor n − 1), rounded to whole nanoseconds.
   */
  stddev: number | null;
  /**
   * Median.
   */
  p50: number | null;
  /**
   * 90th percentile.
   */
  p90: number | null;
  /**
   * 95th percentile.
   */
  p95: number | null;
  /**
   * 99th percentile.
   */
  p99: number | null;
  /**
   * 99.9th percentile.
   */
  p999: number | null;
}
/**
 * Diagnosis of a capture.
 */
export interface Answer {
  culprit: Culprit;
  /**
   * Diagnosis in one or two sentences.
   */
  headline: string;
  /**
   * True if the headline states the first cause, false if it names the party that took most of the time or none.
   */
  states_first_cause: boolean;
  /**
   * Facts that support the headline, one sentence each.
   */
  evidence: string[];
  /**
   * Causes of noticeable waits, most severe first.
   */
  causes: Cause[];
  /**
   * Findings that cost no noticeable time.
   */
  notes: Cause[];
  /**
   * Causes ruled out by the capture, one sentence each.
   */
  ruled_out: string[];
  /**
   * Limits of the diagnosis, one sentence each.
   */
  caveats: string[];
  /**
   * Suggested commands for a closer look.
   */
  next: SuggestedCommand[];
  /**
   * Limits in force, in the syntax of `--slow`.
   */
  slow: string;
}
/**
 * Explanation of a wait.
 */
export interface Cause {
  /**
   * Identifier of the cause, as listed in docs/causes.md.
   */
  id: string;
  culprit: Culprit;
  /**
   * Short name.
   */
  title: string;
  /**
   * Description of the event.
   */
  sentence: string;
  /**
   * Cost and who bore it. Empty if the capture does not show it.
   */
  cost: string;
  subject: Subject;
  /**
   * Time that would be saved without the cause. Null if the capture does not show it.
   */
  lost_ns: LostTime | null;
  /**
   * Active time of the affected clients: time with a request outstanding on any connection, plus the think time in between.
   */
  active_ns: number;
  /**
   * Lost time as a share of active time, 0 to 1.
   */
  share: number | null;
  confidence: Confidence;
  /**
   * Packets that show the cause.
   */
  evidence: Evidence[];
  /**
   * Wireshark display filter.
   */
  wireshark: string;
  /**
   * Recommended action.
   */
  advice: string;
  /**
   * Source of the thresholds and the advice.
   */
  source: string;
  /**
   * Titles of more general causes that explain the same seconds.
   */
  also: string[];
}
/**
 * Clients, server and file that a cause concerns. Null fields do not apply.
 */
export interface Subject {
  /**
   * Address of the client, or of the most affected one.
   */
  client: string | null;
  /**
   * Number of affected clients.
   */
  clients: number;
  /**
   * Address and port of the server.
   */
  server: string | null;
  /**
   * Users on the client's connections.
   */
  users: string[];
  /**
   * Share name.
   */
  share: string | null;
  /**
   * Path of the file or directory, relative to the share.
   */
  path: string | null;
}
/**
 * Duration with bounds.
 */
export interface LostTime {
  /**
   * Lower bound.
   */
  low: number;
  /**
   * Best estimate.
   */
  best: number;
  /**
   * Upper bound.
   */
  high: number;
}
/**
 * Packet that shows a cause.
 */
export interface Evidence {
  /**
   * Index of the capture in `captures`.
   */
  capture: number;
  /**
   * Number of the packet in that file, from 1.
   */
  packet: number;
  /**
   * Timestamp of the packet.
   */
  time_ns: number;
}
export interface SuggestedCommand {
  /**
   * Subject of the command's output.
   */
  label: string;
  /**
   * Command line, quoted for a shell. `FILE` stands for captures that cannot be named.
   */
  command: string;
}
/**
 * Usage of SMB1. At most 100 entries per list.
 */
export interface Smb1Usage {
  /**
   * Connections that use SMB1. 0 if there are only commands of connections whose start was not captured.
   */
  connections: number;
  clients: string[];
  servers: string[];
  users: string[];
  shares: string[];
  /**
   * Summary in one sentence.
   */
  sentence: string;
}
/**
 * Burst of work of one client. Its commands are less than 2 s apart, or further if the client has more than 64 bursts.
 */
export interface Episode {
  /**
   * Number for --episode, from 1.
   */
  number: number;
  client: string;
  kind: EpisodeKind;
  /**
   * Program, document or settings opened most often.
   */
  about: string | null;
  /**
   * Description in words.
   */
  label: string;
  start_ns: number;
  end_ns: number;
  duration_ns: number;
  /**
   * Time with a command outstanding, summed over connections.
   */
  waited_ns: number;
  /**
   * Rest of the duration.
   */
  think_ns: number;
  /**
   * Number of commands; equal to round trips if they are sequential.
   */
  commands: number;
  opens: number;
  /**
   * Distinct paths opened; from 64 on an estimate (13% error).
   */
  files: number;
  bytes_read: number;
  bytes_written: number;
  /**
   * Commands with a response time, without expected waits.
   */
  timed: number;
  /**
   * The longest of these, longest first: up to 250, fewer if many clients or episodes share the room. The document lists 5,000 in all, of the episodes with the longest wait, or none if `waterfall` has commands.
   */
  longest: SlowExchange[];
}
/**
 * One of the slowest exchanges, or a command of an episode. Expected waits are excluded.
 */
export interface SlowExchange {
  flow_id: number;
  client: string;
  client_port: number;
  server: string;
  server_port: number;
  protocol: Protocol;
  command: string;
  subcommand: string | null;
  group: GroupName;
  user: string | null;
  share: string | null;
  path: string | null;
  status: string | null;
  /**
   * Name of the capture file with the request.
   */
  capture: string | null;
  /**
   * Name of the capture file with the response, if it is another one.
   */
  response_capture: string | null;
  /**
   * Packet numbers in that file as in Wireshark, from 1; 0 if not seen.
   */
  request_first_packet: number;
  request_last_packet: number;
  response_first_packet: number;
  response_last_packet: number;
  request_first_ns: number;
  response_time_ns: number;
  request_transfer_ns: number | null;
  service_time_ns: number | null;
  server_time_ns: number | null;
  response_transfer_ns: number | null;
  retransmission_delay_ns: number | null;
  request_bytes: number;
  response_bytes: number;
}
/**
 * Time of connections by phase. Each moment is divided equally among the commands outstanding on a connection, and each share belongs to the phase of its command. While a response is arriving, the whole moment counts as transfer; while a lost segment is being retransmitted, as network.
 */
export interface TimeSplit {
  /**
   * Number of connections in the sum; 1 for a single connection.
   */
  connections: number;
  /**
   * First to last packet, summed over connections. Equals the sum of the parts below.
   */
  elapsed_ns: number;
  /**
   * Time of the client itself: nothing outstanding, for at most 10 s between a response and the next request.
   */
  think_ns: number;
  /**
   * First to last packet of requests.
   */
  request_transfer_ns: number;
  /**
   * Round trips between client, capture point and server, and retransmission delays.
   */
  network_ns: number;
  /**
   * Service time minus the round-trip time.
   */
  server_ns: number;
  /**
   * Service time if the round-trip time is unknown.
   */
  server_or_network_ns: number;
  /**
   * First to last packet of responses.
   */
  response_transfer_ns: number;
  /**
   * Only expected waits outstanding.
   */
  waiting_ns: number;
  /**
   * Nothing outstanding for more than 10 s, before the first request, or after the last response.
   */
  idle_ns: number;
  /**
   * A command outstanding whose end is not in the capture.
   */
  unknown_ns: number;
  /**
   * Only commands excluded by the filter outstanding, or think time before such a command. 0 without a filter.
   */
  filtered_out_ns: number;
  /**
   * At least one command outstanding, except for expected waits.
   */
  busy_ns: number;
  /**
   * Outstanding time, summed over commands. Divided by `busy_ns`, it is the mean concurrency.
   */
  outstanding_ns: number;
  /**
   * Round trips that the client waited for one after the other: the largest number of commands of a connection that did not overlap, without expected waits, summed over connections. A compound counts once.
   */
  round_trips: number;
}
/**
 * Offers of both sides on some connections.
 */
export interface Negotiation {
  /**
   * Connections with exactly these offers.
   */
  connections: number;
  /**
   * IP addresses, at most 100.
   */
  clients: string[];
  /**
   * IP addresses with ports, at most 100.
   */
  servers: string[];
  /**
   * Client's offer. Null if the request was not captured.
   */
  client: ClientOffer | null;
  /**
   * Server's answer. Null if the response was not captured.
   */
  server: ServerOffer | null;
  /**
   * Features with their outcome. Empty if neither side was captured.
   */
  features: Feature[];
}
/**
 * Client's offer.
 */
export interface ClientOffer {
  /**
   * Dialects in the order of the message. `2.x` stands for any SMB2 dialect, negotiated in a second step.
   */
  dialects: string[];
  /**
   * The first message was an SMB1 NEGOTIATE.
   */
  began_with_smb1: boolean;
  /**
   * `unknown`, `disabled`, `enabled` or `required`.
   */
  signing: string;
  /**
   * Capabilities. Null for clients without SMB 3, which don't send any.
   */
  capabilities: string[] | null;
  ciphers: string[] | null;
  signing_algorithms: string[] | null;
  compression_algorithms: string[] | null;
}
/**
 * Server's answer.
 */
export interface ServerOffer {
  /**
   * Selected dialect. Null if the server accepted none.
   */
  dialect: string | null;
  /**
   * `unknown`, `disabled`, `enabled` or `required`.
   */
  signing: string;
  /**
   * Capabilities. Null in SMB1.
   */
  capabilities: string[] | null;
  /**
   * Largest READ in bytes. Null in SMB1.
   */
  max_read: number | null;
  /**
   * Largest WRITE in bytes. Null in SMB1.
   */
  max_write: number | null;
  ciphers: string[] | null;
  signing_algorithms: string[] | null;
  compression_algorithms: string[] | null;
}
/**
 * Outcome of a feature, with the reason if it is not used.
 */
export interface Feature {
  feature: string;
  /**
   * Client's position.
   */
  client: string;
  /**
   * Server's position.
   */
  server: string;
  outcome: string;
}
export interface ConnectionEntry {
  /**
   * Number of the packet that opened the connection, among the packets of all captures in time order, from 1.
   */
  flow_id: number;
  client: string;
  client_port: number;
  server: string;
  server_port: number;
  first_ns: number;
  last_ns: number;
  protocol: Protocol | null;
  dialect: string | null;
  /**
   * The capture does not contain the start of the connection.
   */
  midstream: boolean;
  end: "open" | "closed" | "reset";
  /**
   * Index of the negotiation in `negotiations`.
   */
  negotiation: number | null;
  /**
   * The server requires signing. Null if the negotiation was not captured.
   */
  signing_required: boolean | null;
  signed_messages: number;
  encrypted_frames: number;
  compressed_frames: number;
  messages: number;
  exchanges: number;
  max_outstanding: number;
  max_credits_granted: number;
  /**
   * Time that the client waited for credits with several requests outstanding. 0 (unknown) if the start or any message of the connection was not captured or is encrypted.
   */
  credit_wait_ns: number;
  /**
   * Highest number of concurrent requests with an interim response (STATUS_PENDING) and no final one.
   */
  max_asynchronous: number;
  server_round_trip_ns: number | null;
  client_round_trip_ns: number | null;
  users: string[];
  shares: string[];
  /**
   * Headers around its packets other than Ethernet and IP, outermost first. Null for a connection without them.
   */
  encapsulation: string | null;
  /**
   * Proxy that passes the connection on: protocol and, if captured, the requested target.
   */
  proxy: string | null;
  to_server: Direction;
  to_client: Direction;
  /**
   * Null for connections without an exchange that matches the filter, and beyond 100,000 connections.
   */
  time_split: TimeSplit | null;
}
/**
 * Counters of one direction of a flow.
 */
export interface Direction {
  /**
   * TCP packets.
   */
  packets: number;
  /**
   * Payload bytes, each counted once.
   */
  bytes: number;
  /**
   * Packets in which at least one SMB message starts.
   */
  message_packets: number;
  /**
   * Data packets that only continue a message.
   */
  continuation_packets: number;
  /**
   * Segments that only acknowledge.
   */
  pure_acks: number;
  /**
   * Segments that repeat bytes sent before.
   */
  retransmitted: number;
  /**
   * Segments lost upstream of the capture point: the capture holds only the retransmission that filled the hole.
   */
  lost_before_capture: number;
  /**
   * Retransmitted segments that the receiver did not need: already acknowledged when sent again, or reported by a D-SACK (RFC 2883).
   */
  needless: number;
  /**
   * Time during which losses held up the stream: from the first copy of a segment, or from the hole it left, to the retransmission. Overlapping delays count once; needless retransmissions do not count.
   */
  resend_delay_ns: number;
  /**
   * Number of times that the sender held data back until a delayed acknowledgment arrived (Nagle's algorithm, RFC 896, with RFC 1122 4.2.3.2): a segment, only its acknowledgment 40 or 200 ms later, and the next segment at once. Not counted if the round-trip time is 25 ms or longer.
   */
  ack_stalls: number;
  /**
   * Total time of these stalls, from the preceding segment to the following one.
   */
  ack_stall_ns: number;
  /**
   * Bytes acknowledged but never captured.
   */
  dropped_bytes: number;
  /**
   * Minimum number of packets that the capture dropped.
   */
  dropped_packets: number;
  /**
   * Time during which the receiver's window was closed and the sender waited for it.
   */
  window_closed_ns: number;
  /**
   * Time during which the sender had filled the receiver's window and waited for an acknowledgment. Unknown, and therefore zero, without both SYNs or if the round-trip time is shorter than 1 ms.
   */
  window_limited_ns: number;
  /**
   * Largest window that the sender filled, in bytes.
   */
  filled_window: number | null;
}
/**
 * Counts and times of a set of exchanges.
 */
export interface CommandEntry {
  protocol: Protocol;
  /**
   * Name in the specification, or the code in hexadecimal.
   */
  command: string;
  groups: GroupName[];
  /**
   * Number of exchanges, timed or not.
   */
  count: number;
  /**
   * Exchanges with a response time.
   */
  timed: number;
  /**
   * Error responses by status. `(other)` is the sum of the statuses not listed.
   */
  errors: {
    [k: string]: number;
  };
  /**
   * Exchanges by outcome. Only values that occur.
   */
  outcomes: {
    [k: string]: number;
  };
  /**
   * Mean number of packets per exchange, request and response, over exchanges whose packets are all known.
   */
  average_packets: number | null;
  /**
   * Bytes of SMB requests.
   */
  request_bytes: number;
  /**
   * Bytes of final SMB responses.
   */
  response_bytes: number;
  /**
   * Response times by decade: below 1 µs, 10 µs, 100 µs, 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, and longer. Lower bounds are inclusive.
   *
   * @minItems 10
   * @maxItems 10
   */
  distribution: [number, number, number, number, number, number, number, number, number, number];
  response_time: Times;
  service_time: Times;
  server_time: Times;
  request_transfer: Times;
  response_transfer: Times;
  srt: Times;
  retransmission_delay: Times;
  think_time: Times;
  /**
   * Exchanges by subcommand.
   */
  subcommands: SubcommandEntry[];
  /**
   * Messages that are not separate commands and not included in the counts of this entry: the second part of Write_Raw, and unsolicited messages of the server.
   */
  apart: SubcommandEntry[];
}
/**
 * Subcommand of a command.
 */
export interface SubcommandEntry {
  subcommand: string;
  /**
   * Number of exchanges, timed or not.
   */
  count: number;
  /**
   * Exchanges with a response time.
   */
  timed: number;
  /**
   * Error responses by status. `(other)` is the sum of the statuses not listed.
   */
  errors: {
    [k: string]: number;
  };
  /**
   * Exchanges by outcome. Only values that occur.
   */
  outcomes: {
    [k: string]: number;
  };
  /**
   * Mean number of packets per exchange, request and response, over exchanges whose packets are all known.
   */
  average_packets: number | null;
  /**
   * Bytes of SMB requests.
   */
  request_bytes: number;
  /**
   * Bytes of final SMB responses.
   */
  response_bytes: number;
  /**
   * Response times by decade: below 1 µs, 10 µs, 100 µs, 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, and longer. Lower bounds are inclusive.
   *
   * @minItems 10
   * @maxItems 10
   */
  distribution: [number, number, number, number, number, number, number, number, number, number];
  response_time: Times;
  service_time: Times;
  server_time: Times;
  request_transfer: Times;
  response_transfer: Times;
  srt: Times;
  retransmission_delay: Times;
  think_time: Times;
}
/**
 * Counts and times of a set of exchanges.
 */
export interface GroupEntry {
  group:
    | "Open/Close"
    | "Other"
    | "Attributes"
    | "Directory"
    | "Locking"
    | "Read"
    | "Write"
    | "Session"
    | "Control"
    | "Waiting"
    | "Encrypted";
  headline: boolean;
  /**
   * Number of exchanges, timed or not.
   */
  count: number;
  /**
   * Exchanges with a response time.
   */
  timed: number;
  /**
   * Error responses by status. `(other)` is the sum of the statuses not listed.
   */
  errors: {
    [k: string]: number;
  };
  /**
   * Exchanges by outcome. Only values that occur.
   */
  outcomes: {
    [k: string]: number;
  };
  /**
   * Mean number of packets per exchange, request and response, over exchanges whose packets are all known.
   */
  average_packets: number | null;
  /**
   * Bytes of SMB requests.
   */
  request_bytes: number;
  /**
   * Bytes of final SMB responses.
   */
  response_bytes: number;
  /**
   * Response times by decade: below 1 µs, 10 µs, 100 µs, 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, and longer. Lower bounds are inclusive.
   *
   * @minItems 10
   * @maxItems 10
   */
  distribution: [number, number, number, number, number, number, number, number, number, number];
  response_time: Times;
  service_time: Times;
  server_time: Times;
  request_transfer: Times;
  response_transfer: Times;
  srt: Times;
  retransmission_delay: Times;
  think_time: Times;
  /**
   * Cumulative distribution of response times: pairs of nanoseconds and the fraction of commands answered within them, ascending, at most 128.
   */
  cumulative: [number, number][];
  parts: GroupEntry[];
}
/**
 * Figures of a share, file, client, server or user.
 */
export interface ShareEntity {
  share: string;
  /**
   * The entry is the sum of all names that are not listed.
   */
  is_other: boolean;
  /**
   * Number of commands.
   */
  count: number;
  /**
   * Commands with a response time: complete ones of the headline groups.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  /**
   * Bytes read: the requested length of complete reads without error, capped at the size of the response.
   */
  bytes_read: number;
  /**
   * Bytes written: the given length of complete writes without error.
   */
  bytes_written: number;
  response_time: Times;
}
/**
 * Figures of a share, file, client, server or user.
 */
export interface FileEntity {
  share: string | null;
  /**
   * Path below the share. A final ellipsis (…) stands for a part missing in the capture.
   */
  path: string;
  /**
   * The entry is the sum of all names that are not listed.
   */
  is_other: boolean;
  /**
   * Number of commands.
   */
  count: number;
  /**
   * Commands with a response time: complete ones of the headline groups.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  /**
   * Bytes read: the requested length of complete reads without error, capped at the size of the response.
   */
  bytes_read: number;
  /**
   * Bytes written: the given length of complete writes without error.
   */
  bytes_written: number;
  response_time: Times;
}
/**
 * Figures of a share, file, client, server or user.
 */
export interface ClientEntity {
  /**
   * IP address.
   */
  client: string;
  /**
   * Sum over the client's connections. Null for the entry `(other)`.
   */
  time_split: TimeSplit | null;
  /**
   * The entry is the sum of all names that are not listed.
   */
  is_other: boolean;
  /**
   * Number of commands.
   */
  count: number;
  /**
   * Commands with a response time: complete ones of the headline groups.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  /**
   * Bytes read: the requested length of complete reads without error, capped at the size of the response.
   */
  bytes_read: number;
  /**
   * Bytes written: the given length of complete writes without error.
   */
  bytes_written: number;
  response_time: Times;
}
/**
 * Figures of a share, file, client, server or user.
 */
export interface ServerEntity {
  /**
   * IP address.
   */
  server: string;
  server_port: number | null;
  /**
   * Sum over the server's connections. Null for the entry `(other)`.
   */
  time_split: TimeSplit | null;
  /**
   * The entry is the sum of all names that are not listed.
   */
  is_other: boolean;
  /**
   * Number of commands.
   */
  count: number;
  /**
   * Commands with a response time: complete ones of the headline groups.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  /**
   * Bytes read: the requested length of complete reads without error, capped at the size of the response.
   */
  bytes_read: number;
  /**
   * Bytes written: the given length of complete writes without error.
   */
  bytes_written: number;
  response_time: Times;
}
/**
 * Figures of a share, file, client, server or user.
 */
export interface UserEntity {
  user: string;
  /**
   * The entry is the sum of all names that are not listed.
   */
  is_other: boolean;
  /**
   * Number of commands.
   */
  count: number;
  /**
   * Commands with a response time: complete ones of the headline groups.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  /**
   * Bytes read: the requested length of complete reads without error, capped at the size of the response.
   */
  bytes_read: number;
  /**
   * Bytes written: the given length of complete writes without error.
   */
  bytes_written: number;
  response_time: Times;
}
/**
 * Opportunistic caching: oplocks and leases granted to opens, and repeated reads, which fetched bytes that the session had already read and that did not change as far as the capture shows. docs/definitions.md describes the detection.
 */
export interface CachingEntry {
  /**
   * Successful opens by oplock or lease granted. Only values that occur.
   */
  opens: Opens[];
  /**
   * Successful opens whose grant the capture does not show.
   */
  unknown_opens: number;
  /**
   * Reads that returned data.
   */
  reads: number;
  bytes_read: number;
  repeated: RepeatedReads;
  /**
   * Repeated reads by client, most bytes first, at most 1,000.
   */
  clients: ClientRereads[];
  /**
   * Repeated reads by client and file, most bytes first, at most 1,000.
   */
  files: FileRereads[];
}
export interface Opens {
  /**
   * `not requested`, `not granted`, the oplock level, or the lease states.
   */
  granted: string;
  count: number;
}
/**
 * Repeated reads: of bytes that the session had already read and that did not change as far as the capture shows.
 */
export interface RepeatedReads {
  reads: number;
  bytes: number;
  /**
   * Part of the repeated reads through an open whose oplock or lease allowed the client to cache the bytes.
   */
  cacheable_reads: number;
  cacheable_bytes: number;
}
/**
 * Repeated reads: of bytes that the session had already read and that did not change as far as the capture shows.
 */
export interface ClientRereads {
  /**
   * IP address.
   */
  client: string;
  reads: number;
  bytes: number;
  /**
   * Part of the repeated reads through an open whose oplock or lease allowed the client to cache the bytes.
   */
  cacheable_reads: number;
  cacheable_bytes: number;
}
/**
 * Repeated reads: of bytes that the session had already read and that did not change as far as the capture shows.
 */
export interface FileRereads {
  /**
   * IP address.
   */
  client: string;
  share: string | null;
  /**
   * Path below the share. A final ellipsis (…) stands for a part missing in the capture.
   */
  path: string;
  reads: number;
  bytes: number;
  /**
   * Part of the repeated reads through an open whose oplock or lease allowed the client to cache the bytes.
   */
  cacheable_reads: number;
  cacheable_bytes: number;
}
/**
 * Commands grouped by --by.
 */
export interface SliceListing {
  /**
   * @minItems 1
   */
  by: [
    (
      | "client"
      | "server"
      | "user"
      | "share"
      | "file"
      | "directory"
      | "extension"
      | "command"
      | "group"
      | "dialect"
      | "connection"
      | "status"
      | "size"
      | "process"
    ),
    ...(
      | "client"
      | "server"
      | "user"
      | "share"
      | "file"
      | "directory"
      | "extension"
      | "command"
      | "group"
      | "dialect"
      | "connection"
      | "status"
      | "size"
      | "process"
    )[]
  ];
  sort:
    "response_time" | "service_time" | "count" | "errors" | "bytes" | "mean" | "p50" | "p95" | "p99" | "max" | "key";
  /**
   * Upper bound of the total wait of a key without an entry. 0 while all keys have an entry, which holds up to 20,000 keys.
   */
  missed_at_most_ns: number;
  /**
   * Slices in the order of `sort`. At most 1,000 per load point.
   */
  entries: SliceEntry[];
  /**
   * Sum of the slices that were evicted because of too many keys, or are not listed.
   */
  other: SliceFigures | null;
}
export interface SliceEntry {
  /**
   * Values of the dimensions. Null is unknown.
   */
  key: {
    client?: string;
    command?: string;
    /**
     * Client and server.
     */
    connection?: string;
    dialect?: string | null;
    /**
     * Path below the share; empty is the share's root.
     */
    directory?: string | null;
    /**
     * In lower case; empty if the name has none.
     */
    extension?: string | null;
    /**
     * Path below the share.
     */
    file?: string | null;
    /**
     * As in connections.
     */
    flow_id?: number;
    group?: string;
    /**
     * Name and id; null if the capture names none.
     */
    process?: string | null;
    /**
     * Address and port.
     */
    server?: string;
    share?: string | null;
    /**
     * Bytes moved: from this power of two on (0: none) to less than the next.
     */
    size?: number;
    status?: string | null;
    user?: string | null;
  };
  /**
   * Upper bound of this key's response time that is counted in `other`.
   */
  missed_at_most_ns: number;
  /**
   * Number of commands.
   */
  count: number;
  /**
   * Commands with a response time: complete ones of the headline groups.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  bytes_read: number;
  bytes_written: number;
  /**
   * Total response time.
   */
  response_time_sum_ns: number;
  response_time: Times;
  service_time: Times;
}
export interface SliceFigures {
  /**
   * Number of commands.
   */
  count: number;
  /**
   * Commands with a response time: complete ones of the headline groups.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  bytes_read: number;
  bytes_written: number;
  /**
   * Total response time.
   */
  response_time_sum_ns: number;
  response_time: Times;
  service_time: Times;
}
export interface ReportTimeline {
  width_ns: number;
  /**
   * Bins in which a command started or was outstanding, in time order.
   */
  bins: TimelineBin[];
}
export interface TimelineBin {
  start_ns: number;
  commands: number;
  errors: number;
  request_bytes: number;
  response_bytes: number;
  response_time: TimelineTimes;
  /**
   * Time with at least one command outstanding, summed over connections. Not affected by the filter.
   */
  busy_ns: number;
  /**
   * Outstanding time, summed over commands. Divided by `width_ns`, it is the mean concurrency.
   */
  outstanding_ns: number;
}
export interface TimelineTimes {
  count: number;
  sum: number;
  max: number | null;
}
/**
 * Response times over time, without expected waits.
 */
export interface HeatMap {
  /**
   * Width of an interval: the smallest of 1, 2, 4 … ms that needs no more than 512 intervals.
   */
  width_ns: number;
  /**
   * Lower edges of the response time buckets, ascending. The first bucket begins at 0; the last has no upper edge.
   */
  edges_ns: number[];
  /**
   * Intervals in which a command began or was outstanding, in time order.
   */
  bins: HeatMapBin[];
}
/**
 * One interval of a heat map.
 */
export interface HeatMapBin {
  /**
   * Start of the interval.
   */
  start_ns: number;
  /**
   * Sum of the times for which commands were outstanding within the interval.
   */
  outstanding_ns: number;
  /**
   * Bytes of the requests that began in the interval.
   */
  request_bytes: number;
  /**
   * Bytes of the responses to these requests.
   */
  response_bytes: number;
  /**
   * Pairs of bucket index and count, for commands that began in the interval.
   */
  counts: [number, number][];
}
/**
 * Response time as a function of load (Swartz 1997, figures 2 and 3, from a capture).
 */
export interface Concurrency {
  /**
   * Mean number of outstanding commands per interval of heatmap.width_ns, over all connections: lower bound, inclusive.
   */
  outstanding_from: number;
  /**
   * Upper bound, exclusive.
   */
  outstanding_to: number;
  /**
   * Total time spent in this load class.
   */
  time_ns: number;
  /**
   * Commands of the headline groups with a response time that began in these intervals.
   */
  commands: number;
  /**
   * Bytes of the requests of these commands.
   */
  request_bytes: number;
  /**
   * Bytes of the responses to these commands.
   */
  response_bytes: number;
  response_time: LoadTimes;
}
/**
 * The mean is exact. Percentiles have the resolution of a histogram with 24 buckets per decade (10%); p50 needs 1 value, p95 needs 20.
 */
export interface LoadTimes {
  /**
   * Arithmetic mean.
   */
  mean: number | null;
  /**
   * Median.
   */
  p50: number | null;
  /**
   * 95th percentile.
   */
  p95: number | null;
}
/**
 * Number of entries left out of lists to limit the size of the document (HTML only), those with the shortest total response time.
 */
export interface Omitted {
  connections: number;
  shares: number;
  files: number;
  clients: number;
  servers: number;
  users: number;
}
/**
 * The same traffic at several points.
 */
export interface SidesFigures {
  /**
   * Points from the client to the server.
   */
  points: CapturePoint[];
  /**
   * The ways between each point and the next.
   */
  segments: PathSegment[];
}
/**
 * Place of a capture.
 */
export interface CapturePoint {
  /**
   * `client`, `server`, or the name given with --sides.
   */
  name: string;
  /**
   * Files of the point.
   */
  captures: string[];
  /**
   * Connections that carried SMB.
   */
  connections: number;
  /**
   * Complete exchanges.
   */
  exchanges: number;
}
/**
 * Way between two neighbouring capture points.
 */
export interface PathSegment {
  /**
   * Point nearer to the client.
   */
  from: string;
  /**
   * Point nearer to the server.
   */
  to: string;
  /**
   * Connections that both points saw.
   */
  connections: number;
  /**
   * Those whose addresses or ports differ: a device in between rewrote them, or has a connection of its own.
   */
  rewritten: number;
  /**
   * Those whose data a device in between acknowledges instead of the server, so that TCP ends there.
   */
  terminated: number;
  /**
   * Exchanges that both points saw.
   */
  pairs: number;
  /**
   * Exchanges on these connections that only the point nearer to the client saw, while the other one captured: a device in between answered them, or the capture at the other point lacks them.
   */
  only_from: number;
  /**
   * Exchanges on these connections that only the point nearer to the server saw.
   */
  only_to: number;
  clock: ClockDifference;
  /**
   * Shortest time there and back. Exact, whatever the clocks show.
   */
  round_trip_ns: number;
  queued_to_server: Times;
  queued_to_client: Times;
  /**
   * Data segments that passed the first point towards the server and did not reach the other, while both captured: the first point saw them again, the other one did not. Null if a device in between ends TCP.
   */
  lost_to_server: number | null;
  /**
   * The same on the way to the client.
   */
  lost_to_client: number | null;
  /**
   * Data packets towards the server at the first point.
   */
  packets_to_server: number;
  /**
   * Data packets towards the client at the second point.
   */
  packets_to_client: number;
  /**
   * By operation group, those with the longest total response time first.
   */
  groups: GroupPath[];
}
/**
 * Difference between the clocks of two capture points.
 */
export interface ClockDifference {
  /**
   * Clock of the point nearer to the server minus the other, at the first common command.
   */
  offset_ns: number;
  /**
   * Gain of the clock of the point nearer to the server, in parts per million.
   */
  drift_ppm: number;
  /**
   * The offset is right within this: half of the shortest round trip, because the ways there and back may differ.
   */
  uncertainty_ns: number;
  /**
   * Steps of either clock during the captures.
   */
  steps: number;
}
/**
 * Times of a group of commands at two points.
 */
export interface GroupPath {
  group: GroupName;
  response_time: Times;
  beyond: Times;
  path: Times;
  transfer: Times;
}
