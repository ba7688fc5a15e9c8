// Made from schema/smbscope.prediction-1.schema.json by scripts/types.mjs; do not edit.

/**
 * SMB1 (MS-CIFS, MS-SMB) or SMB2/3 (MS-SMB2).
 */
export type Protocol = "SMB1" | "SMB2";
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
 * Commands of a replay in time order.
 */
export type ReplayedCommands = SlowExchange[];
/**
 * Result of comparing a prediction with its measurement.
 */
export type ProofVerdict =
  | {
      kind: "holds";
    }
  | {
      kind: "misses";
      /**
       * The assumption that failed, as far as the replays show.
       */
      why: string;
    }
  | {
      kind: "not_made";
      /**
       * The reason.
       */
      why: string;
    };
/**
 * Meaning of a user.
 */
export type UserIdentity = "client" | "account" | "connection";

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
   * Result in one sentence.
   */
  headline: string;
  /**
   * Measurement of the predictions. Null without --prove.
   */
  proof: Proof | null;
  /**
   * Captured duration, from the first request to the last response.
   */
  captured_ns?: number;
  /**
   * Commands with a response.
   */
  commands?: number;
  doubled_at?: DoublingPoint;
  load?: CapturedLoad;
  /**
   * Predictions, in the order of the changes.
   */
  predictions?: Prediction[];
  /**
   * Longest captured round-trip time of the connections. Null if unknown.
   */
  round_trip_ns?: number | null;
  station?: CapturedStation;
  /**
   * Predictions, by number of users.
   */
  users?: UsersPoint[];
  /**
   * Assumptions of the predictions for users, one sentence each.
   */
  users_assumptions?: string[];
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
 * Measurement of predictions: the recorded commands, replayed as captured and with each change.
 */
export interface Proof {
  /**
   * Share of the replays: `smb://ann@server/share`. Null for private servers in the lab.
   */
  server: string | null;
  /**
   * Replayed commands.
   */
  commands: number;
  /**
   * Clients that were replayed, each as a user of its own.
   */
  clients: number;
  /**
   * Threads of these clients. Each has a connection of its own.
   */
  threads: number;
  /**
   * Commands that were not replayed as captured, with count and reason.
   */
  not_replayed: string[];
  /**
   * Says that replays repeat the commands. Null if none does.
   */
  repeated: string | null;
  /**
   * Durations as captured. Null if nothing was measured.
   */
  as_captured_ns: MeasuredDuration | null;
  as_captured_commands: ReplayedCommands;
  /**
   * The changes, in the order of the predictions.
   */
  changes: ProvedChange[];
}
/**
 * Durations of repeated replays. A replay of several passes counts with a pass's share of its duration.
 */
export interface MeasuredDuration {
  /**
   * Shortest duration.
   */
  low: number;
  /**
   * Median. Of an even number of replays, the longer one of the two in the middle.
   */
  best: number;
  /**
   * Longest duration.
   */
  high: number;
  /**
   * Number of replays.
   */
  replays: number;
  /**
   * Passes through the commands in each replay: several for commands that take less than two seconds.
   */
  passes: number;
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
 * A change with its prediction and its measurement.
 */
export interface ProvedChange {
  /**
   * Change, in the syntax of --if.
   */
  change: string;
  /**
   * Duration predicted from the replays as captured. Null if there is no prediction.
   */
  predicted_ns: PredictedDuration | null;
  /**
   * Measured duration. Null if the change was not made.
   */
  measured_ns: MeasuredDuration | null;
  commands: ReplayedCommands;
  verdict: ProofVerdict;
}
/**
 * Best estimate of a duration, with its bounds.
 */
export interface PredictedDuration {
  low: number;
  best: number;
  high: number;
}
/**
 * Numbers of users.
 */
export interface DoublingPoint {
  low: number | null;
  best: number | null;
  high: number | null;
}
/**
 * Load of the captured users on one server.
 */
export interface CapturedLoad {
  /**
   * Server to which the predictions apply: the one with the most commands.
   */
  server: string;
  user_is: UserIdentity;
  /**
   * Mean number of users at work: between their first command and their last.
   */
  users: number;
  /**
   * Commands that the predictions derive from. A compound counts as one.
   */
  commands: number;
  /**
   * First request.
   */
  from_ns: number;
  /**
   * Last response.
   */
  to_ns: number;
  /**
   * True if the capture is longer than two hours and only the hour with the most commands counts.
   */
  is_busiest_hour: boolean;
  /**
   * One of this number of time windows of 7 s was used. 1 is all of them.
   */
  one_window_in: number;
  commands_per_s: number;
  /**
   * Time of a user per command with nothing outstanding.
   */
  think_time_ns: number;
  /**
   * Mean response time of a command.
   */
  response_time_ns: number;
  /**
   * Mean response time outside the server: round trip and transfers.
   */
  network_ns: number;
  /**
   * Mean number of outstanding commands of a user that has any.
   */
  outstanding_per_user: number;
  /**
   * Bytes per command to the server.
   */
  bytes_to_server: number;
  /**
   * Bytes per command to the client.
   */
  bytes_to_client: number;
  /**
   * Share of each group in the commands, from 0 to 1.
   */
  mix: {
    [k: string]: number;
  };
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
 * Server times of the captured commands.
 */
export interface CapturedStation {
  /**
   * Mean server time of a command.
   */
  server_time_ns: number;
  unloaded_ns: Bounded;
  queueing_ns: Bounded;
  /**
   * Commands that met others at the server.
   */
  overlapping_commands: number;
  /**
   * Most commands at the server at one time.
   */
  outstanding_max: number;
}
/**
 * A figure with its bounds. `best` is null if the capture supports only the bounds.
 */
export interface Bounded {
  low: number;
  best: number | null;
  high: number;
}
/**
 * Prediction for a number of users.
 */
export interface UsersPoint {
  users: number;
  response_time_ns: Bounded;
  commands_per_s: Bounded2;
  server_busy: Bounded2;
  /**
   * True if more commands meet at the server than ever in the capture.
   */
  is_extrapolated: boolean;
}
/**
 * A figure with its bounds. `best` is null if the capture supports only the bounds.
 */
export interface Bounded2 {
  low: number;
  best: number | null;
  high: number;
}
