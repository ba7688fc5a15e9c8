// Made from schema/smbscope.compare-1.schema.json by scripts/types.mjs; do not edit.

/**
 * Party that has to act.
 */
export type Culprit = "server" | "network" | "client" | "application" | "capture" | "nothing";
/**
 * Reliability of an explanation.
 */
export type Confidence = "low" | "medium" | "high";
/**
 * Conclusion from an interval.
 */
export type Conclusion = "higher" | "lower" | "equal" | "undecided";
/**
 * Population that an interval describes.
 */
export type Scope = "runs" | "within_run";
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
 * Subject of a caveat.
 */
export type NoteKind = "setup" | "few" | "mix" | "place" | "damage" | "encrypted" | "filter" | "warning";

/**
 * Output of `smbscope compare --format json`: captures, saved reports and ramps side by side. Times are integers in nanoseconds, timestamps count from the Unix epoch. Null is unknown or, for a statistic, based on too few values. Cells are in the order of `columns`. The first column is the baseline, and ratios are relative to it.
 */
export interface SmbscopeComparisonDocument {
  schema: "smbscope.compare/1";
  generator: Generator;
  /**
   * Title given by the user.
   */
  title: string | null;
  /**
   * Conclusions: one for each column but the first.
   */
  answers: Compared[];
  /**
   * Compared captures, reports and ramps. The first is the baseline.
   *
   * @minItems 2
   */
  columns: [ComparisonColumn, ComparisonColumn, ...ComparisonColumn[]];
  headline: Headline;
  /**
   * Groups that occur in any column, in the order of the report; `Other` is followed by its parts.
   */
  groups: ComparedGroup[];
  /**
   * Commands that occur in any column, by longest total response time in any of them. The expected waits of a command are a separate entry.
   */
  commands: ComparedCommand[];
  /**
   * Commands grouped by `--by`. Null without it.
   */
  slices: ComparedSlices | null;
  /**
   * Ramps among the columns, by load point. The rest of the comparison covers one load point of each. Null without ramps.
   */
  ramps: Ramps | null;
  /**
   * Caveats, one sentence each.
   */
  notes: ComparisonNote[];
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
 * Comparison of a column with the baseline.
 */
export interface Compared {
  /**
   * Index of the column.
   */
  column: number;
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
 * A column of the comparison.
 */
export interface ComparisonColumn {
  /**
   * Name, unique among the columns.
   */
  name: string;
  /**
   * Argument as given. With several runs, the argument of the run whose lists and charts are used.
   */
  source: string;
  /**
   * Number of runs in the column. With several, times and rates are geometric means, counts are arithmetic means, and lists and charts are from the run with the median of the mean response times.
   */
  runs: number;
  /**
   * Title of the report.
   */
  title: string | null;
  /**
   * Filter of the report. Null if it covers all exchanges.
   */
  filter: string | null;
  /**
   * Version of smbscope that wrote the report.
   */
  version: string;
  /**
   * Captures of the report.
   */
  captures: CaptureInfo[];
  /**
   * Coverage of the capture in one sentence.
   */
  quality: string;
  overview: Overview;
  /**
   * Response times over time, as in a report. Null if unknown.
   */
  heatmap: HeatMap | null;
  /**
   * The slowest commands, slowest first, at most 20.
   */
  slowest: SlowExchange[];
  /**
   * Files with the longest total response time, at most 20. The rest is not summed up.
   */
  files: FileEntity[];
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
 * Totals of a capture.
 */
export interface Overview {
  /**
   * Time from the first to the last packet.
   */
  elapsed_ns: number | null;
  /**
   * Commands of all groups.
   */
  commands: number;
  /**
   * Commands with a response time.
   */
  timed: number;
  /**
   * Commands that should have a response time but couldn't be timed.
   */
  untimed: number;
  /**
   * Error responses.
   */
  errors: number;
  /**
   * Connections that carried SMB.
   */
  connections: number;
  /**
   * Bytes of successful reads.
   */
  bytes_read: number;
  /**
   * Bytes of successful writes.
   */
  bytes_written: number;
  /**
   * Bytes read and written per second.
   */
  bytes_per_second: number | null;
  /**
   * Commands of all groups per second.
   */
  commands_per_second: number | null;
  /**
   * Mean duration of a job, a complete pass of a workload that has an end. Null without jobs.
   */
  job_elapsed_ns: number | null;
  /**
   * Commands of all groups per 1,000,000 bytes read and written. Null without data.
   */
  commands_per_megabyte: number | null;
  /**
   * Round trips that clients waited for one after the other (`time_split.round_trips` of a report), per file or folder that they named. Null if names are unknown or not all listed.
   */
  round_trips_per_file: number | null;
  /**
   * Connections that carried SMB, per client address. Null if unknown.
   */
  connections_per_client: number | null;
  /**
   * Connections by dialect, most frequent first; unknown dialects last.
   */
  dialects: DialectCount[];
  /**
   * Ratios to the baseline. Null in the baseline.
   */
  ratios: OverviewRatios | null;
}
/**
 * Connections of one dialect.
 */
export interface DialectCount {
  /**
   * Name of the dialect. Null if the negotiation was not captured.
   */
  dialect: string | null;
  /**
   * Number of connections.
   */
  connections: number;
}
/**
 * Ratios of the totals to the baseline.
 */
export interface OverviewRatios {
  /**
   * Ratio of `bytes_per_second`.
   */
  bytes_per_second: Ratio | null;
  /**
   * Ratio of `commands_per_second`.
   */
  commands_per_second: Ratio | null;
  /**
   * Ratio of `job_elapsed_ns`.
   */
  job_elapsed: Ratio | null;
  /**
   * Ratio of `commands_per_megabyte`.
   */
  commands_per_megabyte: Ratio | null;
  /**
   * Ratio of `round_trips_per_file`.
   */
  round_trips_per_file: Ratio | null;
  /**
   * Ratio of `connections_per_client`.
   */
  connections_per_client: Ratio | null;
}
/**
 * A value divided by the baseline's. Null if a value is missing or the baseline's is 0.
 */
export interface Ratio {
  /**
   * The quotient; 2 is twice the baseline.
   */
  value: number;
  /**
   * Confidence interval of the ratio. Null with fewer than five runs per column; for single runs, only the headline has one.
   */
  interval: ConfidenceInterval | null;
  /**
   * Certainty of the ratio. For single runs, only the headline has one.
   */
  certainty: Certainty | null;
}
/**
 * A confidence interval.
 */
export interface ConfidenceInterval {
  /**
   * Lower bound.
   */
  low: number;
  /**
   * Upper bound.
   */
  high: number;
  /**
   * Confidence level, such as 0.95.
   */
  level: number;
}
/**
 * Certainty of a ratio.
 */
export interface Certainty {
  answer: Conclusion;
  /**
   * Total runs per column that would probably decide an undecided ratio.
   */
  repetitions_needed: number | null;
  /**
   * Smallest and largest ratio of three or four runs per column, which are too few for an interval.
   *
   * @minItems 2
   * @maxItems 2
   */
  range: [number, number] | null;
  /**
   * Smallest ratio above 1 that this data would have detected with a power of 80%.
   */
  detectable: number | null;
  /**
   * Runs of the column with fewer runs, or pairs of adjacent runs.
   */
  repetitions: number;
  scope: Scope;
  /**
   * P-value: probability of a difference at least this large if the true ratio is 1.
   */
  p_value: number | null;
  /**
   * The difference is significant after correction for multiple comparisons: Benjamini-Hochberg for the rows of a table, Holm for the headline.
   */
  shown: boolean;
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
 * Total of the headline groups.
 */
export interface Headline {
  /**
   * One cell per column. Null if it has none of these commands.
   */
  cells: (ComparisonCell | null)[];
}
/**
 * Figures of a group or command in a column.
 */
export interface ComparisonCell {
  /**
   * Number of commands, timed or not.
   */
  count: number;
  /**
   * Commands with a response time.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  response_time: ResponseTime;
  /**
   * Response times by decade: below 1 µs, 10 µs, … 100 s, and longer. All 0 if unknown.
   *
   * @minItems 10
   * @maxItems 10
   */
  distribution: [number, number, number, number, number, number, number, number, number, number];
  /**
   * Ratios to the baseline. Null in the baseline, and if the baseline has no cell.
   */
  ratios: Ratios | null;
}
/**
 * Response time statistics. `times` of smbscope.report/1 says which percentiles exist when.
 */
export interface ResponseTime {
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
  /**
   * 99th percentile.
   */
  p99: number | null;
  /**
   * Largest value.
   */
  max: number | null;
  /**
   * Total response time: mean times `timed`. Accurate to half a nanosecond per command, as the mean is rounded.
   */
  sum: number | null;
}
/**
 * Ratios to the baseline, by figure.
 */
export interface Ratios {
  /**
   * Ratio of `count`.
   */
  count: Ratio | null;
  /**
   * Ratio of `mean`.
   */
  mean: Ratio | null;
  /**
   * Ratio of `p50`.
   */
  p50: Ratio | null;
  /**
   * Ratio of `p95`.
   */
  p95: Ratio | null;
  /**
   * Ratio of `p99`.
   */
  p99: Ratio | null;
  /**
   * Ratio of `max`.
   */
  max: Ratio | null;
  /**
   * Ratio of `sum`.
   */
  sum: Ratio | null;
}
/**
 * A group of commands.
 */
export interface ComparedGroup {
  /**
   * Name of the group.
   */
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
  /**
   * Group that includes this one.
   */
  part_of: "Other" | null;
  /**
   * Counts in the headline.
   */
  headline: boolean;
  /**
   * One cell per column. Null if it has none.
   */
  cells: (ComparisonCell | null)[];
  /**
   * Cumulative distribution of response times per column, as in a report. Empty if unknown.
   */
  cumulative: [number, number][][];
}
/**
 * A command, or equivalent commands of SMB1 and SMB2.
 */
export interface ComparedCommand {
  protocol: Protocol;
  /**
   * Name in the specification, or the code in hexadecimal.
   */
  command: string;
  /**
   * The entry holds the command's expected waits.
   */
  waiting: boolean;
  /**
   * Commands and SMB1 subcommands per column, if the entry combines equivalent commands of SMB1 and SMB2 under the SMB2 name. Null for all other entries.
   */
  members: string[][] | null;
  /**
   * One cell per column. Null if it has none.
   */
  cells: (ComparisonCell | null)[];
}
/**
 * Slices of all columns, grouped by the same dimensions.
 */
export interface ComparedSlices {
  /**
   * Dimensions.
   *
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
  /**
   * Slices by longest total wait in any column, at most 1,000.
   */
  entries: ComparedSlice[];
  /**
   * Number of slices not listed.
   */
  left_out: number;
}
/**
 * Commands with the same key.
 */
export interface ComparedSlice {
  /**
   * Values of the dimensions; null is unknown.
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
   * One cell per column. Null if the column does not have or list the slice.
   */
  cells: (ComparisonCell | null)[];
}
/**
 * Ramps side by side. Cells are in the order of the comparison's columns. Captures have none.
 */
export interface Ramps {
  /**
   * Data of each ramp. Null for columns that are not ramps.
   */
  columns: (Ramp | null)[];
  /**
   * Loads that occur in any ramp, ascending.
   */
  points: ComparedLoadPoint[];
}
/**
 * Data of one ramp.
 */
export interface Ramp {
  /**
   * Users of the load point used in the rest of the comparison.
   */
  users: number;
  /**
   * Name of the workload.
   */
  workload: string;
  /**
   * `closed loop`, or `open loop` with its rate.
   */
  schedule: string;
  /**
   * Overall response time from the document of the ramp.
   */
  overall_response_time_ns: number | null;
  /**
   * Highest load that meets the criterion of the ramp. Null if unknown.
   */
  capacity: number | null;
}
/**
 * Load points with the same number of users.
 */
export interface ComparedLoadPoint {
  /**
   * Concurrent users.
   */
  users: number;
  /**
   * All headline groups. One cell per column. Null if it has no such load point.
   */
  total: (PointCell | null)[];
  /**
   * By group. `Other` is followed by its parts.
   */
  groups: PointGroup[];
  /**
   * Server metrics. Empty if unknown.
   */
  server: PointMetric[];
}
/**
 * Figures of a group at a load point of one ramp.
 */
export interface PointCell {
  /**
   * Answered commands per second.
   */
  per_second: number | null;
  /**
   * Ratio of `per_second` to the first ramp.
   */
  per_second_ratio: Ratio | null;
  /**
   * Bytes read and written per second. For `Read` only bytes read, for `Write` only bytes written, for other groups null.
   */
  bytes_per_second: number | null;
  /**
   * Ratio of `bytes_per_second` to the first ramp.
   */
  bytes_per_second_ratio: Ratio | null;
  /**
   * Ranges of several runs of the column. Null for a single run.
   */
  spread: RepetitionRange | null;
  /**
   * Number of commands, timed or not.
   */
  count: number;
  /**
   * Commands with a response time.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  response_time: ResponseTime;
  /**
   * Response times by decade: below 1 µs, 10 µs, … 100 s, and longer. All 0 if unknown.
   *
   * @minItems 10
   * @maxItems 10
   */
  distribution: [number, number, number, number, number, number, number, number, number, number];
  /**
   * Ratios to the baseline. Null in the baseline, and if the baseline has no cell.
   */
  ratios: Ratios | null;
}
/**
 * Smallest and largest values of several runs.
 */
export interface RepetitionRange {
  /**
   * Range of `per_second`.
   *
   * @minItems 2
   * @maxItems 2
   */
  per_second: [number, number] | null;
  /**
   * Range of `bytes_per_second`.
   *
   * @minItems 2
   * @maxItems 2
   */
  bytes_per_second: [number, number] | null;
  /**
   * Range of the mean response time.
   *
   * @minItems 2
   * @maxItems 2
   */
  mean: [number, number] | null;
  /**
   * Range of the median.
   *
   * @minItems 2
   * @maxItems 2
   */
  p50: [number, number] | null;
  /**
   * Range of the 95th percentile.
   *
   * @minItems 2
   * @maxItems 2
   */
  p95: [number, number] | null;
}
/**
 * A group at a load point.
 */
export interface PointGroup {
  /**
   * Name of the group.
   */
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
  /**
   * Group that includes this one.
   */
  part_of: "Other" | null;
  /**
   * One cell per column. Null if it has no such load point or group.
   */
  cells: (PointCell | null)[];
}
/**
 * A metric of the servers at a load point.
 */
export interface PointMetric {
  /**
   * Name: `cpu`, `disk_busiest` …, as in the document of a run.
   */
  metric: string;
  /**
   * Unit: `percent`, `bytes/s`, `bytes`, `1/s` or `count`.
   */
  unit: string;
  /**
   * One cell per column. Null if its server metrics are unknown.
   */
  cells: (MetricCell | null)[];
}
/**
 * A metric of one server at a load point.
 */
export interface MetricCell {
  /**
   * Mean of the samples; of several runs, mean of their means.
   */
  mean: number;
  /**
   * Largest sample; of several runs, mean of their maxima.
   */
  max: number;
  /**
   * Smallest and largest mean of several runs. Null for a single run.
   *
   * @minItems 2
   * @maxItems 2
   */
  mean_range: [number, number] | null;
  /**
   * Smallest and largest maximum of several runs. Null for a single run.
   *
   * @minItems 2
   * @maxItems 2
   */
  max_range: [number, number] | null;
}
/**
 * A caveat of the comparison.
 */
export interface ComparisonNote {
  kind: NoteKind;
  /**
   * Index of the column.
   */
  column: number;
  /**
   * Text, usually without a final full stop.
   */
  text: string;
}
