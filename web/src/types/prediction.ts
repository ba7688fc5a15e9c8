// Made from schema/smbscope.prediction-1.schema.json by scripts/types.mjs; do not edit.

/**
 * Predictions as `smbscope predict --format json` prints them. Durations are in nanoseconds.
 */
export interface SmbscopePredictionDocument {
  schema: "smbscope.prediction/1";
  generator: Generator;
  /**
   * Names of the captures.
   */
  captures: string[];
  /**
   * Number of the episode. Null for the whole capture.
   */
  episode: number | null;
  /**
   * Captured duration, from the first request to the last response.
   */
  captured_ns: number;
  /**
   * Longest captured round-trip time of the connections. Null if unknown.
   */
  round_trip_ns: number | null;
  /**
   * Commands with a response.
   */
  commands: number;
  /**
   * Predictions, in the order of the changes.
   */
  predictions: Prediction[];
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
 * Duration of the commands under a change.
 */
export interface Prediction {
  /**
   * Change, in the syntax of --if.
   */
  change: string;
  duration_ns: PredictedDuration;
  /**
   * Commands that would be saved.
   */
  saved_commands: number;
  /**
   * Assumptions of the prediction, one sentence each.
   */
  assumptions: string[];
}
/**
 * Best estimate of a duration, with its bounds.
 */
export interface PredictedDuration {
  low: number;
  best: number;
  high: number;
}
