// Made from schema/smbscope.report-1.schema.json by scripts/types.mjs; do not edit.

/**
 * Who has to act.
 */
export type Culprit = "server" | "network" | "client" | "application" | "capture" | "nothing";
/**
 * How sure a cause is.
 */
export type Confidence = "low" | "medium" | "high";
/**
 * What an episode looks like.
 */
export type EpisodeKind =
  "logon" | "logoff" | "launch" | "document" | "save" | "settings" | "download" | "upload" | "search" | "other";
/**
 * SMB1 (MS-CIFS, MS-SMB) or SMB2/3 (MS-SMB2).
 */
export type Protocol = "SMB1" | "SMB2";
/**
 * Where an exchange is counted. `Attributes`, `Directory` and `Locking` together are the paper's *Other*.
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
 * What `smbscope analyze --format json` prints. All times are integers in nanoseconds, points in time since the Unix epoch; null is unknown or, for a statistic, not supported by enough values.
 */
export interface SmbscopeReportDocument {
  schema: "smbscope.report/1";
  generator: Generator;
  title: string | null;
  /**
   * The expression of --filter, where the statistics are about chosen exchanges only; docs/filter.md describes it. Captures, quality and connections are those of the whole.
   */
  filter: string | null;
  /**
   * How many exchanges the filter chose, of how many.
   */
  matched: Matched | null;
  /**
   * The captures, in the order in which exchanges number them.
   */
  captures: CaptureInfo[];
  quality: Quality;
  totals: Totals;
  answer: Answer;
  /**
   * SMB1 in use: by whom, on which shares; null where nobody uses it.
   */
  smb1: Smb1Usage | null;
  /**
   * Bursts of work of single clients, in the order of time.
   */
  episodes: Episode[];
  /**
   * With --episode its commands, in the order of time, the first 5,000.
   */
  waterfall: SlowExchange[];
  /**
   * With --what-if how long the episode would take.
   */
  what_if: WhatIf[];
  time_split: TimeSplitEntry;
  /**
   * What both sides of the connections offered when they negotiated, and what came of it; those of most connections first.
   */
  negotiations: Negotiation[];
  /**
   * TCP connections that carried SMB.
   */
  connections: ConnectionEntry[];
  /**
   * By command; expected waits of a command are an entry of their own, with group Waiting.
   */
  commands: CommandEntry[];
  /**
   * By operation group; the entries add up, Other holds its parts.
   */
  groups: GroupEntry[];
  shares: ShareEntity[];
  files: FileEntity[];
  clients: ClientEntity[];
  servers: ServerEntity[];
  users: UserEntity[];
  caching: CachingEntry;
  /**
   * The commands divided by --by; null without it.
   */
  slices: SliceListing | null;
  timeline: ReportTimeline;
  heatmap: HeatMap;
  concurrency: Concurrency[];
  /**
   * The slowest exchanges, slowest first, at most 100.
   */
  slowest: SlowExchange[];
  omitted: Omitted;
  warnings: string[];
}
/**
 * The program that made a document.
 */
export interface Generator {
  /**
   * `smbscope`
   */
  name: "smbscope";
  /**
   * Its version.
   */
  version: string;
}
/**
 * How many exchanges the filter chose, of how many.
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
   * The name as given; `-` for standard input.
   */
  name: string;
  /**
   * `pcap`, `pcap (ns)`, `modified pcap`, `pcapng` or `snoop`.
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
   * Length of the file, compressed where it is.
   */
  bytes: number;
  /**
   * The earliest timestamp.
   */
  first_ns: number | null;
  /**
   * The latest timestamp.
   */
  last_ns: number | null;
  /**
   * Nanoseconds between two ticks of the coarsest clock, at least 1.
   */
  resolution_ns: number;
  /**
   * The largest snap length that the file states.
   */
  snap_length: number | null;
  /**
   * LINKTYPE_* values of its interfaces.
   */
  link_types: number[];
  /**
   * The smallest step of the clock where that is 100 µs or more, whatever resolution the file states; 0 if the clock stood still. Null for a finer clock. Shorter times are not known.
   */
  coarse_clock_ns: number | null;
  /**
   * The two directions were stamped by two clocks, and times were corrected; null where one clock stamped both.
   */
  clock_offset: CaptureClockOffset | null;
  /**
   * What was wrong with the file.
   */
  warnings: string[];
}
/**
 * By how much the clock of one direction was ahead of the other's. The least delays between data and acknowledgments bound it; the sum of a response time and the following think time is exact, whatever the offset.
 */
