// Made from schema/smbscope.compare-1.schema.json by scripts/types.mjs; do not edit.

export type Count = number;
export type Nanoseconds = number | null;
export type Number = number | null;
/**
 * Null where a value is missing or the base's is 0.
 */
export type Ratio = null | {
  value: number;
  /**
   * Confidence interval of the ratio; always null for now.
   */
  interval: null | {
    low: number;
    high: number;
    /**
     * As 0.95.
     */
    level: number;
  };
};
/**
 * One for each column; null where it has no such command or group.
 */
export type Cells = (null | Cell)[];
/**
 * One for each column; null where it has no such load point or group.
 */
export type PointCells = (null | PointCell)[];

/**
 * What `smbscope compare --format json` prints: captures or saved reports side by side. All times are integers in nanoseconds, points in time since the Unix epoch; null is unknown or, for a statistic, not supported by enough values. Cells stand in the order of `columns`; the first column is the base, and ratios are those of a column to it.
 */
export interface SmbscopeComparisonDocument {
  schema: "smbscope.compare/1";
  generator: {
    name: "smbscope";
    version: string;
  };
  title: string | null;
  /**
   * What is compared; the first is the base.
   *
   * @minItems 2
   */
  columns: [Column, Column, ...Column[]];
  /**
   * All groups that are no wait by design and not encrypted.
   */
  headline: {
    cells: Cells;
  };
  /**
   * Groups that occur in any column, in the order of the report; Other is followed by its parts.
   */
  groups: {
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
     * The group that this one is a part of, and is counted in as well.
     */
    part_of: "Other" | null;
    /**
     * Whether it counts in the headline.
     */
    headline: boolean;
    cells: Cells;
  }[];
  /**
   * Commands that occur in any column, those that were waited for longest in any of them first. Waits by design of a command are an entry of their own.
   */
  commands: {
    protocol: "SMB1" | "SMB2";
    /**
     * The specification's name, or the code in hexadecimal.
     */
    command: string;
    /**
     * The entry holds the waits by design of the command.
     */
    waiting: boolean;
    /**
     * Where commands of SMB1 and SMB2 that do the same stand in one entry: those of each column, subcommands of SMB1 among them. The entry has the name that SMB2 has for it. Null in any other entry.
     */
    members: string[][] | null;
    cells: Cells;
  }[];
  /**
   * The ramps among the columns, load point by load point; the rest of the comparison is about one load point of each. Null where there is none.
   */
  ramps: null | Ramps;
  /**
   * Where the comparison is weak, a sentence each.
   */
  notes: {
    /**
     * few: too few timed commands; mix: the columns do different work; place: the times were taken inside the client, and those of the base on the wire, or the other way round; damage: commands could not be timed; encrypted: commands are not known; filter: its exchanges were chosen by another expression than the base's; warning: a warning of the report, or about one of its captures.
     */
    kind: "few" | "mix" | "place" | "damage" | "encrypted" | "filter" | "warning";
    /**
     * Index of the column that it is about.
     */
    column: number;
    text: string;
  }[];
}
export interface Column {
  /**
   * Unique among the columns.
   */
  name: string;
  /**
   * The argument as given.
   */
  source: string;
  /**
   * Title of the report, where it has one.
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
  captures: {
    name: string;
    format: string;
    packets: Count;
    bytes: Count;
    first_ns: Nanoseconds;
    last_ns: Nanoseconds;
  }[];
  /**
   * Which share of the commands could not be timed because the capture is damaged, and why, in plain English.
   */
  quality: string;
  overview: Overview;
}
export interface Overview {
  elapsed_ns: Nanoseconds;
  commands: Count;
  timed: Count;
  untimed: Count;
  errors: Count;
  connections: Count;
  bytes_read: Count;
  bytes_written: Count;
  bytes_per_second: Number;
  commands_per_second: Number;
  /**
   * Connections by dialect, the most first; null where the negotiation was not captured.
   */
  dialects: {
    dialect: string | null;
    connections: Count;
  }[];
  /**
   * Null in the base.
   */
  ratios: null | {
    bytes_per_second: Ratio;
    commands_per_second: Ratio;
  };
}
export interface Cell {
  count: Count;
  timed: Count;
  errors: Count;
  /**
   * Response times; see `times` of smbscope.report/1 for which percentiles exist when.
   */
  response_time: {
    mean: Nanoseconds;
    p50: Nanoseconds;
    p95: Nanoseconds;
    p99: Nanoseconds;
    max: Nanoseconds;
    sum: Nanoseconds;
  };
  /**
   * Response times by decade, as in smbscope.report/1: below 1 µs, 10 µs, … 100 s, and the rest.
   *
   * @minItems 10
   * @maxItems 10
   */
  distribution: [Count, Count, Count, Count, Count, Count, Count, Count, Count, Count];
  /**
   * To the base; null in the base itself, and where the base has no cell.
   */
  ratios: null | Ratios;
}
export interface Ratios {
  count: Ratio;
  mean: Ratio;
  p50: Ratio;
  p95: Ratio;
  p99: Ratio;
  max: Ratio;
  sum: Ratio;
}
export interface Ramps {
  /**
   * One for each column; null for what is no ramp.
   */
  columns: (null | {
    users: Count;
    workload: string;
    /**
     * Closed loop, or the rate of an open one.
     */
    schedule: string;
    overall_response_time_ns: Nanoseconds;
    /**
     * The highest load at which the criterion of the ramp holds; null where that is not known.
     */
    capacity: number | null;
  })[];
  /**
   * Loads that any ramp has, ascending.
   */
  points: {
    users: number;
    total: PointCells;
    groups: {
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
       * The group that this one is a part of, and is counted in as well.
       */
      part_of: "Other" | null;
      cells: PointCells;
    }[];
  }[];
}
export interface PointCell {
  /**
   * Commands answered a second.
   */
  per_second: number | null;
  per_second_ratio: Ratio;
  count: Count;
  timed: Count;
  errors: Count;
  /**
   * Response times; see `times` of smbscope.report/1 for which percentiles exist when.
   */
  response_time: {
    mean: Nanoseconds;
    p50: Nanoseconds;
    p95: Nanoseconds;
    p99: Nanoseconds;
    max: Nanoseconds;
    sum: Nanoseconds;
  };
  /**
   * Response times by decade, as in smbscope.report/1: below 1 µs, 10 µs, … 100 s, and the rest.
   *
   * @minItems 10
   * @maxItems 10
   */
  distribution: [Count, Count, Count, Count, Count, Count, Count, Count, Count, Count];
  /**
   * To the base; null in the base itself, and where the base has no cell.
   */
  ratios: null | Ratios;
}
