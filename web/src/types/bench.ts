// Made from schema/smbscope.bench-1.schema.json by scripts/types.mjs; do not edit.

/**
 * Party that has to act.
 */
export type Culprit = "server" | "network" | "client" | "application" | "capture" | "nothing";
/**
 * Reliability of an explanation.
 */
export type Confidence = "low" | "medium" | "high";
/**
 * Start of operations.
 */
export type LoopModel =
  | {
      loop: "closed";
      /**
       * Think time between two operations of a user.
       */
      think_ns: number;
    }
  | {
      loop: "open";
      /**
       * Operations per second, of all users together or of each. With `rates`, of the first load point.
       */
      rate: number;
      /**
       * `rate` is per user.
       */
      per_user: boolean;
      /**
       * Intended times are random and independent (Poisson) instead of evenly spaced.
       */
      random: boolean;
    };
/**
 * Outcome of a run.
 */
export type BenchRunOutcome =
  | {
      how: "done";
    }
  | {
      how: "interrupted";
    }
  | {
      how: "stopped";
      /**
       * The condition.
       */
      why: string;
    }
  | {
      how: "failed";
      /**
       * Reason.
       */
      why: string;
    };
/**
 * Schedule of operations, and how far it was kept.
 */
export type ScheduleAdherence =
  | {
      loop: "closed";
    }
  | {
      loop: "open";
      /**
       * Requested operations per second.
       */
      rate: number;
      /**
       * Operations per second done.
       */
      rate_kept: number;
      /**
       * Operations that were due and never started.
       */
      not_begun: number;
    };
/**
 * SMB1 (MS-CIFS, MS-SMB) or SMB2/3 (MS-SMB2).
 */
export type Protocol = "SMB1" | "SMB2";
/**
 * Packet capture of a run.
 */
export type RunCapture =
  | {
      state: "skipped";
      /**
       * Reason, as part of a sentence: "tcpdump is not installed".
       */
      why: string;
    }
  | {
      state: "made";
      /**
       * File name, if the file was kept.
       */
      file: string | null;
      /**
       * Quality of the capture in one sentence.
       */
      quality: string;
      /**
       * Captured packets.
       */
      packets: number;
      /**
       * Packets dropped, as reported by the capturing program.
       */
      dropped_packets: number;
      /**
       * Commands counted by the client.
       */
      client_commands: number;
      /**
       * Answered commands in the capture in the same time.
       */
      wire_commands: number;
      /**
       * Commands matched one by one between client and capture. Null if not tried.
       */
      matched: number | null;
      /**
       * Capture of the same commands at the server. Null if packets were captured at the client only.
       */
      server: ServerCapture | null;
    };
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
 * State of the caches when a program is launched.
 */
export type Caches = "warm" | "cold";

/**
 * Ramp of runs against a server, as `smbscope bench --format json` prints it and `run.json` holds it. Times are integers in nanoseconds, timestamps count from the Unix epoch. Null is unknown or, for a statistic, based on too few values.
 */
