// Made from schema/smbscope.study-1.schema.json by scripts/types.mjs; do not edit.

/**
 * Party that has to act.
 */
export type Culprit = "server" | "network" | "client" | "application" | "capture" | "nothing";
/**
 * Reliability of an explanation.
 */
export type Confidence = "low" | "medium" | "high";
/**
 * Reason why a load point is unfit.
 */
export type StudyUnfitReason = "other_load" | "client_stopped" | "stall" | "errors" | "missed_arrivals" | "overload";
/**
 * A value as a multiple of the baseline's.
 */
export type BaselineRatio = {
  /**
   * Value divided by the baseline's; for several runs, the ratio of geometric means. Null if one of them is zero or missing.
   */
  ratio: number | null;
  /**
   * 95% interval of the ratio. Null with fewer than five runs of each side, or if a run is too short.
   *
   * @minItems 2
   * @maxItems 2
   */
  interval: [number, number] | null;
  /**
   * Smallest and largest ratio, if there are three or four runs of each side and therefore no interval.
   *
   * @minItems 2
   * @maxItems 2
   */
  range: [number, number] | null;
  /**
   * Smallest ratio above 1 that data like these would detect in four of five attempts. Null without an interval.
   */
  detectable: number | null;
  /**
   * Number of runs of the side that has fewer, or of blocks.
   */
  repetitions: number;
  scope: Scope;
  /**
   * Probability of a difference at least this large if the true ratio is 1. For tables, see [`benjamini_hochberg`].
   */
  p_value: number | null;
} & BaselineRatio1;
/**
 * Population that an interval describes.
 */
export type Scope = "runs" | "within_run";
export type BaselineRatio1 =
  | {
      answer: "higher";
    }
  | {
      answer: "lower";
    }
  | {
      answer: "equal";
    }
  | {
      answer: "undecided";
      /**
       * Total runs of each side, or blocks, that would probably decide. Null if the spread is unknown or more than [`REPETITIONS_MAX`] would be needed.
       */
      repetitions_needed: number | null;
    };
/**
 * Meaning of a ratio for users.
 */
export type StudyVerdict = "slower" | "faster" | "more" | "less" | "equal" | "undecided" | "too_few";

/**
 * Study as `study.json` holds it and `smbscope study --format json` prints it. Timestamps are nanoseconds since the Unix epoch; values have their unit in a separate field.
 */