export interface CaptureClockOffset {
  /**
   * Packets of servers had the late time; otherwise those of clients.
   */
  of_servers: boolean;
  /**
   * Taken off the times of those packets.
   */
  applied_ns: number;
  /**
   * At least this.
   */
  low_ns: number;
  /**
   * At most this.
   */
  high_ns: number;
}
/**
 * What the captures could not show: in one sentence, and counted by reason.
 */
export interface Quality {
  /**
   * Which share of the commands were not timed because the capture is damaged, and why, in plain English.
   */
  sentence: string;
  not_timed: UntimedShare;
  /**
   * Records read from the captures.
   */
  packets: number;
  /**
   * Bytes of those packets on the wire (the original lengths).
   */
  wire_bytes: number;
  /**
   * Bytes of those packets in the capture.
   */
  captured_bytes: number;
  /**
   * Packets that the snap length cut short.
   */
  snapped_packets: number;
  /**
   * Packets of another protocol than TCP over IP; `skipped` names the protocols.
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
   * Packets that the snap length cut off inside their link, IP or TCP header.
   */
  headers_not_captured: number;
  /**
   * TCP packets that were in a tunnel: VXLAN, GENEVE, GRE, ERSPAN, IP in IP, GTP-U and others.
   */
  tunneled_packets: number;
  /**
   * IP fragments seen.
   */
  ip_fragments: number;
  /**
   * IP datagrams put together from fragments.
   */
  ip_datagrams_reassembled: number;
  /**
   * IP datagrams evicted because fragments are missing or the table was full.
   */
  ip_datagrams_incomplete: number;
  /**
   * Packets that a file held out of time order, put in order before the analysis.
   */
  packets_reordered_by_time: number;
  /**
   * Packets older than what was already analysed (a pipe out of order beyond the window, a clock step).
   */
  packets_out_of_time_order: number;
  /**
   * Capture files or streams that end in the middle of a record.
   */
  truncated_captures: number;
  /**
   * Records or blocks of a capture file that could not be read and were skipped.
   */
  unreadable_records: number;
  /**
   * TCP packets of flows that carry SMB; the counters from here to the losses of framing are about these flows.
   */
  smb_flow_packets: number;
  /**
   * Segments without data, SYN, FIN or RST that acknowledge.
   */
  pure_acks: number;
  /**
   * Data segments never acknowledged in the capture.
   */
  unacknowledged_segments: number;
  /**
   * The same packet captured twice.
   */
  duplicate_packets: number;
  /**
   * Of those, copies with another time to live: captured on both sides of a router.
   */
  copies_behind_router: number;
  /**
   * Of those, packets that repeat a record from before segmentation offload, or records that merge packets: captured at two layers of one host.
   */
  copies_at_two_layers: number;
  /**
   * Segments that carry bytes sent before.
   */
  retransmitted_segments: number;
  /**
   * Bytes sent more than once: lost by the network, or believed lost by the sender.
   */
  retransmitted_bytes: number;
  /**
   * Retransmitted segments whose bytes the receiver had already acknowledged.
   */
  spurious_retransmissions: number;
  /**
   * Segments sent again of which the capture holds only the late copy.
   */
  retransmissions_seen_once: number;
  /**
   * Segments that arrived before bytes that belong in front of them.
   */
  out_of_order_segments: number;
  /**
   * Gaps: runs of bytes that the receiver acknowledged but the capture never held.
   */
  capture_gaps: number;
  /**
   * Packets dropped by the capture, at least.
   */
  dropped_packets: number;
  /**
   * Bytes dropped by the capture.
   */
  dropped_bytes: number;
  /**
   * Bytes neither captured nor acknowledged.
   */
  missing_unacknowledged_bytes: number;
  /**
   * Packets that came too late, after the gap of their bytes was counted.
   */
  late_segments: number;
  /**
   * TCP keep-alives.
   */
  keep_alives: number;
  /**
   * Segments that announced a closed receive window.
   */
  zero_windows: number;
  /**
   * Flows whose beginning the capture does not hold.
   */
  midstream_flows: number;
  /**
   * Of them, those whose client and server are a guess by port numbers: neither a message nor a size told.
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
   * Segments held for reordering and evicted because a buffer was full.
   */
  reorder_buffer_overflows: number;
  /**
   * Times that the framing was lost (after a gap, a cut-off header, a mid-stream start).
   */
  framing_lost: number;
  /**
   * Of them, those at a frame header that the snap length cut off.
   */
  framing_cut: number;
  /**
   * Times that it was found again.
   */
  framing_found: number;
  /**
   * Bytes skipped while looking for a frame header.
   */
  bytes_skipped: number;
  /**
   * Frames that are no SMB message and were not expected as raw data.
   */
  unknown_frames: number;
  /**
   * SMB messages whose header or parameters contradict themselves.
   */
  malformed_messages: number;
  /**
   * SMB messages whose header was cut off before the message id; of a compound, its first such member.
   */
  headers_truncated: number;
  /**
   * Names of files and shares of which the capture holds only the beginning, or nothing.
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
   * Compressed frames whose header could not be recovered.
   */
  compressed_frames_opaque: number;
  /**
   * Connections whose server answered in another protocol than SMB.
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
   * Requests never answered, with the server's stream whole.
   */
  requests_unanswered: number;
  /**
   * Requests never answered while the capture lacks bytes that may have held the response.
   */
  responses_not_captured: number;
  /**
   * Commands whose last packet was not captured: timed if answered, but without service time.
   */
  request_end_missing: number;
  /**
   * Exchanges left out because the last packet of the response is missing.
   */
  response_end_missing: number;
  /**
   * Responses refused because their TCP positions contradict the request with the same id.
   */
  causality_refused: number;
  /**
   * Responses refused because a gap could hide a recycled id.
   */
  ambiguous_refused: number;
  /**
   * Requests whose id was used again while they were outstanding.
   */
  ids_reused: number;
  /**
   * Exchanges left out because the clock stepped between request and response, or these were captured in the wrong order.
   */
  clock_steps: number;
  /**
   * Responses that begin before the last packet of their request; they have no service time and no server time.
   */
  early_responses: number;
  /**
   * Outstanding requests evicted because the table was full.
   */
  evicted_requests: number;
  /**
   * Names (sessions, trees, opens) evicted because a table was full.
   */
  evicted_names: number;
  /**
   * Interim responses (STATUS_PENDING and SMB1's "go ahead").
   */
  interim_responses: number;
  /**
   * Oplock and lease breaks that the server sent.
   */
  server_breaks: number;
  /**
   * Commands of which the capture shows nothing: SMB2's by their message ids, those of SMB1 and encrypted ones estimated by the bytes missing and the typical sizes around them.
   */
  commands_unseen: number;
  /**
   * The square of the standard error of that number.
   */
  commands_unseen_variance: number;
  /**
   * Captured bytes of the longest packet that the snap length cut short.
   */
  longest_cut_packet: number;
  /**
   * Bytes that are missing of a name that was cut off, at most.
   */
  longest_name_tail: number;
  /**
   * Packets that are no TCP, by protocol, most packets first, at most 33 entries; they add up to `not_tcp`.
   */
  skipped: SkippedProtocolEntry[];
}
/**
 * The share of the commands that could not be timed, in percent: commands seen in part, and those of which the capture shows nothing (commands_unseen), which are an estimate where the bounds differ.
 */