export interface SmbscopeBenchDocument {
  schema: "smbscope.bench/1";
  generator: Generator;
  /**
   * Title from the command line.
   */
  title: string | null;
  answer: Answer;
  target: TargetEntry;
  workload: WorkloadEntry;
  settings: RampSettings;
  /**
   * Start of the preparation of the first run.
   */
  started_ns: number;
  /**
   * Test environment by name: `system`, `kernel`, `processor`, `cores`, `memory`, `server` …
   */
  environment: {
    [k: string]: string;
  };
  /**
   * Load points in the order they ran.
   */
  runs: BenchRun[];
  /**
   * Highest load that meets the criterion. Null if no criterion was given.
   */
  capacity: CapacityEntry | null;
  /**
   * Area under the curve of mean response time over users (or rates), divided by their range; with one load point, its mean. In an open loop, response times count from the intended start.
   */
  overall_response_time_ns: number | null;
  /**
   * Limits of the figures, one sentence each, the most serious first.
   */
  warnings: string[];
  /**
   * Command that started the ramp. Null if unknown.
   */
  invocation: Invocation | null;
  /**
   * Launched program. Null for a load.
   */
  launch: Launch | null;
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
 * Server, share and protocol settings. Holds no password.
 */
export interface TargetEntry {
  /**
   * Host as given on the command line; `this machine` for a local folder.
   */
  host: string;
  /**
   * TCP port; 0 for a local folder.
   */
  port: number;
  /**
   * Share name, or path of the local folder.
   */
  share: string;
  /**
   * Working directory on the share.
   */
  directory: string | null;
  /**
   * User name for logons. Null for guests and for several users.
   */
  user: string | null;
  /**
   * Negotiated dialect: `3.1.1`, `NT LM 0.12`; `local` for a local folder. Null if no run negotiated one.
   */
  dialect: string | null;
  /**
   * Requested signing: `off`, `on` or `required`.
   */
  signing: string;
  /**
   * Negotiated signing algorithm, such as `AES-128-CMAC`. Null if messages are not signed.
   */
  signing_algorithm: string | null;
  /**
   * Requested encryption: `off` or `required`.
   */
  encryption: string;
  /**
   * Negotiated cipher, such as `AES-128-GCM`. Null if messages are not encrypted.
   */
  cipher: string | null;
}
/**
 * Workload of the users.
 */
export interface WorkloadEntry {
  /**
   * Name of the workload.
   */
  name: string;
  /**
   * File name. Null for a built-in workload.
   */
  source: string | null;
  /**
   * Parameter values by name.
   */
  parameters: {
    [k: string]: string;
  };
  /**
   * Seed of the random choices.
   */
  seed: number | null;
  /**
   * Files prepared before the first run. Null if the workload needs none.
   */
  file_set: FileSetTotals | null;
  /**
   * SHA-256 of the definition, in hexadecimal.
   */
  sha256: string | null;
  /**
   * Text of the definition, TOML or a loadfile. Null if longer than 64 KiB.
   */
  definition: string | null;
}
/**
 * Prepared files.
 */
export interface FileSetTotals {
  /**
   * Number of files.
   */
  files: number;
  /**
   * Total size.
   */
  bytes: number;
}
/**
 * Load points, schedule and client options.
 */
export interface RampSettings {
  schedule: LoopModel;
  /**
   * Requested load points in users; with `rates`, the number of users at every one.
   */
  users: number[];
  /**
   * Requested load points in operations per second of all users together. Empty if load points differ in users.
   */
  rates: number[];
  /**
   * Requested duration of each measurement.
   */
  duration_ns: number;
  /**
   * Requested warm-up before it, not counted.
   */
  warmup_ns: number;
  /**
   * Client threads.
   */
  threads: number;
  /**
   * Sessions per user.
   */
  sessions_per_user: number;
  /**
   * Connections per session; more than one is SMB 3 multichannel.
   */
  connections_per_session: number;
  /**
   * The client polled its sockets instead of sleeping.
   */
  busy_poll: boolean;
  /**
   * Limit for new sessions per second. Null if unlimited.
   */
  connects_per_second: number | null;
  /**
   * Passes of each user that end a load point. Null if its duration ends it.
   */
  passes: number | null;
  /**
   * Percentage of failed operations above which the run fails. Null if it never does.
   */
  max_errors_percent: number | null;
  /**
   * A packet capture was requested.
   */
  capture: boolean;
}
/**
 * One measured load point.
 */
export interface BenchRun {
  /**
   * Concurrent users.
   */
  users: number;
  /**
   * Start of the measurement.
   */
  started_ns: number;
  /**
   * Actual duration of the measurement.
   */
  duration_ns: number;
  /**
   * Actual warm-up before it, not counted.
   */
  warmup_ns: number;
  ended: BenchRunOutcome;
  pace: ScheduleAdherence;
  /**
   * Commands of all groups answered during the measurement.
   */
  operations: number;
  /**
   * `operations` per second.
   */
  operations_per_second: number;
  /**
   * Bytes read.
   */
  bytes_read: number;
  /**
   * Bytes written.
   */
  bytes_written: number;
  /**
   * Error responses by status.
   */
  errors: {
    [k: string]: number;
  };
  total: ClientWireTimes;
  /**
   * Open loop: time from the intended start of an operation to its end, the users' wait. Headlines, curves and capacity use it. Null in a closed loop.
   */
  due: Times | null;
  /**
   * Stalls of the server in time order; the longest 100.
   *
   * @maxItems 100
   */
  stalls: StallEntry[];
  /**
   * Groups that occurred, in report order; `Other` is followed by its parts.
   */
  groups: MeasuredGroup[];
  /**
   * Commands, by subcommand and group.
   */
  commands: MeasuredCommand[];
  /**
   * Operations in the order of the workload.
   */
  workload_operations: OperationEntry[];
  /**
   * Measurement by interval, in time order.
   */
  intervals: IntervalEntry[];
  connects: Times;
  /**
   * Commands of these connects; counted nowhere else.
   */
  connect_commands: {
    [k: string]: number;
  };
  /**
   * Failed sessions by reason.
   */
  failures: {
    [k: string]: number;
  };
  /**
   * Commands outstanding when their connection ended.
   */
  unanswered: number;
  /**
   * Client processor time. Null if unknown.
   */
  client_cpu: ClientCpuEntry | null;
  /**
   * Packet capture of the run. Null if not requested.
   */
  capture: RunCapture | null;
  /**
   * The statistics that a capture report has.
   */
  counted: LoadPointBreakdown | null;
  /**
   * Answer derived from the client's measurements. Null if no command was answered.
   */
  answer: Answer | null;
  /**
   * Complete passes. Null for a workload without an end.
   */
  jobs: JobStatistics | null;
  /**
   * Server metrics. Null if unknown.
   */
  server: ServerLoad | null;
  /**
   * Queue depth per user. Null if the workload issues one command at a time.
   */
  queue: QueueDepthEntry | null;
  /**
   * Scenarios that were too slow. Null without scenarios and in a closed loop.
   */
  overload: OverloadEntry | null;
  /**
   * Results per load host. Empty if one process made the load.
   */
  hosts: LoadHostEntry[];
}
/**
 * Response times of the same commands, measured in the client and on the wire.
 */
export interface ClientWireTimes {
  client: Times;
  /**
   * From a packet capture of the same exchanges. Null without one.
   */
  wire: Times | null;
  /**
   * Client time minus wire time per command: the overhead of the client's system. Null if commands were not matched one by one.
   */
  difference: Times | null;
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
 * Time with outstanding commands and no response: at least 200 ms, and 100 times the median response time of the run.
 */
export interface StallEntry {
  /**
   * Start.
   */
  start_ns: number;
  /**
   * Duration.
   */
  duration_ns: number;
}
/**
 * A group of commands.
 */
export interface MeasuredGroup {
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
  part_of: string | null;
  /**
   * Counts in the headline figures.
   */
  headline: boolean;
  /**
   * Answered commands.
   */
  operations: number;
  client: Times;
  /**
   * From a packet capture of the same exchanges. Null without one.
   */
  wire: Times | null;
  /**
   * Client time minus wire time per command: the overhead of the client's system. Null if commands were not matched one by one.
   */
  difference: Times | null;
}
/**
 * Commands of one name, subcommand and group.
 */
export interface MeasuredCommand {
  protocol: Protocol;
  /**
   * Name in the specification.
   */
  command: string;
  /**
   * Subcommand: FSCTL, information class or transaction.
   */
  subcommand: string | null;
  /**
   * Group of the command.
   */
  group: string;
  /**
   * Answered commands.
   */
  count: number;
  /**
   * Error responses by status.
   */
  errors: {
    [k: string]: number;
  };
  client: Times;
  /**
   * From a packet capture of the same exchanges. Null without one.
   */
  wire: Times | null;
  /**
   * Client time minus wire time per command: the overhead of the client's system. Null if commands were not matched one by one.
   */
  difference: Times | null;
}
/**
 * An operation of the workload: one or more commands.
 */
export interface OperationEntry {
  /**
   * Name in the workload.
   */
  operation: string;
  service_time: Times;
  /**
   * Time from the intended start to the end, the user's wait. Null in a closed loop.
   */
  response_time: Times | null;
  /**
   * Operations with an unexpected status, by status.
   */
  unexpected: {
    [k: string]: number;
  };
}
/**
 * An interval of a run.
 */
export interface IntervalEntry {
  /**
   * Start.
   */
  start_ns: number;
  /**
   * Users with a session at the end of the interval.
   */
  users: number;
  /**
   * Answered commands.
   */
  operations: number;
  /**
   * Error responses.
   */
  errors: number;
  /**
   * Bytes read.
   */
  bytes_read: number;
  /**
   * Bytes written.
   */
  bytes_written: number;
  /**
   * Median response time.
   */
  p50: number | null;
  /**
   * 95th percentile.
   */
  p95: number | null;
  /**
   * Longest response time.
   */
  max: number | null;
}
/**
 * Processor time of the client during a measurement.
 */
export interface ClientCpuEntry {
  /**
   * User mode.
   */
  user_ns: number;
  /**
   * Kernel mode.
   */
  system_ns: number;
  /**
   * Both, as a percentage of one processor.
   */
  percent: number;
  /**
   * Both, per answered command. Null when polling.
   */
  per_operation_ns: number | null;
  /**
   * Processor time of the busiest thread, without polling, as a percentage of the measurement.
   */
  busiest_percent: number;
  /**
   * The client was the bottleneck, so the figures say nothing about the server.
   */
  limited: boolean;
  /**
   * 99th percentile of the wake-up delay of client threads, which response times include.
   */
  late_p99_ns: number | null;
  /**
   * Longest wake-up delay: a second or more if the client itself was stopped.
   */
  late_max_ns: number | null;
}
/**
 * Capture at the server's end of the link.
 */
export interface ServerCapture {
  /**
   * File name, in the run directory.
   */
  file: string;
  /**
   * Packets dropped, as reported by the capturing program.
   */
  dropped_packets: number;
}
/**
 * Commands of a load point, in the form of a capture report.
 */
export interface LoadPointBreakdown {
  /**
   * By operation group. The entries add up; `Other` is followed by its parts.
   */
  groups: GroupEntry[];
  heatmap: HeatMap;
  concurrency: Concurrency[];
  /**
   * The slowest commands, slowest first, at most 20.
   */
  slowest: SlowExchange[];
  /**
   * Files with the longest response times in total, at most 100. The rest is not summed up.
   */
  files: FileEntity[];
  /**
   * Users with the longest response times in total, at most 100. The rest is not summed up.
   */
  users: UserEntity[];
  /**
   * Commands grouped by `--by`. Null without it.
   */
  slices: SliceListing | null;
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
/**
 * Complete passes of a workload that has an end. A job lasts from its first request to its last response. It counts if it started during the measurement and completed.
 */
export interface JobStatistics {
  elapsed: Times;
  /**
   * Jobs that started during the measurement and did not complete because the load point or their session ended.
   */
  unfinished: number;
  /**
   * Total duration of all completed jobs.
   */
  elapsed_sum_ns: number;
  /**
   * Part of that total with at least one outstanding command: the wait for the server. Null if the commands were not observed.
   */
  waited_sum_ns: number | null;
  /**
   * Files opened by completed jobs.
   */
  files: number;
  /**
   * Bytes read by completed jobs.
   */
  bytes_read: number;
  /**
   * Bytes written by completed jobs.
   */
  bytes_written: number;
  /**
   * Completed jobs by start time; the first 1,000.
   *
   * @maxItems 1000
   */
  list: JobEntry[];
}
/**
 * A completed job.
 */
export interface JobEntry {
  /**
   * Session number, from 1, across all users.
   */
  session: number;
  /**
   * Time of the first request.
   */
  started_ns: number;
  /**
   * Time from the first request to the last response, including think time.
   */
  elapsed_ns: number;
  /**
   * Part of it with at least one outstanding command. Null if the commands were not observed.
   */
  waited_ns: number | null;
  /**
   * Files opened.
   */
  files: number;
  /**
   * Bytes read.
   */
  bytes_read: number;
  /**
   * Bytes written.
   */
  bytes_written: number;
}
/**
 * Server metrics, sampled every second.
 */
export interface ServerLoad {
  /**
   * Source: `this machine`, or the URL of an exporter.
   */
  source: string;
  /**
   * Sample times. A sample covers the second before it.
   */
  times_ns: number[];
  /**
   * Metrics, each with one value per sample time.
   */
  metrics: ServerSeries[];
}
/**
 * A metric of the server.
 */
export interface ServerSeries {
  /**
   * Name: `cpu`, `cpu_busiest`, `disk_queue`, `samba_read`, `samba_read_time` …
   */
  metric: string;
  /**
   * Unit: `percent`, `bytes/s`, `bytes`, `1/s`, `ns` or `count`.
   */
  unit: string;
  /**
   * Mean of the samples. For times (`ns`), the mean of all operations.
   */
  mean: number;
  /**
   * Largest sample.
   */
  max: number;
  /**
   * Value at each sample time. Null if missing.
   */
  values: (number | null)[];
}
/**
 * Queue depth.
 */
export interface QueueDepthEntry {
  /**
   * Depth requested by the workload.
   */
  asked: number;
  /**
   * Highest depth reached; credits may limit it.
   */
  reached: number;
}
/**
 * Scenarios of an open loop that were too slow. Each counts once.
 */
export interface OverloadEntry {
  /**
   * Scenarios due during the measurement.
   */
  scenarios: number;
  /**
   * Started more than `late_ns` late.
   */
  late: number;
  /**
   * Started in time, and took longer than `budget_ns` or did not finish.
   */
  exceeded: number;
  /**
   * Never started.
   */
  not_begun: number;
  /**
   * Percentage of scenarios that were late, exceeded or not begun.
   */
  percent: number;
  /**
   * Allowed delay of the start.
   */
  late_ns: number;
  /**
   * Allowed duration. Null if unlimited.
   */
  budget_ns: number | null;
}
/**
 * Results of one load host. The hosts add up to the load point.
 */
export interface LoadHostEntry {
  /**
   * Host name as reported by the host.
   */
  host: string;
  /**
   * Sessions assigned to the host: users times sessions per user.
   */
  sessions: number;
  /**
   * Answered commands of all groups during the measurement.
   */
  operations: number;
  /**
   * Error responses among them.
   */
  errors: number;
  /**
   * Bytes read by answered commands.
   */
  bytes_read: number;
  /**
   * Bytes written by answered commands.
   */
  bytes_written: number;
  times: Times;
  /**
   * Client processor time. Null if the host was lost.
   */
  client_cpu: ClientCpuEntry | null;
  /**
   * Clock offset from the driver; positive if the host's clock is ahead.
   */
  clock_ahead_ns: number;
  /**
   * Maximum error of that offset: half of the round-trip time of the measurement.
   */
  clock_bound_ns: number;
  /**
   * Delay of the host's start because the start order arrived late; 0 if it arrived in time.
   */
  late_ns: number;
  /**
   * Loss of the host. Null if it was not lost.
   */
  lost: LostHost | null;
}
/**
 * A lost host. Its measurements are not included in any figure.
 */
export interface LostHost {
  /**
   * Time of detection.
   */
  at_ns: number;
  /**
   * Reason.
   */
  why: string;
  /**
   * Commands reported up to then, including the warm-up.
   */
  operations: number;
}
/**
 * Highest load that meets a criterion.
 */
export interface CapacityEntry {
  /**
   * Criterion as given, such as `p95(Read) < 20ms`.
   */
  criterion: string;
  /**
   * Users at that load. Null if no load meets the criterion.
   */
  users: number | null;
  /**
   * Operations per second at that load. Null if load points differ in users.
   */
  rate: number | null;
  /**
   * Highest nearby load that met the criterion in all three tries. Null if unknown.
   */
  always: number | null;
  /**
   * Lowest nearby load that met it in none of three tries. Null if unknown.
   */
  never: number | null;
  /**
   * Loads in the order they were tried.
   */
  tried: CapacityTrialEntry[];
}
/**
 * A load tested against the criterion.
 */
export interface CapacityTrialEntry {
  /**
   * Users.
   */
  users: number;
  /**
   * Operations per second. Null if load points differ in users.
   */
  rate: number | null;
  /**
   * Measured value as text, such as `18.3 ms`. Null for too few values.
   */
  found: string | null;
  /**
   * The criterion holds.
   */
  holds: boolean;
}
/**
 * Command that started a ramp.
 */
export interface Invocation {
  /**
   * Command line, quoted for a shell, without load points, schedule, output options or password.
   */
  command: string;
  /**
   * Run directory. Null if the run was not kept.
   */
  directory: string | null;
}
/**
 * A program launched several times. Its launches are the jobs of the only load point.
 */
export interface Launch {
  /**
   * Program name without its path.
   */
  program: string;
  /**
   * Command and arguments. `{folder}` stands for the folder with the program's files, `{local}` for an empty one.
   */
  command: string[];
  /**
   * Condition that ended a launch: `a window with "Inbox"`.
   */
  until: string;
  caches: Caches;
  /**
   * Program that mounted the share. Null if none was mounted.
   */
  mounted_by: string | null;
}
