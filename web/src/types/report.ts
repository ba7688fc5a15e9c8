// Made from schema/smbscope.report-1.schema.json by scripts/types.mjs; do not edit.

export type Count = number;
export type Nanoseconds = number | null;
export type Positive = number;
/**
 * A server (`address:port`) or a client (its address).
 */
export type Subject =
  | {
      server: string;
    }
  | {
      client: string;
    };
export type Port = number;
export type Command = Row & {
  protocol: "SMB1" | "SMB2";
  /**
   * The specification's name, or the code in hexadecimal.
   */
  command: string;
  groups: (
    | "Open/Close"
    | "Attributes"
    | "Directory"
    | "Locking"
    | "Read"
    | "Write"
    | "Session"
    | "Control"
    | "Waiting"
    | "Encrypted"
  )[];
  /**
   * Exchanges with a subcommand, by it.
   */
  subcommands: Subcommand[];
  /**
   * What is no command of its own and not in the counts of this entry: the asynchronous portion of Write_Raw, what the server sent of its own accord.
   */
  apart: Subcommand[];
};
export type Subcommand = Row & {
  subcommand: string;
};
export type Group = Row & {
  group:
    | "Open/Close"
    | "Attributes"
    | "Directory"
    | "Locking"
    | "Read"
    | "Write"
    | "Session"
    | "Control"
    | "Waiting"
    | "Encrypted"
    | "Other";
  headline: boolean;
  parts: Group[];
  cumulative: Cumulative;
};
/**
 * The cumulative distribution of response time: pairs of nanoseconds and the fraction of commands answered within them, ascending, at most 128.
 */
export type Cumulative = [number, number][];

/**
 * What `smbscope analyze --format json` prints. All times are integers in nanoseconds, points in time since the Unix epoch; null is unknown or, for a statistic, not supported by enough values.
 */
export interface SmbscopeReportDocument {
  schema: "smbscope.report/1";
  generator: {
    name: "smbscope";
    version: string;
  };
  title: string | null;
  /**
   * The expression of --filter, where the statistics are about chosen exchanges only; docs/filter.md describes it. Captures, quality and connections are those of the whole.
   */
  filter: string | null;
  /**
   * How many exchanges the filter chose, of how many.
   */
  matched: {
    exchanges: Count;
    of: Count;
  } | null;
  /**
   * The captures, in the order in which exchanges number them.
   */
  captures: Capture[];
  quality: Quality;
  totals: Totals;
  verdict: Verdict;
  time_split: TimeSplit;
  /**
   * TCP connections that carried SMB.
   */
  connections: Connection[];
  /**
   * By command; waits by design of a command are an entry of their own, with group Waiting.
   */
  commands: Command[];
  /**
   * By operation group; the entries add up, Other holds its parts.
   */
  groups: Group[];
  shares: (Entity & {
    share: string;
  })[];
  files: (Entity & {
    share: string | null;
    /**
     * Path below the share; an ellipsis (…) at the end stands for what the capture does not hold.
     */
    path: string;
  })[];
  clients: (Entity & {
    /**
     * IP address.
     */
    client: string;
    /**
     * Sum over its connections; null for what was not told apart.
     */
    time_split: TimeSplit | null;
  })[];
  servers: (Entity & {
    /**
     * IP address.
     */
    server: string;
    server_port: number | null;
    /**
     * Sum over its connections; null for what was not told apart.
     */
    time_split: TimeSplit | null;
  })[];
  users: (Entity & {
    user: string;
  })[];
  /**
   * The commands divided by --by; null without it.
   */
  slices: null | Slices;
  timeline: Timeline;
  heatmap: Heatmap;
  concurrency: Concurrency[];
  /**
   * The slowest exchanges, slowest first, at most 100.
   */
  slowest: SlowExchange[];
  /**
   * What the rules found; empty where no rule ran.
   */
  findings: Finding[];
  omitted: Omitted;
  warnings: string[];
}
export interface Capture {
  name: string;
  /**
   * pcap, pcapng or snoop.
   */
  format: string;
  compression: string | null;
  packets: Count;
  bytes: Count;
  first_ns: Nanoseconds;
  last_ns: Nanoseconds;
  resolution_ns: Count;
  snap_length: number | null;
  link_types: Count[];
  warnings: string[];
}
/**
 * What the captures could not show: in one sentence, and counted by reason.
 */
