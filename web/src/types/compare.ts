// Made from schema/smbscope.compare-1.schema.json by scripts/types.mjs; do not edit.

/**
 * Who has to act.
 */
export type Culprit = "server" | "network" | "client" | "application" | "capture" | "nothing";
/**
 * How sure a cause is.
 */
export type Confidence = "low" | "medium" | "high";
/**
 * What an interval says.
 */
export type Conclusion = "higher" | "lower" | "equal" | "undecided";
/**
 * What an interval is about.
 */
export type Scope = "runs" | "within_run";
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
 * What a note is about.
 */
export type NoteKind = "setup" | "few" | "mix" | "place" | "damage" | "encrypted" | "filter" | "warning";

/**
 * What `smbscope compare --format json` prints: captures, saved reports and ramps side by side. All times are integers in nanoseconds, points in time since the Unix epoch; null is unknown or, for a statistic, not supported by enough values. Cells stand in the order of `columns`; the first column is the base, and ratios are those of a column to it.
 */
export interface SmbscopeComparisonDocument {
  schema: "smbscope.compare/1";
  generator: Generator;
  /**
   * A title given by the user.
   */
  title: string | null;
  /**
   * What got slower, by how much and how sure that is: one for each column but the first.
   */
  answers: Compared[];
  /**
   * What is compared; the first is the base.
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
   * Commands that occur in any column, those that were waited for longest in any of them first. Expected waits of a command are an entry of their own.
   */
  commands: ComparedCommand[];
  /**
   * The commands divided by --by; null without it.
   */
  slices: ComparedSlices | null;
  /**
   * The ramps among the columns, load point by load point; the rest of the comparison is about one load point of each. Null where there is none.
   */
  ramps: Ramps | null;
  /**
   * Caveats, a sentence each.
   */
  notes: ComparisonNote[];
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
 * How a column compares with the baseline.
 */
export interface Compared {
  /**
   * Index of the column.
   */
  column: number;
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
 * What is compared.
 */
export interface ComparisonColumn {
  /**
   * Unique among the columns.
   */
  name: string;
  /**
   * The argument as given; of several runs, where the one comes from whose lists and pictures stand here.
   */
  source: string;
  /**
   * Runs that the column is made of. Of several, times and rates are geometric means, counts are means, and lists and pictures are those of the run whose mean response time is the middle one.
   */
  runs: number;
  /**
   * Title of the report.
   */
  title: string | null;
  /**
   * The expression that chose the exchanges of the report; null where it is about all of them.
   */
  filter: string | null;
  /**
   * Version of smbscope that made the report.
   */
  version: string;
  /**
   * Its captures.
   */
  captures: CaptureInfo[];
  /**
   * How far the figures cover the capture, in one sentence.
   */
  quality: string;
  overview: Overview;
  /**
   * Response times over time, as a report has them; null where they are not known.
   */
  heatmap: HeatMap | null;
  /**
   * The slowest commands, slowest first, at most 20.
   */
  slowest: SlowExchange[];
  /**
   * At most 20, those that were waited for longest; what is not listed is not added up.
   */
  files: FileEntity[];
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
 * A capture as a whole.
 */
export interface Overview {
  /**
   * First to last packet.
   */
  elapsed_ns: number | null;
  /**
   * Commands of every group.
   */
  commands: number;
  /**
   * Those of them that were timed.
   */
  timed: number;
  /**
   * Those of them that should have been timed and could not be.
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
   * Bytes read and written.
   */
  bytes_per_second: number | null;
  /**
   * Commands of every group.
   */
  commands_per_second: number | null;
  /**
   * What a job took, a whole pass of a workload that has an end: the mean; null where there is none.
   */
  job_elapsed_ns: number | null;
  /**
   * Connections by dialect, the most first; what was not seen after what was.
   */
  dialects: DialectCount[];
  /**
   * To the base; null in the base itself.
   */
  ratios: OverviewRatios | null;
}
/**
 * Connections of one dialect.
 */
export interface DialectCount {
  /**
   * Its name; null where the negotiation was not captured.
   */
  dialect: string | null;
  /**
   * Connections.
   */
  connections: number;
}
/**
 * What a capture as a whole did, as multiples of the base.
 */
export interface OverviewRatios {
  /**
   * Of `bytes_per_second`.
   */
  bytes_per_second: Ratio | null;
  /**
   * Of `commands_per_second`.
   */
  commands_per_second: Ratio | null;
  /**
   * Of `job_elapsed_ns`.
   */
  job_elapsed: Ratio | null;
}
/**
 * A value divided by the base's. Null where a value is missing or the base's is 0.
 */
export interface Ratio {
  /**
   * 2 is twice as much as the base.
   */
  value: number;
  /**
   * In which the ratio lies with a confidence of `level`; null with fewer than five runs of each column, and of single runs but for the headline.
   */
  interval: ConfidenceInterval | null;
  /**
   * What can be concluded; null where each column is a single run, but for the headline.
   */
  certainty: Certainty | null;
}
/**
 * A confidence interval.
 */
export interface ConfidenceInterval {
  /**
   * Its lower end.
   */
  low: number;
  /**
   * Its upper end.
   */
  high: number;
  /**
   * In how many of such intervals the truth lies, as 0.95.
   */
  level: number;
}
/**
 * What can be concluded from a ratio.
 */
export interface Certainty {
  answer: Conclusion;
  /**
   * Of what is undecided: runs of each column, in all, that would probably decide it.
   */
  repetitions_needed: number | null;
  /**
   * Of three or four runs of each column, which have no interval: the least and the greatest ratio.
   *
   * @minItems 2
   * @maxItems 2
   */
  range: [number, number] | null;
  /**
   * The smallest ratio above 1 that such data would have shown in four of five tries.
   */
  detectable: number | null;
  /**
   * Runs of the column that has fewer, or pairs of runs next to each other.
   */
  repetitions: number;
  scope: Scope;
  /**
   * Probability of at least this difference where there is none.
   */
  p_value: number | null;
  /**
   * A difference that is left when all rows of the table are judged together (Benjamini and Hochberg), or all figures of the headline (Holm).
   */
  shown: boolean;
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
 * The sum of the headline groups.
 */
export interface Headline {
  /**
   * One for each column; null where it has no command of them.
   */
  cells: (ComparisonCell | null)[];
}
/**
 * What a column says of a group or command.
 */
export interface ComparisonCell {
  /**
   * Commands, timed or not.
   */
  count: number;
  /**
   * Commands that entered the times.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  response_time: ResponseTime;
  /**
   * Response times by decade: below 1 µs, 10 µs, … 100 s, and the rest; all 0 where it is not known.
   *
   * @minItems 10
   * @maxItems 10
   */
  distribution: [number, number, number, number, number, number, number, number, number, number];
  /**
   * To the base; null in the base itself, and where the base has no cell.
   */
  ratios: Ratios | null;
}
/**
 * Figures of response times; see `times` of smbscope.report/1 for which percentiles exist when.
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
   * All of them together: what clients waited. Mean times number; as the mean is rounded, right to half a nanosecond a command.
   */
  sum: number | null;
}
/**
 * Figures as multiples of the base's.
 */
export interface Ratios {
  /**
   * Of `count`.
   */
  count: Ratio | null;
  /**
   * Of `mean`.
   */
  mean: Ratio | null;
  /**
   * Of `p50`.
   */
  p50: Ratio | null;
  /**
   * Of `p95`.
   */
  p95: Ratio | null;
  /**
   * Of `p99`.
   */
  p99: Ratio | null;
  /**
   * Of `max`.
   */
  max: Ratio | null;
  /**
   * Of `sum`.
   */
  sum: Ratio | null;
}
/**
 * A group.
 */
export interface ComparedGroup {
  /**
   * Its name.
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
   * The group that it is a part of, and is counted in as well.
   */
  part_of: "Other" | null;
  /**
   * Whether it counts in the headline.
   */
  headline: boolean;
  /**
   * One for each column; null where it has none.
   */
  cells: (ComparisonCell | null)[];
  /**
   * The cumulative distribution of response time in each column, as a report has it; empty where it is not known.
   */
  cumulative: [number, number][][];
}
/**
 * A command.
 */
export interface ComparedCommand {
  protocol: Protocol;
  /**
   * The specification's name, or the code in hexadecimal.
   */
  command: string;
  /**
   * The entry holds the expected waits of the command.
   */
  waiting: boolean;
  /**
   * Where commands of SMB1 and SMB2 that do the same stand in one entry: those of each column, subcommands of SMB1 among them. The entry has the name that SMB2 has for it. Null in any other entry.
   */
  members: string[][] | null;
  /**
   * One for each column; null where it has none.
   */
  cells: (ComparisonCell | null)[];
}
/**
 * The commands of each column divided by the same.
 */
export interface ComparedSlices {
  /**
   * By what.
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
  /**
   * Those with the longest total wait in any column first, at most 1,000.
   */
  entries: ComparedSlice[];
  /**
   * Slices that are not listed.
   */
  left_out: number;
}
/**
 * A slice.
 */
export interface ComparedSlice {
  /**
   * What its commands have in common; null is unknown.
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
   * One for each column; null where it has none, or does not list it.
   */
  cells: (ComparisonCell | null)[];
}
/**
 * Ramps side by side. Cells stand in the order of the columns of the comparison; a capture has none.
 */
export interface Ramps {
  /**
   * What is known of each ramp; null for what is no ramp.
   */
  columns: (Ramp | null)[];
  /**
   * Loads that any ramp has, ascending.
   */
  points: ComparedLoadPoint[];
}
/**
 * A ramp as a whole.
 */
export interface Ramp {
  /**
   * Users of the load point that stands in the rest of the comparison.
   */
  users: number;
  /**
   * What the users did.
   */
  workload: string;
  /**
   * `closed loop`, or the rate of an open one.
   */
  schedule: string;
  /**
   * As the document of the ramp has it.
   */
  overall_response_time_ns: number | null;
  /**
   * The highest load at which the criterion of the ramp holds; null where that is not known.
   */
  capacity: number | null;
}
/**
 * Load points of as many users.
 */
export interface ComparedLoadPoint {
  /**
   * Users at the same time.
   */
  users: number;
  /**
   * All groups of the headline. One for each column; null where it has no such load point.
   */
  total: (PointCell | null)[];
  /**
   * By group; *Other* is followed by its parts.
   */
  groups: PointGroup[];
  /**
   * What the load cost the servers, by metric; empty where nothing is known of their side.
   */
  server: PointMetric[];
}
/**
 * What a ramp says of a group at a load point.
 */
export interface PointCell {
  /**
   * Commands answered a second.
   */
  per_second: number | null;
  /**
   * That as a multiple of the first ramp's.
   */
  per_second_ratio: Ratio | null;
  /**
   * Bytes read and written a second; of Read those read, of Write those written, and null of other groups.
   */
  bytes_per_second: number | null;
  /**
   * That as a multiple of the first ramp's.
   */
  bytes_per_second_ratio: Ratio | null;
  /**
   * The least and the greatest of several runs of the column; null of a single one.
   */
  spread: RepetitionRange | null;
  /**
   * Commands, timed or not.
   */
  count: number;
  /**
   * Commands that entered the times.
   */
  timed: number;
  /**
   * Error responses.
   */
  errors: number;
  response_time: ResponseTime;
  /**
   * Response times by decade: below 1 µs, 10 µs, … 100 s, and the rest; all 0 where it is not known.
   *
   * @minItems 10
   * @maxItems 10
   */
  distribution: [number, number, number, number, number, number, number, number, number, number];
  /**
   * To the base; null in the base itself, and where the base has no cell.
   */
  ratios: Ratios | null;
}
/**
 * From where to where the values of several runs go.
 */
export interface RepetitionRange {
  /**
   * Of `per_second`.
   *
   * @minItems 2
   * @maxItems 2
   */
  per_second: [number, number] | null;
  /**
   * Of `bytes_per_second`.
   *
   * @minItems 2
   * @maxItems 2
   */
  bytes_per_second: [number, number] | null;
  /**
   * Of the mean response time.
   *
   * @minItems 2
   * @maxItems 2
   */
  mean: [number, number] | null;
  /**
   * Of the median.
   *
   * @minItems 2
   * @maxItems 2
   */
  p50: [number, number] | null;
  /**
   * Of the 95th percentile.
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
   * Its name.
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
   * The group that it is a part of, and is counted in as well.
   */
  part_of: "Other" | null;
  /**
   * One for each column; null where it has no such load point or group.
   */
  cells: (PointCell | null)[];
}
/**
 * A metric of the servers at a load point.
 */
export interface PointMetric {
  /**
   * What: `cpu`, `disk_busiest` …, as in the document of a run.
   */
  metric: string;
  /**
   * In what: `percent`, `bytes/s`, `bytes`, `1/s` or `count`.
   */
  unit: string;
  /**
   * One for each column; null where its server's side is not known.
   */
  cells: (MetricCell | null)[];
}
/**
 * A metric of one server at a load point.
 */
export interface MetricCell {
  /**
   * The average of the samples; of several runs, of their averages.
   */
  mean: number;
  /**
   * The greatest sample; of several runs, the average of theirs.
   */
  max: number;
  /**
   * The least and the greatest average of several runs; null of a single one.
   *
   * @minItems 2
   * @maxItems 2
   */
  mean_range: [number, number] | null;
  /**
   * The least and the greatest maximum of several runs.
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
   * Index of the column that it is about.
   */
  column: number;
  /**
   * A sentence.
   */
  text: string;
}
