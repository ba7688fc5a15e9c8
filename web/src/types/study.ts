// Made from schema/smbscope.study-1.schema.json by scripts/types.mjs; do not edit.

/**
 * Who has to act.
 */
export type Culprit = "server" | "network" | "client" | "application" | "capture" | "nothing";
/**
 * How sure a cause is.
 */
export type Confidence = "low" | "medium" | "high";
/**
 * A figure as a multiple of the baseline's.
 */
export type BaselineRatio = {
  /**
   * Value divided by the baseline's: of several runs, of the geometric means. Null where one of them is zero or missing.
   */
  ratio: number | null;
  /**
   * The 95% interval of the ratio; null with fewer than five runs of each side, or with too short a run.
   *
   * @minItems 2
   * @maxItems 2
   */
  interval: [number, number] | null;
  /**
   * The least and the greatest ratio, where there are three or four runs of each side and so no interval.
   *
   * @minItems 2
   * @maxItems 2
   */
  range: [number, number] | null;
  /**
   * The smallest ratio above 1 that data like these would show in four of five tries; null without an interval.
   */
  detectable: number | null;
  /**
   * Runs of the side that has fewer, or blocks.
   */
  repetitions: number;
  scope: Scope;
  /**
   * The probability of at least this difference where there is none; for tables of many rows, see [`benjamini_hochberg`].
   */
  p_value: number | null;
} & BaselineRatio1;
/**
 * What an interval is about.
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
       * Runs of each side, or blocks, in all that would probably decide it; null where the spread is not known or more than [`REPETITIONS_MAX`] would be needed.
       */
      repetitions_needed: number | null;
    };
/**
 * Meaning of a ratio for users.
 */
export type StudyVerdict = "slower" | "faster" | "more" | "less" | "equal" | "undecided" | "too_few";

/**
 * Study as `study.json` holds it and `smbscope study --format json` prints it. Timestamps are nanoseconds since the Unix epoch; values have the unit beside them.
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
   * Results by measure, load and variant.
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
   * Servers given with `--target` to replace the ones in the file, in order.
   */
  targets: string[];
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
   * Attempts: 2 if the first one failed.
   */
  attempts: number;
  /**
   * Reason for a missing result. Null if there is one.
   */
  failed: string | null;
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
