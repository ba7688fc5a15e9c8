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
 * When operations begin.
 */
export type Schedule =
  | {
      loop: "closed";
      /**
       * What passes between two operations of a user.
       */
      think_ns: number;
    }
  | {
      loop: "open";
      /**
       * Operations a second: of all users together, or of each. With `rates` that of the first load point.
       */
      rate: number;
      /**
       * The rate is that of each user.
       */
      per_user: boolean;
      /**
       * Whether they are due at random, independent of each other, instead of at equal distances.
       */
      random: boolean;
    };
/**
 * How a run ended.
 */
export type Ended =
  | {
      how: "done";
    }
  | {
      how: "interrupted";
    }
  | {
      how: "stopped";
      /**
       * Which.
       */
      why: string;
    }
  | {
      how: "failed";
      /**
       * Why.
       */
      why: string;
    };
/**
 * By which schedule operations began.
 */
export type Pace =
  | {
      loop: "closed";
    }
  | {
      loop: "open";
      /**
       * Operations a second that were asked for.
       */
      rate: number;
      /**
       * Operations a second that were done.
       */
      rate_kept: number;
      /**
       * Operations that were due and did not begin until the end.
       */
      not_begun: number;
    };
/**
 * SMB1 (MS-CIFS, MS-SMB) or SMB2/3 (MS-SMB2).
 */
export type Protocol = "SMB1" | "SMB2";
/**
 * The capture of a run.
 */