export interface UntimedShare {
  /**
   * The best guess.
   */
  percent: number;
  /**
   * It is hardly less than this: three standard errors below.
   */
  at_least: number;
  /**
   * It is hardly more than this: three standard errors above.
   */
  at_most: number;
}
/**
 * Packets of a protocol that is not read.
 */
export interface SkippedProtocolEntry {
  /**
   * Whose number it is.
   */
  layer:
    | "link type"
    | "address family"
    | "EtherType"
    | "802.2 SAP"
    | "PPP protocol"
    | "MPLS payload"
    | "GRE protocol"
    | "IP protocol"
    | "UDP port"
    | "nested tunnels"
    | "other protocols";
  /**
   * The number, where there is one; of UDP the port that is known, or else the lower one.
   */
  number: number | null;
  /**
   * The usual name.
   */
  name: string | null;
  packets: number;
}
export interface Totals {
  /**
   * Commands of every group.
   */
  commands: number;
  /**
   * Those that should have been timed and could not be.
   */
  untimed: number;
  /**
   * How exchanges ended; only what occurred.
   */
  outcomes: {
    [k: string]: number;
  };
  first_ns: number | null;
  last_ns: number | null;
  /**
   * First to last packet of the captures.
   */
  elapsed_ns: number | null;
  load: LoadTotals;
  headline: StatisticsEntry;
}
/**
 * What was asked of the servers: the one source of rates, error counts and bytes.
 */