export interface Quality {
  /**
   * Which share of the commands could not be timed because the capture is damaged, and why, in plain English.
   */
  sentence: string;
  /**
   * That share in percent: commands seen in part, and those of which the capture shows nothing (commands_unseen), which are an estimate where the bounds differ.
   */
  not_timed: {
    /**
     * The best guess.
     */
    percent: number;
    /**
     * It is hardly less than this: two standard errors below.
     */
    at_least: number;
    /**
     * It is hardly more than this: two standard errors above.
     */
    at_most: number;
  };
  /**
   * Packets that are no TCP, by protocol, most packets first, at most 33 entries; they add up to `not_tcp`.
   */
  skipped: Skipped[];
  packets: Count;
  wire_bytes: Count;
  captured_bytes: Count;
  snapped_packets: Count;
  not_tcp: Count;
  tcp_packets: Count;
  malformed_packets: Count;
  headers_not_captured: Count;
  tunneled_packets: Count;
  ip_fragments: Count;
  ip_datagrams_reassembled: Count;
  ip_datagrams_incomplete: Count;
  packets_reordered_by_time: Count;
  packets_out_of_time_order: Count;
  truncated_captures: Count;
  unreadable_records: Count;
  smb_flow_packets: Count;
  pure_acks: Count;
  unacknowledged_segments: Count;
  duplicate_packets: Count;
  copies_behind_router: Count;
  retransmitted_segments: Count;
  retransmitted_bytes: Count;
  spurious_retransmissions: Count;
  retransmissions_seen_once: Count;
  out_of_order_segments: Count;
  capture_gaps: Count;
  dropped_packets: Count;
  dropped_bytes: Count;
  missing_unacknowledged_bytes: Count;
  late_segments: Count;
  keep_alives: Count;
  zero_windows: Count;
  midstream_flows: Count;
  reset_flows: Count;
  evicted_flows: Count;
  reorder_buffer_overflows: Count;
  framing_lost: Count;
  framing_found: Count;
  bytes_skipped: Count;
  unknown_frames: Count;
  malformed_messages: Count;
  headers_truncated: Count;
  names_cut: Count;
  encrypted_frames: Count;
  compressed_frames: Count;
  compressed_frames_opaque: Count;
  foreign_replies: Count;
  netbios_keep_alives: Count;
  netbios_session_packets: Count;
  responses_without_request: Count;
  requests_unanswered: Count;
  responses_not_captured: Count;
  response_end_missing: Count;
  causality_refused: Count;
  ambiguous_refused: Count;
  ids_reused: Count;
  clock_steps: Count;
  early_responses: Count;
  evicted_requests: Count;
  evicted_names: Count;
  interim_responses: Count;
  server_breaks: Count;
  commands_unseen: Count;
  commands_unseen_variance: Count;
  longest_cut_packet: Count;
  longest_name_tail: Count;
}
/**
 * Packets of a protocol that is not read.
 */
export interface Skipped {
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
  packets: Positive;
}
export interface Totals {
  commands: Count;
  untimed: Count;
  outcomes: Outcomes;
  first_ns: Nanoseconds;
  last_ns: Nanoseconds;
  elapsed_ns: Nanoseconds;
  load: Load;
  headline: Row;
}
/**
 * How exchanges ended; only what occurred.
 */
export interface Outcomes {
  [k: string]: Positive;
}
/**
 * What was asked of the servers: the one source of rates, error counts and bytes.
 */
export interface Load {
  elapsed_ns: Count;
  /**
   * Commands of every group.
   */
  commands_per_second: number | null;
  errors: Count;
  bytes_read: Count;
  bytes_written: Count;
  read_bytes_per_second: number | null;
  written_bytes_per_second: number | null;
}
/**
 * Counts and times of a set of exchanges.
 */