export type Capture =
  | {
      state: "skipped";
      /**
       * Why, as a part of a sentence: "tcpdump is not installed".
       */
      why: string;
    }
  | {
      state: "made";
      /**
       * The file, where it was kept.
       */
      file: string | null;
      /**
       * How far it can be trusted, in one sentence.
       */
      quality: string;
      /**
       * Packets in it.
       */
      packets: number;
      /**
       * Packets that the capturing program says it lost.
       */
      dropped_packets: number;
      /**
       * Commands that the client counted.
       */
      client_commands: number;
      /**
       * Commands that the capture shows answered in the same time.
       */
      wire_commands: number;
      /**
       * Commands that were seen from both places and matched one by one; null where that was not tried.
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
 * What `smbscope bench --format json` prints and `run.json` of a run directory holds: a ramp of runs against a server. All times are integers in nanoseconds, points in time since the Unix epoch; null is unknown or, for a statistic, not supported by enough values.
 */
export interface SmbscopeBenchDocument {
  schema: "smbscope.bench/1";
  generator: Generator;
  /**
   * A title given by the user.
   */
  title: string | null;
  answer: Answer;
  target: Target;
  workload: Workload;
  settings: Settings;
  /**
   * When the first run began to be prepared.
   */
  started_ns: number;
  /**
   * What the runs were made on, name by name: `system`, `kernel`, `processor`, `cores`, `memory`, `server` …
   */
  environment: {
    [k: string]: string;
  };
  /**
   * The load points, in the order in which they were run.
   */
  runs: Run[];
  /**
   * The highest load at which a criterion holds; null where none was asked for.
   */
  capacity: Capacity | null;
  /**
   * The area under the curve of mean response time against users (or rates), divided by their range; at one load, the mean there. In an open loop response times count from when operations were due.
   */
  overall_response_time_ns: number | null;
  /**
   * What weakens the figures, a sentence each, the gravest first.
   */
  warnings: string[];
  /**
   * How it was started; null where that is not known.
   */
  invocation: Invocation | null;
  /**
   * The program whose launches these are; null for a load.
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
  next: Next[];
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
  lost_ns: Lost | null;
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
export interface Lost {
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
export interface Next {
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
 * The server, the share, and how they are spoken to. There is no place for a password.
 */
export interface Target {
  /**
   * As the user named it; `this machine` where the load was put on a local folder.
   */
  host: string;
  /**
   * TCP port; 0 for a local folder.
   */
  port: number;
  /**
   * Name of the share; the path of a local folder.
   */
  share: string;
  /**
   * Directory on the share below which everything happens.
   */
  directory: string | null;
  /**
   * The name that users log on with; null for guests and where there are several.
   */
  user: string | null;
  /**
   * As negotiated: `3.1.1`, `NT LM 0.12`; `local` for a local folder; null where no run got so far.
   */
  dialect: string | null;
  /**
   * As asked for: `off`, `on` or `required`.
   */
  signing: string;
  /**
   * As negotiated: `AES-128-CMAC`; null where messages are not signed.
   */
  signing_algorithm: string | null;
  /**
   * As asked for: `off` or `required`.
   */
  encryption: string;
  /**
   * As negotiated: `AES-128-GCM`; null where messages are not encrypted.
   */
  cipher: string | null;
}
/**
 * What users do.
 */
export interface Workload {
  /**
   * Its name.
   */
  name: string;
  /**
   * The file that it comes from; null for one that is built in.
   */
  source: string | null;
  /**
   * The values of its parameters, by name.
   */
  parameters: {
    [k: string]: string;
  };
  /**
   * What its random choices begin from.
   */
  seed: number | null;
  /**
   * The files that are there before the first run; null where there are none.
   */
  file_set: FileSet | null;
  /**
   * SHA-256 of the text that the workload is made from, in hexadecimal.
   */
  sha256: string | null;
  /**
   * The text that the workload is made from: TOML or a loadfile; null where it has more than 64 KiB.
   */
  definition: string | null;
}
/**
 * Files that were prepared.
 */
export interface FileSet {
  /**
   * How many.
   */
  files: number;
  /**
   * Their sizes added up.
   */
  bytes: number;
}
/**
 * How the load was put on the server.
 */
export interface Settings {
  schedule: Schedule;
  /**
   * The load points asked for; with `rates`, the users of all of them.
   */
  users: number[];
  /**
   * The load points asked for where they differ in their rate: operations a second of all users together.
   */
  rates: number[];
  /**
   * Length of the measured part of each, as asked for.
   */
  duration_ns: number;
  /**
   * Length of what goes before it and is not counted.
   */
  warmup_ns: number;
  /**
   * Threads of the client.
   */
  threads: number;
  /**
   * Sessions of each user.
   */
  sessions_per_user: number;
  /**
   * Connections of each session; more than one are SMB 3 multichannel.
   */
  connections_per_session: number;
  /**
   * The client asked for answers without a pause, instead of sleeping until they came.
   */
  busy_poll: boolean;
  /**
   * Sessions made a second; null where they were not held back.
   */
  connects_per_second: number | null;
  /**
   * Whole passes of each user at each load point, which end it; null where its time does.
   */
  passes: number | null;
  /**
   * A load point with a larger share of failed operations makes the run a failed one; null where none does.
   */
  max_errors_percent: number | null;
  /**
   * Whether a capture was asked for.
   */
  capture: boolean;
}
/**
 * One measured load point.
 */
export interface Run {
  /**
   * Users at the same time.
   */
  users: number;
  /**
   * When the measured part began.
   */
  started_ns: number;
  /**
   * Length of the measured part, as it was.
   */
  duration_ns: number;
  /**
   * Length of what went before it and is not counted.
   */
  warmup_ns: number;
  ended: Ended;
  pace: Pace;
  /**
   * Commands of every group that were answered in the measured part.
   */
  operations: number;
  /**
   * The same, a second.
   */
  operations_per_second: number;
  /**
   * Bytes read by answered commands.
   */
  bytes_read: number;
  /**
   * Bytes written by answered commands.
   */
  bytes_written: number;
  /**
   * Error responses by status.
   */
  errors: {
    [k: string]: number;
  };
  total: Measured;
  /**
   * Open loop: operations of the workload, from when they were due to their end. What users waited: headlines, curves and capacity go by it. Null in a closed loop.
   */
  due: Times | null;
  /**
   * Times in which commands were outstanding and the server answered none, in their order; of more than 100 the longest.
   *
   * @maxItems 100
   */
  stalls: Stall[];
  /**
   * The groups that occurred, in the order of the report; `Other` is followed by its parts.
   */
  groups: MeasuredGroup[];
  /**
   * By command, what it was used for, and group.
   */
  commands: Command[];
  /**
   * By operation of the workload, in the workload's order.
   */
  workload_operations: Operation[];
  /**
   * The measured part, piece by piece, in time order.
   */
  intervals: Interval[];
  connects: Times;
  /**
   * Commands that these connects took, and how often; they are in no other count.
   */
  connect_commands: {
    [k: string]: number;
  };
  /**
   * Sessions that could not be made or broke, by reason, and how often.
   */
  failures: {
    [k: string]: number;
  };
  /**
   * Commands that were outstanding when their connection ended.
   */
  unanswered: number;
  /**
   * What the client itself cost; null where not known.
   */
  client_cpu: ClientCpu | null;
  /**
   * The capture of the run; null where none was asked for.
   */
  capture: Capture | null;
  /**
   * The commands as the report of a capture has them.
   */
  counted: Counted | null;
  /**
   * Is anything slow, and whose is it, as far as the client knows; null where nothing was answered.
   */
  answer: Answer | null;
  /**
   * Whole passes of the workload; null where it has no end.
   */
  jobs: Jobs | null;
  /**
   * What the load cost the server; null where nothing is known of its side.
   */
  server: ServerLoad | null;
  /**
   * Commands that each user had outstanding together; null where the workload wants one at a time.
   */
  queue: Queue | null;
  /**
   * Scenarios that were too slow for their users; null where the workload has none or the loop is closed.
   */
  overload: Overload | null;
  /**
   * What each host did, where the load came from several; empty where it came from one process.
   */
  hosts: HostRun[];
}
/**
 * Response times of the same commands, seen from two places.
 */
export interface Measured {
  client: Times;
  /**
   * From a capture of the same exchanges; null where none was made.
   */
  wire: Times | null;
  /**
   * The client's time less the wire's, of each command that was seen from both places: what the client's own system adds. Null where commands were not matched one by one.
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
 * A time in which commands were outstanding and the server answered none: at least 200 ms, and 100 times the median response time of the run.
 */
export interface Stall {
  /**
   * When it began.
   */
  start_ns: number;
  /**
   * How long it was.
   */
  duration_ns: number;
}
/**
 * Commands of a group.
 */
export interface MeasuredGroup {
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
  part_of: string | null;
  /**
   * Whether it counts in the headline.
   */
  headline: boolean;
  /**
   * Commands that were answered.
   */
  operations: number;
  client: Times;
  /**
   * From a capture of the same exchanges; null where none was made.
   */
  wire: Times | null;
  /**
   * The client's time less the wire's, of each command that was seen from both places: what the client's own system adds. Null where commands were not matched one by one.
   */
  difference: Times | null;
}
/**
 * Commands of one kind.
 */
export interface Command {
  protocol: Protocol;
  /**
   * The specification's name.
   */
  command: string;
  /**
   * What it was used for.
   */
  subcommand: string | null;
  /**
   * Where it is counted.
   */
  group: string;
  /**
   * Commands that the client had an answer for.
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
   * From a capture of the same exchanges; null where none was made.
   */
  wire: Times | null;
  /**
   * The client's time less the wire's, of each command that was seen from both places: what the client's own system adds. Null where commands were not matched one by one.
   */
  difference: Times | null;
}
/**
 * Operations of the workload: one or several commands each.
 */
export interface Operation {
  /**
   * As the workload calls it.
   */
  operation: string;
  service_time: Times;
  /**
   * From the intended start to the end: what a user would have waited who keeps to the schedule. Null in a closed loop.
   */
  response_time: Times | null;
  /**
   * Operations that ended otherwise than expected, by status.
   */
  unexpected: {
    [k: string]: number;
  };
}
/**
 * A piece of a run.
 */
export interface Interval {
  /**
   * When it began.
   */
  start_ns: number;
  /**
   * Users with a session at its end.
   */
  users: number;
  /**
   * Commands answered.
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
   * The longest.
   */
  max: number | null;
}
/**
 * Processor time of the client in the measured part of a run.
 */
export interface ClientCpu {
  /**
   * In user mode.
   */
  user_ns: number;
  /**
   * In the kernel.
   */
  system_ns: number;
  /**
   * Both, in percent of one processor.
   */
  percent: number;
  /**
   * Both, for each command that was answered; null where threads asked for answers without a pause.
   */
  per_operation_ns: number | null;
  /**
   * The share of the time that the busiest thread was on a processor and did more than asking for answers, in percent.
   */
  busiest_percent: number;
  /**
   * The client, and not the server, was the limit: the figures say nothing about the server.
   */
  limited: boolean;
  /**
   * How late its threads woke up, the 99th percentile: response times include it.
   */
  late_p99_ns: number | null;
}
/**
 * The commands of a load point, as the report of a capture has them.
 */
export interface Counted {
  /**
   * By operation group; the entries add up, Other holds its parts.
   */
  groups: Group[];
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
  slices: Slices | null;
}
/**
 * Counts and times of a set of exchanges.
 */
export interface Group {
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
  parts: Group[];
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
     * In lower case; empty where the name has none.
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
export interface Jobs {
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
  list: Job[];
}
/**
 * A job that was completed.
 */
export interface Job {
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
 * Commands outstanding together.
 */
export interface Queue {
  /**
   * As many as the workload wants.
   */
  asked: number;
  /**
   * The most there were: the server's credits may allow no more.
   */
  reached: number;
}
/**
 * Scenarios of an open loop that were too slow, each counted once.
 */
export interface Overload {
  /**
   * Scenarios that were due in the measured part.
   */
  scenarios: number;
  /**
   * They began later than `late_ns` after they were due.
   */
  late: number;
  /**
   * They began in time, and took longer than `budget_ns` or had no end.
   */
  exceeded: number;
  /**
   * They did not begin until the end.
   */
  not_begun: number;
  /**
   * All three in percent of those that were due.
   */
  percent: number;
  /**
   * How late a scenario may begin.
   */
  late_ns: number;
  /**
   * How long it may take; null where it may take any time.
   */
  budget_ns: number | null;
}
/**
 * What one host did at a load point: the sums of all of them are those of the load point.
 */
export interface HostRun {
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
  client_cpu: ClientCpu | null;
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
 * The highest load at which a criterion holds.
 */
export interface Capacity {
  /**
   * As given: `p95(Read) < 20ms`.
   */
  criterion: string;
  /**
   * The load; null where the criterion holds at none that was tried.
   */
  users: number | null;
  /**
   * Its rate, operations a second, where loads differ in that; otherwise null.
   */
  rate: number | null;
  /**
   * The largest load near it at which the criterion held in all of three tries: a search on another day finds no less; null where none is known.
   */
  always: number | null;
  /**
   * The smallest load near it at which it held in none of three; null where none is known.
   */
  never: number | null;
  /**
   * The loads tried, in the order in which they were.
   */
  tried: Tried[];
}
/**
 * A load at which the criterion was looked at.
 */
export interface Tried {
  /**
   * The load.
   */
  users: number;
  /**
   * Its rate, operations a second, where loads differ in that; otherwise null.
   */
  rate: number | null;
  /**
   * What was found there, in words: `18.3 ms`; null where there were too few values.
   */
  found: string | null;
  /**
   * Whether the criterion holds.
   */
  holds: boolean;
}
/**
 * How a ramp was started.
 */
export interface Invocation {
  /**
   * The command line, quoted for a shell, without load points, schedule and results. There is no place for a password.
   */
  command: string;
  /**
   * The run directory; null where the run was not kept.
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