export interface LoadTotals {
  /**
   * First to last packet of the commands: what rates are rates of.
   */
  elapsed_ns: number;
  /**
   * Commands of every group each second; null where no time went by.
   */
  commands_per_second: number | null;
  /**
   * Error responses of every group.
   */
  errors: number;
  /**
   * Bytes of files that were read.
   */
  bytes_read: number;
  /**
   * Bytes of files that were written.
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
   * Exchanges, timed or not.
   */
  count: number;
  /**
   * Exchanges that entered the times.
   */
  timed: number;
  /**
   * Error responses by status; `(other)` adds up what is not listed.
   */
  errors: {
    [k: string]: number;
  };
  /**
   * How exchanges ended; only what occurred.
   */
  outcomes: {
    [k: string]: number;
  };
  /**
   * Packets per exchange, both halves; of exchanges whose packets are known in full.
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
   * Response times by decade: below 1 µs, 10 µs, 100 µs, 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, and the rest. A time on an edge is in the decade above.
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
 * Statistics of one of the times in nanoseconds. Standard deviation is that of a sample (n − 1). Percentiles interpolate linearly (Hyndman and Fan 7), are exact up to 10,000 values and have three significant digits above; p50 needs 1 value, p90 10, p95 20, p99 100, p999 1000. What too few values support is null.
 */
export interface Times {
  /**
   * Number of values.
   */
  count: number;
  /**
   * Smallest value.
   */
  min: number | null;
  /**
   * Largest value.
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
 * Why users wait.
 */
export interface Answer {
  culprit: Culprit;
  /**
   * The answer in a sentence or two.
   */
  headline: string;
  /**
   * The headline states the first cause; otherwise whose time it was, or that nothing is slow.
   */
  states_first_cause: boolean;
  /**
   * What supports the headline, a sentence each.
   */
  evidence: string[];
  /**
   * Causes of waits that a person notices, the worst first.
   */
  causes: Cause[];
  /**
   * Things to know that cost nobody a noticeable time.
   */
  notes: Cause[];
  /**
   * What is not the cause, a sentence each.
   */
  ruled_out: string[];
  /**
   * What limits the answer, a sentence each.
   */
  caveats: string[];
  /**
   * Commands that look closer.
   */
  next: SuggestedCommand[];
  /**
   * What counted as slow, as `--slow` takes it.
   */
  slow: string;
}
/**
 * One explanation of a wait.
 */
export interface Cause {
  /**
   * Key of the cause; docs/causes.md describes each.
   */
  id: string;
  culprit: Culprit;
  /**
   * Short name.
   */
  title: string;
  /**
   * What happened.
   */
  sentence: string;
  /**
   * What it cost whom; empty where a capture can't tell.
   */
  cost: string;
  subject: Subject;
  /**
   * The time that would go away without the cause; null where a capture can't tell.
   */
  lost_ns: LostTime | null;
  /**
   * Active time of the sufferers: with a request outstanding on any connection, and think time in between.
   */
  active_ns: number;
  /**
   * Lost time as a share of active time, 0 to 1.
   */
  share: number | null;
  confidence: Confidence;
  /**
   * Packets to look at.
   */
  evidence: Evidence[];
  /**
   * Display filter for Wireshark.
   */
  wireshark: string;
  /**
   * What to do.
   */
  advice: string;
  /**
   * Where thresholds and advice come from.
   */
  source: string;
  /**
   * Titles of more general causes that explain the same seconds.
   */
  also: string[];
}
/**
 * Whom and what a cause is about; what is null it is not about.
 */
export interface Subject {
  /**
   * Address of the client that suffers, or suffers most.
   */
  client: string | null;
  /**
   * Clients that suffer.
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
   * The share.
   */
  share: string | null;
  /**
   * The file or directory below the share.
   */
  path: string | null;
}
/**
 * A time as an interval.
 */
export interface LostTime {
  /**
   * At least this.
   */
  low: number;
  /**
   * Most likely this.
   */
  best: number;
  /**
   * At most this.
   */
  high: number;
}
/**
 * A packet to look at.
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
/**
 * A command that looks closer.
 */
export interface SuggestedCommand {
  /**
   * What it shows.
   */
  label: string;
  /**
   * The command line, quoted for a shell. `FILE` stands for captures that cannot be named.
   */
  command: string;
}
/**
 * SMB1 in use: by whom, on which shares. At most 100 of each.
 */
export interface Smb1Usage {
  /**
   * Connections that speak it; 0 where only commands without their connection's beginning show it.
   */
  connections: number;
  clients: string[];
  servers: string[];
  users: string[];
  shares: string[];
  /**
   * All of it in a sentence.
   */
  sentence: string;
}
/**
 * A burst of work of one client: its commands are less than 2 s apart, or further where the client has more than 64 bursts.
 */
export interface Episode {
  /**
   * Its number, from 1: what --episode takes.
   */
  number: number;
  client: string;
  kind: EpisodeKind;
  /**
   * The program, document or settings that it opens most.
   */
  about: string | null;
  /**
   * That in words.
   */
  label: string;
  start_ns: number;
  end_ns: number;
  duration_ns: number;
  /**
   * Time with a command outstanding, by connection.
   */
  waited_ns: number;
  /**
   * The rest of the duration.
   */
  think_ns: number;
  /**
   * Commands; as many round trips where they come one after the other.
   */
  commands: number;
  opens: number;
  /**
   * Different paths that were opened; an estimate (13%) from 64 on.
   */
  files: number;
  bytes_read: number;
  bytes_written: number;
}
/**
 * One of the slowest exchanges; expected waits are left out.
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
   * Name of the file that holds the request.
   */
  capture: string | null;
  /**
   * Name of the file that holds the response, where it is another one.
   */
  response_capture: string | null;
  /**
   * Packet numbers as Wireshark counts them in that file, from 1; 0 where none was seen.
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
 * How long the episode would take if something were different.
 */
export interface WhatIf {
  /**
   * What is different, as --what-if takes it.
   */
  scenario: string;
  /**
   * First request to last response, as captured.
   */
  now_ns: number;
  /**
   * The same if it were so, at least.
   */
  then_low_ns: number;
  /**
   * The same, at best guess.
   */
  then_ns: number;
  /**
   * The same, at most.
   */
  then_high_ns: number;
  /**
   * The longest round trip of the episode's connections, as captured.
   */
  round_trip_ns: number | null;
  commands: number;
  /**
   * Commands that would not be sent.
   */
  saved: number;
}
/**
 * Where the time of connections went. Each moment is divided equally among the commands outstanding on its connection, and each share goes to the phase in which its command is; while a response is coming in, or a lost segment is being sent again, the moment is the transfer's, or the network's.
 */
export interface TimeSplitEntry {
  /**
   * Connections that were added up: 1 for a connection.
   */
  connections: number;
  /**
   * First to last packet, of all connections; the sum of the parts below.
   */
  elapsed_ns: number;
  /**
   * The client's own time: nothing outstanding, for at most 10 s between a response and the next request.
   */
  think_ns: number;
  /**
   * First to last packet of requests.
   */
  request_transfer_ns: number;
  /**
   * Round trips between client, capture point and server, and waits for segments to be sent again.
   */
  network_ns: number;
  /**
   * Service time less the round trip.
   */
  server_ns: number;
  /**
   * Service time where the round trip is not known.
   */
  server_or_network_ns: number;
  /**
   * First to last packet of responses.
   */
  response_transfer_ns: number;
  /**
   * Nothing outstanding but expected waits.
   */
  waiting_ns: number;
  /**
   * Nothing outstanding for more than 10 s, before the first request or after the last response.
   */
  idle_ns: number;
  /**
   * A command was outstanding of which the capture does not hold the end.
   */
  unknown_ns: number;
  /**
   * Only commands that a filter left out were outstanding, or the client thought before one of them; 0 without a filter.
   */
  filtered_out_ns: number;
  /**
   * At least one command outstanding, expected waits not counted.
   */
  busy_ns: number;
  /**
   * Sum over the commands of the time for which each was outstanding; divided by busy_ns, the mean concurrency.
   */
  outstanding_ns: number;
}
/**
 * What both sides of some connections offered.
 */
export interface Negotiation {
  /**
   * Connections on which both sides offered just this.
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
   * Null where its request was not captured.
   */
  client: ClientOffer | null;
  /**
   * Null where its response was not captured.
   */
  server: ServerOffer | null;
  /**
   * A feature each, with what came of it; none where neither side was captured.
   */
  features: Feature[];
}
/**
 * What a client offers.
 */
export interface ClientOffer {
  /**
   * In the order of the message; `2.x` stands for any dialect of SMB2, still to be negotiated.
   */
  dialects: string[];
  /**
   * Its first message was an SMB1 NEGOTIATE.
   */
  began_with_smb1: boolean;
  /**
   * `unknown`, `disabled`, `enabled` or `required`.
   */
  signing: string;
  /**
   * Null of clients that do not say: those without SMB 3.
   */
  capabilities: string[] | null;
  ciphers: string[] | null;
  signing_algorithms: string[] | null;
  compression_algorithms: string[] | null;
}
/**
 * What a server answers.
 */
export interface ServerOffer {
  /**
   * Null where it accepted none.
   */
  dialect: string | null;
  /**
   * `unknown`, `disabled`, `enabled` or `required`.
   */
  signing: string;
  /**
   * Null in SMB1.
   */
  capabilities: string[] | null;
  /**
   * Largest READ in bytes; null in SMB1.
   */
  max_read: number | null;
  /**
   * Largest WRITE in bytes; null in SMB1.
   */
  max_write: number | null;
  ciphers: string[] | null;
  signing_algorithms: string[] | null;
  compression_algorithms: string[] | null;
}
/**
 * What came of a feature, and why it was no more.
 */
export interface Feature {
  feature: string;
  /**
   * What the client says of it.
   */
  client: string;
  /**
   * What the server says of it.
   */
  server: string;
  outcome: string;
}
export interface ConnectionEntry {
  /**
   * The packet that opened the connection: its number among the packets of all captures, in time order, from 1.
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
   * The capture does not hold its beginning.
   */
  midstream: boolean;
  end: "open" | "closed" | "reset";
  /**
   * The place of what both sides offered in `negotiations`.
   */
  negotiation: number | null;
  /**
   * Whether the server requires signing; null where the negotiation was not captured.
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
   * Time in which several requests were outstanding and the client waited for credits to send the next one; not known, and zero, where the beginning or any message was not captured, or is encrypted.
   */
  credit_wait_ns: number;
  /**
   * Most requests at once that the server had answered with STATUS_PENDING and not finally.
   */
  max_asynchronous: number;
  server_round_trip_ns: number | null;
  client_round_trip_ns: number | null;
  users: string[];
  shares: string[];
  to_server: Direction;
  to_client: Direction;
  /**
   * Null for connections without an exchange that the filter chose, and beyond 100,000 of them.
   */
  time_split: TimeSplitEntry | null;
}
/**
 * Counts of one direction of a flow.
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
   * Packets with data that continue a message.
   */
  continuation_packets: number;
  /**
   * Segments that only acknowledge.
   */
  pure_acks: number;
  /**
   * Segments that carry bytes sent before.
   */
  retransmitted: number;
  /**
   * Segments lost before they reached the capture point: the capture holds only the retransmission, which filled a hole.
   */
  lost_before_capture: number;
  /**
   * Retransmitted segments that the receiver did not need: already acknowledged when sent again, or reported by a D-SACK (RFC 2883).
   */
  needless: number;
  /**
   * Time in which a loss held up the stream: from the first to the last copy of a segment, or from the hole that its loss left to the retransmission that filled it. Overlapping delays count once, needless retransmissions not at all.
   */
  resend_delay_ns: number;
  /**
   * Times that the sender held data back until a delayed acknowledgment came (Nagle's algorithm, RFC 896, against RFC 1122 4.2.3.2): a segment, nothing but its acknowledgment 40 or 200 ms later, and the next segment at once. None are counted where the round trip is 25 ms or longer.
   */
  ack_stalls: number;
  /**
   * Time in which it did, from the segment before to the segment after.
   */
  ack_stall_ns: number;
  /**
   * Bytes acknowledged but never captured.
   */
  dropped_bytes: number;
  /**
   * Packets dropped by the capture, at least.
   */
  dropped_packets: number;
  /**
   * Time in which the receiver's window was closed and the sender waited for it.
   */
  window_closed_ns: number;
  /**
   * Time in which the sender had filled the receiver's window and waited for an acknowledgment; not known, and zero, where a SYN was not captured or the round trip is shorter than 1 ms.
   */
  window_limited_ns: number;
  /**
   * The largest window that the sender filled like that, in bytes.
   */
  filled_window: number | null;
}
/**
 * Counts and times of a set of exchanges.
 */
export interface CommandEntry {
  protocol: Protocol;
  /**
   * The specification's name, or the code in hexadecimal.
   */
  command: string;
  groups: GroupName[];
  /**
   * Exchanges, timed or not.
   */
  count: number;
  /**
   * Exchanges that entered the times.
   */
  timed: number;
  /**
   * Error responses by status; `(other)` adds up what is not listed.
   */
  errors: {
    [k: string]: number;
  };
  /**
   * How exchanges ended; only what occurred.
   */
  outcomes: {
    [k: string]: number;
  };
  /**
   * Packets per exchange, both halves; of exchanges whose packets are known in full.
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
   * Response times by decade: below 1 µs, 10 µs, 100 µs, 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, and the rest. A time on an edge is in the decade above.
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
   * Exchanges with a subcommand, by it.
   */
  subcommands: SubcommandEntry[];
  /**
   * What is no command of its own and not in the counts of this entry: the asynchronous portion of Write_Raw, what the server sent of its own accord.
   */
  apart: SubcommandEntry[];
}
/**
 * A part of a command.
 */
export interface SubcommandEntry {
  subcommand: string;
  /**
   * Exchanges, timed or not.
   */
  count: number;
  /**
   * Exchanges that entered the times.
   */
  timed: number;
  /**
   * Error responses by status; `(other)` adds up what is not listed.
   */
  errors: {
    [k: string]: number;
  };
  /**
   * How exchanges ended; only what occurred.
   */
  outcomes: {
    [k: string]: number;
  };
  /**
   * Packets per exchange, both halves; of exchanges whose packets are known in full.
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
   * Response times by decade: below 1 µs, 10 µs, 100 µs, 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, and the rest. A time on an edge is in the decade above.
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
   * Exchanges, timed or not.
   */
  count: number;
  /**
   * Exchanges that entered the times.
   */
  timed: number;
  /**
   * Error responses by status; `(other)` adds up what is not listed.
   */
  errors: {
    [k: string]: number;
  };
  /**
   * How exchanges ended; only what occurred.
   */
  outcomes: {
    [k: string]: number;
  };
  /**
   * Packets per exchange, both halves; of exchanges whose packets are known in full.
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
   * Response times by decade: below 1 µs, 10 µs, 100 µs, 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, and the rest. A time on an edge is in the decade above.
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
   * The cumulative distribution of response time: pairs of nanoseconds and the fraction of commands answered within them, ascending, at most 128.
   */
  cumulative: [number, number][];
  parts: GroupEntry[];
}
/**
 * What a share, file, client, server or user did.
 */
export interface ShareEntity {
  share: string;
  /**
   * True for the entry that adds up everything that is not listed.
   */
  is_other: boolean;
  /**
   * Commands.
   */
  count: number;
  /**
   * Commands that entered the response time.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  bytes_read: number;
  bytes_written: number;
  response_time: Times;
}
/**
 * What a share, file, client, server or user did.
 */
export interface FileEntity {
  share: string | null;
  /**
   * Path below the share; an ellipsis (…) at the end stands for what the capture does not hold.
   */
  path: string;
  /**
   * True for the entry that adds up everything that is not listed.
   */
  is_other: boolean;
  /**
   * Commands.
   */
  count: number;
  /**
   * Commands that entered the response time.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  bytes_read: number;
  bytes_written: number;
  response_time: Times;
}
/**
 * What a share, file, client, server or user did.
 */
export interface ClientEntity {
  /**
   * IP address.
   */
  client: string;
  /**
   * Sum over its connections; null for what is not listed.
   */
  time_split: TimeSplitEntry | null;
  /**
   * True for the entry that adds up everything that is not listed.
   */
  is_other: boolean;
  /**
   * Commands.
   */
  count: number;
  /**
   * Commands that entered the response time.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  bytes_read: number;
  bytes_written: number;
  response_time: Times;
}
/**
 * What a share, file, client, server or user did.
 */
export interface ServerEntity {
  /**
   * IP address.
   */
  server: string;
  server_port: number | null;
  /**
   * Sum over its connections; null for what is not listed.
   */
  time_split: TimeSplitEntry | null;
  /**
   * True for the entry that adds up everything that is not listed.
   */
  is_other: boolean;
  /**
   * Commands.
   */
  count: number;
  /**
   * Commands that entered the response time.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  bytes_read: number;
  bytes_written: number;
  response_time: Times;
}
/**
 * What a share, file, client, server or user did.
 */
export interface UserEntity {
  user: string;
  /**
   * True for the entry that adds up everything that is not listed.
   */
  is_other: boolean;
  /**
   * Commands.
   */
  count: number;
  /**
   * Commands that entered the response time.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  bytes_read: number;
  bytes_written: number;
  response_time: Times;
}
/**
 * Opportunistic caching: which opens were granted an oplock or a lease, and which reads brought bytes that the session had read before and that, as far as the capture shows, did not change. docs/definitions.md says how that is told.
 */
export interface CachingEntry {
  /**
   * Successful opens by what they were granted; only what occurred.
   */
  opens: Opens[];
  /**
   * Successful opens of which the capture does not show it.
   */
  unknown_opens: number;
  /**
   * Reads that brought data.
   */
  reads: number;
  bytes_read: number;
  repeated: RepeatedReads;
  /**
   * Those of each client, most bytes first, at most 1,000.
   */
  clients: ClientRereads[];
  /**
   * Those of each client and file, most bytes first, at most 1,000.
   */
  files: FileRereads[];
}
export interface Opens {
  /**
   * `not requested`, `not granted`, the level of an oplock, or the states of a lease.
   */
  granted: string;
  count: number;
}
export interface RepeatedReads {
  reads: number;
  bytes: number;
  /**
   * Of these, reads through an open with an oplock or lease that allowed the client to keep the bytes.
   */
  cacheable_reads: number;
  cacheable_bytes: number;
}
export interface ClientRereads {
  /**
   * IP address.
   */
  client: string;
  reads: number;
  bytes: number;
  /**
   * Of these, reads through an open with an oplock or lease that allowed the client to keep the bytes.
   */
  cacheable_reads: number;
  cacheable_bytes: number;
}
export interface FileRereads {
  /**
   * IP address.
   */
  client: string;
  share: string | null;
  /**
   * Path below the share.
   */
  path: string;
  reads: number;
  bytes: number;
  /**
   * Of these, reads through an open with an oplock or lease that allowed the client to keep the bytes.
   */
  cacheable_reads: number;
  cacheable_bytes: number;
}
/**
 * The commands divided by --by.
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
    )[]
  ];
  sort:
    "response_time" | "service_time" | "count" | "errors" | "bytes" | "mean" | "p50" | "p95" | "p99" | "max" | "key";
  /**
   * A key without an entry waited no longer than this in all; 0 as long as every key has one, which it has up to 20,000 keys.
   */
  missed_at_most_ns: number;
  /**
   * In the order of `sort`; of a load point at most 1,000.
   */
  entries: SliceEntry[];
  /**
   * What was evicted because there were too many keys, and what is not listed, added up.
   */
  other: SliceFigures | null;
}
export interface SliceEntry {
  /**
   * What the commands have in common; null is unknown.
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
   * Response time of this key that other holds: at most this.
   */
  missed_at_most_ns: number;
  /**
   * Commands.
   */
  count: number;
  /**
   * Commands that entered the response time: complete ones of the headline groups.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  bytes_read: number;
  bytes_written: number;
  /**
   * What was waited in all.
   */
  response_time_sum_ns: number;
  response_time: Times;
  service_time: Times;
}
export interface SliceFigures {
  /**
   * Commands.
   */
  count: number;
  /**
   * Commands that entered the response time: complete ones of the headline groups.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  bytes_read: number;
  bytes_written: number;
  /**
   * What was waited in all.
   */
  response_time_sum_ns: number;
  response_time: Times;
  service_time: Times;
}
export interface ReportTimeline {
  width_ns: number;
  /**
   * Bins in which a command began or was outstanding, in time order.
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
   * Time with at least one command outstanding, summed over connections, whatever the filter.
   */
  busy_ns: number;
  /**
   * Time for which commands were outstanding, summed over commands; divided by width_ns, the mean concurrency.
   */
  outstanding_ns: number;
}
export interface TimelineTimes {
  count: number;
  sum: number;
  max: number | null;
}
/**
 * Response times over time; expected waits are left out.
 */
export interface HeatMap {
  /**
   * Width of an interval; the smallest of 1, 2, 4 … ms that needs no more than 512 of them.
   */
  width_ns: number;
  /**
   * Lower edges of the response time buckets, ascending; the first begins at 0, the last has no end.
   */
  edges_ns: number[];
  /**
   * Intervals in which something began or was outstanding, in time order.
   */
  bins: HeatMapBin[];
}
/**
 * An interval of a heat map.
 */
export interface HeatMapBin {
  /**
   * Where it begins.
   */
  start_ns: number;
  /**
   * Sum of the times for which commands were outstanding within the interval.
   */
  outstanding_ns: number;
  /**
   * Bytes of requests that began in it.
   */
  request_bytes: number;
  /**
   * Bytes of the responses to them.
   */
  response_bytes: number;
  /**
   * Pairs of bucket and count, of commands that began in the interval.
   */
  counts: [number, number][];
}
/**
 * How response time depends on load (Swartz 1997, figures 2 and 3, from a capture).
 */
export interface Concurrency {
  /**
   * Mean number of commands outstanding in an interval of heatmap.width_ns, over all connections: from, inclusive.
   */
  outstanding_from: number;
  /**
   * To, exclusive.
   */
  outstanding_to: number;
  /**
   * How long it was like that, all intervals together.
   */
  time_ns: number;
  /**
   * Commands of the headline groups with a response time that began in these intervals.
   */
  commands: number;
  /**
   * Bytes of their requests.
   */
  request_bytes: number;
  /**
   * Bytes of their responses.
   */
  response_bytes: number;
  response_time: LoadTimes;
}
/**
 * Mean is exact; percentiles have the resolution of a histogram with 24 buckets a decade (10%), p50 needs 1 value, p95 20.
 */
export interface LoadTimes {
  /**
   * The mean.
   */
  mean: number | null;
  /**
   * The median.
   */
  p50: number | null;
  /**
   * The 95th percentile.
   */
  p95: number | null;
}
/**
 * Entries that were left out of lists to bound the size of the document (HTML only): the least by total response time.
 */
export interface Omitted {
  connections: number;
  shares: number;
  files: number;
  clients: number;
  servers: number;
  users: number;
}
