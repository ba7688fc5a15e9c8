// Made from schema/smbscope.bench-1.schema.json by scripts/types.mjs; do not edit.

export type Positive = number;
export type Count = number;
export type Nanoseconds = number | null;

/**
 * What `smbscope bench --format json` prints: a ramp of runs against a server. All times are integers in nanoseconds, points in time since the Unix epoch; null is unknown or, for a statistic, not supported by enough values.
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
     * As negotiated; null where no run got so far.
     */
    dialect: string | null;
    /**
     * off, on or required.
     */
    signing: string;
    /**
     * off or required.
     */
    encryption: string;
  };
  workload: {
    name: string;
    /**
     * The file that it comes from; null for one that is built in.
     */
    source: string | null;
  };
  started_ns: number;
  /**
   * What the runs were made on, name by name: system, processor, server.
   */
  environment: {
    [k: string]: string;
  };
  /**
   * The load points, in the order in which they were run.
   */
  runs: Run[];
  /**
   * The highest load at which the criterion holds; null where none was asked for.
   */
  capacity: {
    /**
     * In plain English.
     */
    criterion: string;
    /**
     * Null where it holds at no load of the ramp.
     */
    users: number | null;
  } | null;
  /**
   * Mean response time over all runs of the ramp, each weighted by its throughput.
   */
  overall_response_time_ns: number | null;
  warnings: string[];
}
export interface Run {
  users: Positive;
  duration_ns: Count;
  warmup_ns: Count;
  operations: Count;
  operations_per_second: number;
  bytes_read: Count;
  bytes_written: Count;
  /**
   * Error responses by status.
   */
  errors: {
    [k: string]: Positive;
  };
  total: Measured;
  /**
   * By operation group, as in the report.
   */
  groups: {
    group: string;
    operations: Count;
    client: Times;
    /**
     * Measured from a capture of the same exchanges; null where none was made.
     */
    wire: Times | null;
  }[];
  /**
   * Of one processor; null where not known.
   */
  client_cpu_percent: number | null;
  /**
   * The client, and not the server, was the limit: the figures say nothing about the server.
   */
  client_limited: boolean;
  /**
   * The measured part, piece by piece, in time order.
   */
  intervals: {
    start_ns: number;
    operations: Count;
    errors: Count;
    bytes_read: Count;
    bytes_written: Count;
    p50: Nanoseconds;
    p95: Nanoseconds;
  }[];
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