export interface SmbscopeStudyDocument {
  schema: "smbscope.study/1";
  generator: Generator;
  /**
   * Name of the study.
   */
  name: string;
  /**
   * Question of the study. Empty if the file has none.
   */
  question: string;
  answer: Answer;
  definition: StudyDefinition;
  /**
   * Command that makes the study, from its directory.
   */
  command: string;
  /**
   * Start of the first run.
   */
  started_ns: number | null;
  /**
   * Runs per variant.
   */
  repetitions: number;
  /**
   * Seed of the order of runs.
   */
  seed: number;
  /**
   * Test environment by name, as far as it is the same for all runs.
   */
  environment: {
    [k: string]: string;
  };
  /**
   * Variants: every combination of settings.
   */
  variants: VariantEntry[];
  /**
   * Runs in the order they were made.
   */
  runs: StudyRun[];
  /**
   * Load points that were unfit.
   */
  unfit: StudyUnfitPoint[];
  /**
   * Results by measure, load and variant, without the load points that were left out.
   */
  results: StudyRow[];
  /**
   * Server metrics by load and variant. Empty if unknown.
   */
  server: StudyServerRow[];
  /**
   * Limits of the results, one sentence each.
   */
  warnings: string[];
  /**
   * Compared studies, the baseline first. Empty for a single study.
   */
  studies: string[];
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
 * Definition of a study.
 */
export interface StudyDefinition {
  /**
   * File name as given.
   */
  source: string;
  /**
   * SHA-256 of the text and of the effects of `--quick` and `--target`, in hexadecimal.
   */
  sha256: string;
  /**
   * Text of the file.
   */
  text: string;
  /**
   * Made with `--quick`.
   */
  quick: boolean;
  /**
   * Settings and options of the full study that the short form changes or leaves out. Empty for the full study.
   */
  left_out: string[];
  /**
   * Servers given with `--target` to replace the ones in the file, in order.
   */
  targets: string[];
  /**
   * Hardware and settings of these servers in the user's words: `NAME=TEXT`.
   */
  about: string[];
}
/**
 * A combination of one setting per axis.
 */
export interface VariantEntry {
  /**
   * Names of its settings.
   */
  name: string;
  /**
   * Index of its baseline; its own index for a baseline.
   */
  baseline: number;
  /**
   * Setting by axis.
   */
  settings: {
    [k: string]: string;
  };
  /**
   * Directory of its runs, relative to the study directory.
   */
  folder: string;
  /**
   * Place of its files: a target, `private server`, or `this machine`.
   */
  place: string;
  /**
   * Test environment by name, as far as it is the same for all runs of the variant and differs from other variants.
   */
  environment: {
    [k: string]: string;
  };
  /**
   * Command line that repeats one of its runs.
   */
  command: string;
  /**
   * Shell commands before each run.
   */
  before: string[];
  /**
   * Shell commands after each run.
   */
  after: string[];
}
/**
 * A run of a variant.
 */
export interface StudyRun {
  /**
   * Index of the variant.
   */
  variant: number;
  /**
   * Repetition, from 1.
   */
  repetition: number;
  /**
   * Run directory, relative to the study directory.
   */
  directory: string;
  /**
   * Start.
   */
  started_ns: number;
  /**
   * Duration, including preparation.
   */
  duration_ns: number;
  /**
   * Attempts: 2 if the first one failed or was unfit.
   */
  attempts: number;
  /**
   * Reason for a second attempt. Null without one.
   */
  repeated: string | null;
  /**
   * CPU time of other programs just before or after the run, whichever is higher, in percent of all processors of this machine. Null if unknown.
   */
  other_load_percent: number | null;
  /**
   * Reason for a missing result. Null if there is one.
   */
  failed: string | null;
}
/**
 * Load point that was unfit to show what the study asks.
 */
export interface StudyUnfitPoint {
  /**
   * Index of the variant.
   */
  variant: number;
  /**
   * Repetition, from 1.
   */
  repetition: number;
  /**
   * Users at the load point.
   */
  users: number;
  /**
   * Operations per second at the load point. Null if load points differ in users.
   */
  rate: number | null;
  reason: StudyUnfitReason;
  /**
   * Left out of all figures. False if most repetitions of the variant (of other load and a stopped client: most of the study) are unfit for this reason.
   */
  left_out: boolean;
}
/**
 * A measure of a variant at a load.
 */
export interface StudyRow {
  /**
   * Measure, such as `p95(Read)`, `elapsed` or `throughput`.
   */
  measure: string;
  /**
   * Unit of the values: `s`, `1/s`, `B/s`, `percent` or empty.
   */
  unit: string;
  /**
   * Users at the load point.
   */
  users: number;
  /**
   * Operations per second at the load point. Null if load points differ in users.
   */
  rate: number | null;
  /**
   * Index of the variant.
   */
  variant: number;
  /**
   * Value of each repetition. Null if missing.
   */
  values: (number | null)[];
  /**
   * Mean of the values.
   */
  mean: number;
  /**
   * Sample standard deviation. Null for a single value.
   */
  stddev: number | null;
  /**
   * Ratio to the baseline at the same load, within repetitions (with several studies, all values of one to all of the other). Null for a baseline, and if the baseline has no value.
   */
  factor: BaselineRatio | null;
  /**
   * Probability of a difference at least this large by chance, adjusted for the number of rows (headline rows by Holm, others by Benjamini and Hochberg). Null without an interval.
   */
  adjusted_p_value: number | null;
  /**
   * Meaning of the ratio for users. Null without one.
   */
  verdict: StudyVerdict | null;
}
/**
 * A server metric of a variant at a load.
 */
export interface StudyServerRow {
  /**
   * Metric: `cpu`, `disk_busiest` …, as in the document of a run.
   */
  metric: string;
  /**
   * Unit: `percent`, `bytes/s`, `bytes`, `1/s` or `count`.
   */
  unit: string;
  /**
   * Users at the load point.
   */
  users: number;
  /**
   * Operations per second at the load point. Null if load points differ in users.
   */
  rate: number | null;
  /**
   * Index of the variant.
   */
  variant: number;
  /**
   * Mean of each repetition. Null if missing.
   */
  means: (number | null)[];
  /**
   * Highest sample of each repetition.
   */
  maxima: (number | null)[];
}