export interface Row {
  count: Count;
  timed: Count;
  /**
   * Error responses by status; `(other)` adds up what was not told apart.
   */
  errors: {
    [k: string]: Positive;
  };
  outcomes: Outcomes;
  /**
   * Packets per exchange, both halves; of exchanges whose packets are known in full.
   */
  average_packets: number | null;
  request_bytes: Count;
  response_bytes: Count;
  /**
   * Response times by decade: below 1 µs, 10 µs, 100 µs, 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, and the rest. A time on an edge is in the decade above.
   *
   * @minItems 10
   * @maxItems 10
   */
  distribution: [Count, Count, Count, Count, Count, Count, Count, Count, Count, Count];
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
 * Statistics of one of the times in nanoseconds. Standard deviation is that of a sample (n − 1). Percentiles interpolate linearly (Hyndman and Fan 7), are exact up to 10,000 values and have three significant digits above; p50 needs 1 value, p90 10, p95 20, p99 100, p999 1000.
 */
export interface Times {
  count: Count;
  min: Nanoseconds;
  max: Nanoseconds;
  mean: Nanoseconds;
  stddev: Nanoseconds;
  p50: Nanoseconds;
  p90: Nanoseconds;
  p95: Nanoseconds;
  p99: Nanoseconds;
  p999: Nanoseconds;
}
/**
 * Is anything slow, and is it the server, the network or the client? In plain English.
 */
export interface Verdict {
  /**
   * Whose the waits are: the server's, the network's (transfers, round trips, retransmissions); `client`: nothing is slow, and the client was idle between requests most of the time; `nothing`: nothing is slow; `waiting`: expected waits only; `idle`: no command was outstanding; `unknown`: the capture does not tell.
   */
  who: "server" | "network" | "client" | "nothing" | "waiting" | "idle" | "unknown";
  /**
   * The answer in one sentence.
   */
  headline: string;
  /**
   * What supports it, a sentence each: what is slow, load, what caused the most wait, where the time went.
   */
  sentences: string[];
  /**
   * The server or client that the headline is about; null where it is about the whole.
   */
  subject: Subject | null;
  /**
   * Slow servers, then slow clients: of each, the 10 that waited longest.
   */
  slow: {
    subject: Subject;
    who: "server" | "network" | "unknown";
    waited_ns: Count;
    active_ns: Count;
    /**
     * The thresholds that it exceeds.
     */
    reasons: string[];
  }[];
  /**
   * What counted as slow, as --slow takes it: the longest p95 of each group, the longest command, the share of its active time that a client waits, and its least total wait.
   */
  thresholds: string;
}
/**
 * Where the time of connections went. Each moment is divided equally among the commands outstanding on its connection, and each share goes to the phase in which its command is; while a response is coming in, or a lost segment is being sent again, the moment is the transfer's, or the network's.
 */
export interface TimeSplit {
  connections: Count;
  elapsed_ns: Count;
  think_ns: Count;
  request_transfer_ns: Count;
  network_ns: Count;
  server_ns: Count;
  server_or_network_ns: Count;
  response_transfer_ns: Count;
  waiting_ns: Count;
  idle_ns: Count;
  unknown_ns: Count;
  filtered_out_ns: Count;
  busy_ns: Count;
  outstanding_ns: Count;
}
export interface Connection {
  flow_id: Count;
  client: string;
  client_port: Port;
  server: string;
  server_port: Port;
  first_ns: number;
  last_ns: number;
  protocol: "SMB1" | "SMB2" | null;
  dialect: string | null;
  /**
   * The capture does not hold its beginning.
   */
  midstream: boolean;
  end: "open" | "closed" | "reset";
  /**
   * Whether the server requires signing; null where the negotiation was not captured.
   */
  signing_required: boolean | null;
  signed_messages: Count;
  encrypted_frames: Count;
  compressed_frames: Count;
  messages: Count;
  exchanges: Count;
  max_outstanding: Count;
  max_credits_granted: Count;
  server_round_trip_ns: Nanoseconds;
  client_round_trip_ns: Nanoseconds;
  users: string[];
  shares: string[];
  to_server: Direction;
  to_client: Direction;
  /**
   * Null for connections without an exchange that the filter chose, and beyond 100,000 of them.
   */
  time_split: TimeSplit | null;
}
export interface Direction {
  packets: Count;
  bytes: Count;
  message_packets: Count;
  continuation_packets: Count;
  pure_acks: Count;
  retransmitted: Count;
  dropped_bytes: Count;
  dropped_packets: Count;
}
/**
 * What a share, file, client, server or user did.
 */
export interface Entity {
  /**
   * True for the entry that adds up everything that was not told apart.
   */
  is_other: boolean;
  count: Count;
  timed: Count;
  errors: Count;
  bytes_read: Count;
  bytes_written: Count;
  response_time: Times;
}
export interface Slices {
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
  missed_at_most_ns: Count;
  entries: (SliceFigures & {
    /**
     * What the commands have in common; null is unknown.
     */
    key: {
      client?: string;
      /**
       * Address and port.
       */
      server?: string;
      user?: string | null;
      share?: string | null;
      /**
       * Path below the share.
       */
      file?: string | null;
      /**
       * Path below the share; empty is the share's root.
       */
      directory?: string | null;
      /**
       * In lower case; empty where the name has none.
       */
      extension?: string | null;
      command?: string;
      group?: string;
      dialect?: string | null;
      flow_id?: Count;
      /**
       * Client and server.
       */
      connection?: string;
      status?: string | null;
      size?: Count;
    };
    missed_at_most_ns: Count;
  })[];
  /**
   * What was given up because there were too many keys, added up.
   */
  other: null | SliceFigures;
}
export interface SliceFigures {
  count: Count;
  timed: Count;
  errors: Count;
  bytes_read: Count;
  bytes_written: Count;
  /**
   * What was waited in all.
   */
  response_time_sum_ns: number;
  response_time: Times;
  service_time: Times;
}
export interface Timeline {
  width_ns: Positive;
  /**
   * Bins in which a command began or was outstanding, in time order.
   */
  bins: {
    start_ns: number;
    commands: Count;
    errors: Count;
    request_bytes: Count;
    response_bytes: Count;
    response_time: {
      count: Count;
      sum: number;
      max: Nanoseconds;
    };
    busy_ns: Count;
    outstanding_ns: Count;
  }[];
}
/**
 * Response times over time; waits by design are left out.
 */
export interface Heatmap {
  width_ns: Positive;
  /**
   * Lower edges of the response time buckets, ascending; the first begins at 0, the last has no end.
   */
  edges_ns: Count[];
  /**
   * Intervals in which something began or was outstanding, in time order.
   */
  bins: {
    start_ns: number;
    outstanding_ns: Count;
    request_bytes: Count;
    response_bytes: Count;
    /**
     * Pairs of bucket and count, of commands that began in the interval.
     */
    counts: [Count, Positive][];
  }[];
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
  time_ns: Count;
  commands: Count;
  request_bytes: Count;
  response_bytes: Count;
  /**
   * Mean is exact; percentiles have the resolution of a histogram with 24 buckets a decade (10 %), p50 needs 1 value, p95 20.
   */
  response_time: {
    mean: Nanoseconds;
    p50: Nanoseconds;
    p95: Nanoseconds;
  };
}
/**
 * One of the slowest exchanges; waits by design are left out.
 */
export interface SlowExchange {
  flow_id: Count;
  client: string;
  client_port: Port;
  server: string;
  server_port: Port;
  protocol: "SMB1" | "SMB2";
  command: string;
  subcommand: string | null;
  group: string;
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
  request_first_packet: Count;
  request_last_packet: Count;
  response_first_packet: Count;
  response_last_packet: Count;
  request_first_ns: number;
  response_time_ns: Count;
  request_transfer_ns: Nanoseconds;
  service_time_ns: Nanoseconds;
  server_time_ns: Nanoseconds;
  response_transfer_ns: Nanoseconds;
  retransmission_delay_ns: Nanoseconds;
  request_bytes: Count;
  response_bytes: Count;
}
export interface Finding {
  /**
   * The rule's name, stable.
   */
  id: string;
  /**
   * One sentence.
   */
  title: string;
  seconds_lost: number | null;
  /**
   * Facts that support it; each rule has its own.
   */
  evidence: {}[];
}
/**
 * Entries that were left out of lists to bound the size of the document (HTML only): the least by total response time.
 */
export interface Omitted {
  connections: Count;
  shares: Count;
  files: Count;
  clients: Count;
  servers: Count;
  users: Count;
}
