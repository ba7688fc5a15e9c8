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
export type Figure = {
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
} & Figure1;
/**
 * What an interval is about.
 */
export type Scope = "runs" | "within_run";
export type Figure1 =
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
 * What a factor means for a user.
 */
export type StudyVerdict = "slower" | "faster" | "more" | "less" | "equal" | "undecided" | "too_few";

/**
 * What `study.json` of a study's directory holds, and `smbscope study --format json` prints: its runs and what came out. Points in time are nanoseconds since the Unix epoch; values have the unit that stands beside them.
 */
export interface SmbscopeStudyDocument {
  schema: "smbscope.study/1";
  generator: Generator;
  /**
   * What the study is called.
   */
  name: string;
  /**
   * What it answers; empty where the file does not say.
   */
  question: string;
  answer: Answer;
  definition: StudyDefinition;
  /**
   * The command that makes it, from the directory in which it was made.
   */
  command: string;
  /**
   * When its first run began.
   */
  started_ns: number | null;
  /**
   * Runs of each variant.
   */
  repetitions: number;
  /**
   * What the order of the runs begins from.
   */
  seed: number;
  /**
   * What the runs were made on, name by name, where that is the same for all.
   */
  environment: {
    [k: string]: string;
  };
  /**
   * Every setting of every axis with every one of the others.
   */
  variants: Variant[];
  /**
   * The runs, in the order in which they were made.
   */
  runs: StudyRun[];
  /**
   * By measure, load and variant.
   */
  results: StudyRow[];
  /**
   * What the load cost the server, by metric, load and variant; empty where nothing is known of its side.
   */
  server: StudyServerRow[];
  /**
   * What weakens the results, a sentence each.
   */
  warnings: string[];
  /**
   * The studies that this one sets beside each other, the baseline first; empty for a study of its own.
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
 * What a study was made from.
 */
export interface StudyDefinition {
  /**
   * The file, as it was named.
   */
  source: string;
  /**
   * SHA-256 of the text and of what `--quick` and `--target` make of it, in hexadecimal.
   */
  sha256: string;
  /**
   * The text.
   */
  text: string;
  /**
   * The short form.
   */
  quick: boolean;
  /**
   * The servers that stand for those of the file, in their order.
   */
  targets: string[];
}
/**
 * One setting of each axis.
 */
export interface Variant {
  /**
   * What it is called: the names of its settings.
   */
  name: string;
  /**
   * Index of the variant that it is compared with; its own for one that others are compared with.
   */
  baseline: number;
  /**
   * Setting by axis.
   */
  settings: {
    [k: string]: string;
  };
  /**
   * Where its runs are, below the directory of the study.
   */
  folder: string;
  /**
   * The command line that does what one of its runs did.
   */
  command: string;
  /**
   * Commands for the shell, before each of its runs.
   */
  before: string[];
  /**
   * Commands for the shell, after each of its runs.
   */
  after: string[];
}
/**
 * A run of a variant.
 */
export interface StudyRun {
  /**
   * Index into the variants.
   */
  variant: number;
  /**
   * From 1.
   */
  repetition: number;
  /**
   * Its run directory, below that of the study.
   */
  directory: string;
  /**
   * When it began.
   */
  started_ns: number;
  /**
   * How long it took, preparation included.
   */
  duration_ns: number;
  /**
   * How often it was begun: twice where the first attempt failed.
   */
  attempts: number;
  /**
   * Why it has no result; null where it has one.
   */
  failed: string | null;
}
/**
 * One measure of one variant at one load.
 */
export interface StudyRow {
  /**
   * `p95(Read)`, `elapsed`, `throughput` …
   */
  measure: string;
  /**
   * Of the values: `s`, `1/s`, `B/s`, `percent` or empty.
   */
  unit: string;
  /**
   * Users of the load point.
   */
  users: number;
  /**
   * Operations a second of the load point; null where load points differ in their users.
   */
  rate: number | null;
  /**
   * Index into the variants.
   */
  variant: number;
  /**
   * The value of each repetition, in their order; null where there is none.
   */
  values: (number | null)[];
  /**
   * Their average.
   */
  mean: number;
  /**
   * Their sample standard deviation; null for a single one.
   */
  stddev: number | null;
  /**
   * Against its baseline at the same load, repetition by repetition (those of several studies: all of one against all of the other); null for a baseline itself, and where that has no value.
   */
  factor: Figure | null;
  /**
   * The probability of at least this difference where there is none, adjusted for the number of rows (those of the headline by Holm, the others by Benjamini and Hochberg); null without an interval.
   */
  adjusted_p_value: number | null;
  /**
   * What the factor means for a user; null without one.
   */
  verdict: StudyVerdict | null;
}
/**
 * A metric of the server at one load of one variant.
 */
export interface StudyServerRow {
  /**
   * What: `cpu`, `disk_busiest` …, as in the document of a run.
   */
  metric: string;
  /**
   * In what: `percent`, `bytes/s`, `bytes`, `1/s` or `count`.
   */
  unit: string;
  /**
   * Users of the load point.
   */
  users: number;
  /**
   * Operations a second of the load point; null where load points differ in their users.
   */
  rate: number | null;
  /**
   * Index into the variants.
   */
  variant: number;
  /**
   * The average of each repetition, in their order; null where there is none.
   */
  means: (number | null)[];
  /**
   * The greatest sample of each repetition.
   */
  maxima: (number | null)[];
}
