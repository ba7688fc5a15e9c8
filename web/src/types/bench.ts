// Made from schema/smbscope.bench-1.schema.json by scripts/types.mjs; do not edit.

export type Count = number;
export type Positive = number;
export type Ended =
  | {
      how: "done" | "interrupted";
    }
  | {
      how: "stopped" | "failed";
      why: string;
    };
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
      rate_kept: Fraction;
      not_begun: Count;
    };
export type Fraction = number;
export type Nanoseconds = number | null;
export type Capture =
  | {
      state: "skipped";
      /**
       * As a part of a sentence.
       */
      why: string;
    }
  | {
      state: "made";
      /**
       * Where it was kept.
       */
      file: string | null;
      /**
       * How far it can be trusted, in one sentence.
       */
      quality: string;
      packets: Count;
      dropped_packets: Count;
      client_commands: Count;
      wire_commands: Count;
      /**
       * Commands that were seen from both places and matched one by one; null where that was not tried.
       */
      matched: number | null;
    };

/**
 * What `smbscope bench --format json` prints and `run.json` of a run directory holds: a ramp of runs against a server. All times are integers in nanoseconds, points in time since the Unix epoch; null is unknown or, for a statistic, not supported by enough values.
 */
export interface SmbscopeBenchDocument {
  schema: "smbscope.bench/1";
  generator: {
    name: "smbscope";
    version: string;
  };
  title: string | null;
  target: {
    host: string;
    port: number;
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
     * As negotiated: `3.1.1`, `NT LM 0.12`; null where no run got so far.
     */
    dialect: string | null;
    /**
     * As asked for: off, on or required.
     */
    signing: string;
    /**
     * As negotiated; null where messages are not signed.
     */
    signing_algorithm: string | null;
    /**
     * As asked for: off or required.
     */
    encryption: string;
    /**
     * As negotiated; null where messages are not encrypted.
     */
    cipher: string | null;
  };
  workload: {
    name: string;
    /**
     * The file that it comes from; null for one that is built in.
     */
    source: string | null;
    /**
     * What its random choices begin from.
     */
    seed: number | null;
    /**
     * The files that are there before the first run; null where there are none.
     */
    file_set: {
      files: Count;
      bytes: Count;
    } | null;
    /**
     * SHA-256 of the text that the workload is made from, in hexadecimal; absent or null in documents of older versions.
     */
    sha256?: string | null;
    /**
     * The text that the workload is made from: TOML or a loadfile; absent or null where it has more than 64 KiB, and in documents of older versions.
     */
    definition?: string | null;
  };
  /**
   * How the load was put on the server.
   */
  settings: {
    /**
     * When operations begin: in a closed loop when the user's operation before is done, in an open one when they are due.
     */
    schedule:
      | {
          loop: "closed";
          think_ns: Count;
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
     * The load points asked for; with `rates`, the users of all of them.
     */
    users: Positive[];
    /**
     * The load points asked for where they differ in their rate: operations a second of all users together.
     */
    rates: Positive[];
    duration_ns: Count;
    warmup_ns: Count;
    threads: Positive;
    sessions_per_user: Positive;
    connections_per_session: Positive;
    /**
     * The client asked for answers without a pause, instead of sleeping until they came.
     */
    busy_poll: boolean;
    /**
     * Sessions made a second; null where they were not held back.
     */
    connects_per_second: number | null;
    /**
     * Whether a capture was asked for.
     */
    capture: boolean;
  };
  started_ns: number;
  /**
   * What the runs were made on, name by name: system, kernel, processor, cores, memory, server.
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
  capacity: {
    /**
     * As given: `p95(Read) < 20ms`.
     */
    criterion: string;
    /**
     * Null where it holds at no load that was tried.
     */
    users: number | null;
    /**
     * Its rate, operations a second, where loads differ in that; otherwise null.
     */
    rate: number | null;
    /**
     * The loads at which it was looked at, in the order in which they were.
     */
    tried: {
      users: Positive;
      /**
       * Its rate, operations a second, where loads differ in that; otherwise null.
       */
      rate: number | null;
      /**
       * What was found there, in words; null where there were too few values.
       */
      found: string | null;
      holds: boolean;
    }[];
  } | null;
  /**
   * The area under the curve of mean response time against users (or rates), divided by their range; at one load, the mean there. In an open loop response times count from when operations were due.
   */
  overall_response_time_ns: number | null;
  /**
   * What weakens the figures, a sentence each, the gravest first.
   */
  warnings: string[];
}
export interface Run {
  users: Positive;
  /**
   * When the measured part began.
   */
  started_ns: number;
  duration_ns: Count;
  warmup_ns: Count;
  ended: Ended;
  pace: Pace;
  operations: Count;
  operations_per_second: Fraction;
  bytes_read: Count;
  bytes_written: Count;
  errors: ByStatus;
  total: Measured;
  /**
   * Open loop: operations of the workload, from when they were due to their end; headlines, curves and capacity go by it. Null in a closed loop.
   */
  due: Times | null;
  /**
   * Times in which commands were outstanding and the server answered none, at least 200 ms and 100 times the median response time, in their order; of more than 100 the longest.
   *
   * @maxItems 100
   */
  stalls: Stall[];
  /**
   * The groups that occurred, in the order of the report; `Other` is followed by its parts.
   */
  groups: Group[];
  /**
   * By command, what it was used for, and group.
   */
  commands: Command[];
  /**
   * In the workload's order.
   */
  workload_operations: Operation[];
  /**
   * The measured part, piece by piece, in time order.
   */
  intervals: Interval[];
  connects: Times;
  /**
   * Sessions that could not be made or broke, by reason in words.
   */
  failures: {
    [k: string]: Positive;
  };
  unanswered: Count;
  /**
   * Null where not known.
   */
  client_cpu: ClientCpu | null;
  /**
   * Null where none was asked for.
   */
  capture: Capture | null;
}
export interface ByStatus {
  [k: string]: Positive;
}
/**
 * Response times of the same commands, seen from two places.
 */
