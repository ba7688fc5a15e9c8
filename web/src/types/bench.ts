// Made from schema/smbscope.bench-1.schema.json by scripts/types.mjs; do not edit.

/**
 * Who has to act.
 */
export type Culprit = "server" | "network" | "client" | "application" | "capture" | "nothing";
/**
 * How sure a cause is.
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
 * How a run ended.
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
    };
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
 * What is at hand when a program is launched.
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
   * Packets were to be captured.
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
   * The same, per second.
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
   * Answer from what the client measured. Null if no command was answered.
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
}
/**
 * The commands of a load point, as the report of a capture has them.
 */
export interface LoadPointBreakdown {
  /**
   * By operation group; the entries add up, Other holds its parts.
   */
  groups: GroupEntry[];
  heatmap: HeatMap;
  concurrency: Concurrency[];
  /**
   * The slowest commands, slowest first, at most 20.
   */
  slowest: SlowExchange[];
  /**
   * At most 100, those that were waited for longest; what is not listed is not added up.
   */
  files: FileEntity[];
  /**
   * At most 100, those that waited longest; what is not listed is not added up.
   */
  users: UserEntity[];
  /**
   * The commands divided by --by; null without it.
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
/**
 * Whole passes of a workload that has an end. A job lasts from its first request to its last response. It counts where it began in the measured part and was completed.
 */
export interface JobStatistics {
  elapsed: Times;
  /**
   * Jobs that began in the measured part and were not completed: the load point or their session ended before.
   */
  unfinished: number;
  /**
   * The elapsed times of all completed jobs, added up.
   */
  elapsed_sum_ns: number;
  /**
   * The part of them in which at least one command of the job was outstanding: what users waited for the server. Null where nobody saw the commands.
   */
  waited_sum_ns: number | null;
  /**
   * Files that completed jobs opened.
   */
  files: number;
  /**
   * Bytes that they read.
   */
  bytes_read: number;
  /**
   * Bytes that they wrote.
   */
  bytes_written: number;
  /**
   * Those that were completed, in the order in which they began; the first 1,000.
   *
   * @maxItems 1000
   */
  list: JobEntry[];
}
/**
 * A job that was completed.
 */
export interface JobEntry {
  /**
   * The session that did it, from 1 over all sessions of all users.
   */
  session: number;
  /**
   * Its first request.
   */
  started_ns: number;
  /**
   * From there to its last response, think time between its operations included.
   */
  elapsed_ns: number;
  /**
   * The part of it in which at least one of its commands was outstanding; null where nobody saw them.
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
 * Metrics of the server, a sample a second.
 */
export interface ServerLoad {
  /**
   * Where they come from: `this machine`, or the URL of an exporter.
   */
  source: string;
  /**
   * When the samples were taken; each is about the second before.
   */
  times_ns: number[];
  /**
   * Each metric.
   */
  metrics: ServerSeries[];
}
/**
 * A metric of the server.
 */
export interface ServerSeries {
  /**
   * What: `cpu`, `cpu_busiest`, `disk_queue`, `samba_read`, `samba_read_time` …
   */
  metric: string;
  /**
   * In what: `percent`, `bytes/s`, `bytes`, `1/s`, `ns` or `count`.
   */
  unit: string;
  /**
   * The average of the samples; of times (`ns`) that of all operations.
   */
  mean: number;
  /**
   * The greatest sample.
   */
  max: number;
  /**
   * A value for each time; null where there is none.
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
 * What one host did at a load point: the sums of all of them are those of the load point.
 */
export interface LoadHostEntry {
  /**
   * As the host calls itself.
   */
  host: string;
  /**
   * Sessions that it was to have: users, times the sessions of each.
   */
  sessions: number;
  /**
   * Commands of every group that were answered in the measured part.
   */
  operations: number;
  /**
   * Those of them that were answered with an error status.
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
   * What the load cost the host; null where it was lost.
   */
  client_cpu: ClientCpuEntry | null;
  /**
   * By how much its clock was ahead of that of the driver; behind, where it is negative.
   */
  clock_ahead_ns: number;
  /**
   * The true offset differs from that by no more than this: half of the round trip by which it was measured.
   */
  clock_bound_ns: number;
  /**
   * How late its users began, because the order to begin came too late; 0 where it came in time.
   */
  late_ns: number;
  /**
   * The host was lost; null where it was not.
   */
  lost: LostHost | null;
}
/**
 * A host that was lost: what it had measured is in no figure.
 */
export interface LostHost {
  /**
   * When that was noticed.
   */
  at_ns: number;
  /**
   * Why it is taken for lost.
   */
  why: string;
  /**
   * Commands that it had told of by then, those of the warm-up included.
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
 * A program that was launched again and again; its launches are the jobs of the only load point.
 */
export interface Launch {
  /**
   * The program, without its path.
   */
  program: string;
  /**
   * The command, word by word; `{folder}` stands for the folder with its files, `{local}` for an empty one.
   */
  command: string[];
  /**
   * What ended a launch, in words: `a window with "Inbox"`.
   */
  until: string;
  caches: Caches;
  /**
   * The program that mounted the share; null where none was mounted.
   */
  mounted_by: string | null;
}