export interface Measured {
  client: Times;
  /**
   * Measured from a capture of the same exchanges; null where none was made.
   */
  wire: Times | null;
  /**
   * The client's time less the wire's, of each command that was seen from both places: what the client's own system adds. Null where commands were not matched one by one.
   */
  difference: Times | null;
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
 * A time in which the server answered nothing.
 */
export interface Stall {
  /**
   * When it began.
   */
  start_ns: number;
  duration_ns: Count;
}
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
  /**
   * The group that it is a part of, and is counted in as well.
   */
  part_of: string | null;
  /**
   * Whether it counts in the total.
   */
  headline: boolean;
  operations: Count;
  client: Times;
  /**
   * Measured from a capture of the same exchanges; null where none was made.
   */
  wire: Times | null;
  /**
   * The client's time less the wire's, of each command that was seen from both places: what the client's own system adds. Null where commands were not matched one by one.
   */
  difference: Times | null;
}
export interface Command {
  protocol: "SMB1" | "SMB2";
  /**
   * The specification's name.
   */
  command: string;
  /**
   * What it was used for.
   */
  subcommand: string | null;
  group: string;
  count: Count;
  errors: ByStatus;
  client: Times;
  /**
   * Measured from a capture of the same exchanges; null where none was made.
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
  unexpected: ByStatus;
}
export interface Interval {
  start_ns: number;
  users: Count;
  operations: Count;
  errors: Count;
  bytes_read: Count;
  bytes_written: Count;
  p50: Nanoseconds;
  p95: Nanoseconds;
  max: Nanoseconds;
}
/**
 * Processor time of the client in the measured part of a run.
 */
export interface ClientCpu {
  user_ns: Count;
  system_ns: Count;
  percent: Fraction;
  per_operation_ns: Nanoseconds;
  busiest_percent: Fraction;
  /**
   * The client, and not the server, was the limit: the figures say nothing about the server.
   */
  limited: boolean;
  late_p99_ns: Nanoseconds;
}
