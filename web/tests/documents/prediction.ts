// Synthetic prediction: two changes, one proved and one not, and a server that saturates with more users.
import type { ProvedChange, SmbscopePredictionDocument } from "../../src/types/prediction";
import { simulate } from "./simulate";

const MS = 1_000_000;
const SECOND = 1_000 * MS;

/** Returns commands one after the other, each as long as this. */
function replayed(took: number): ProvedChange["commands"] {
  return simulate({ exchanges: 400 })
    .slowest.slice(0, 40)
    .map((command, at) => ({
      ...command,
      capture: null,
      request_first_ns: at * (took + 1 * MS),
      response_time_ns: took,
      request_transfer_ns: null,
      service_time_ns: took,
      server_time_ns: took / 2,
    }));
}

export function prediction(): SmbscopePredictionDocument {
  const measured = (best: number) => ({
    low: Math.round(0.97 * best),
    best,
    high: Math.round(1.1 * best),
    replays: 3,
    passes: 1,
  });
  const predicted = (best: number) => ({ low: Math.round(0.9 * best), best, high: Math.round(1.12 * best) });
  return {
    schema: "smbscope.prediction/1",
    generator: { name: "smbscope", version: "0.1.0" },
    captures: ["slow-office.pcapng"],
    episode: 4,
    headline:
      "1 of 2 predictions hold in the lab. Not so: with bandwidth=20mbit, the replay took 2.21 s, predicted were 2.41 s (2.32 to 2.61 s).",
    captured_ns: 0.25 * SECOND,
    round_trip_ns: 0.3 * MS,
    commands: 40,
    predictions: [
      {
        change: "rtt=20ms",
        duration_ns: predicted(1.04 * SECOND),
        saved_commands: 0,
        assumptions: ["Each command waits for its predecessors on its connection or in its thread, as in the capture."],
      },
      { change: "bandwidth=20mbit", duration_ns: predicted(2.41 * SECOND), saved_commands: 0, assumptions: [] },
      { change: "cache=leases", duration_ns: predicted(0.2 * SECOND), saved_commands: 8, assumptions: [] },
    ],
    proof: {
      server: null,
      commands: 40,
      clients: 1,
      threads: 1,
      not_replayed: ["2 commands of the capture's start"],
      repeated: "Replays of less than two seconds repeat the commands, up to 50 times; durations are of one pass.",
      as_captured_ns: measured(0.26 * SECOND),
      as_captured_commands: replayed(5 * MS),
      changes: [
        {
          change: "rtt=20ms",
          predicted_ns: predicted(1.05 * SECOND),
          measured_ns: measured(1.03 * SECOND),
          commands: replayed(25 * MS),
          verdict: { kind: "holds" },
        },
        {
          change: "bandwidth=20mbit",
          predicted_ns: predicted(2.41 * SECOND),
          measured_ns: measured(2.21 * SECOND),
          commands: replayed(54 * MS),
          verdict: { kind: "misses", why: "packets were lost: 12 segments were sent again" },
        },
        {
          change: "cache=leases",
          predicted_ns: null,
          measured_ns: null,
          commands: [],
          verdict: { kind: "not_made", why: "the replay sends the recorded commands, and this change is the client's" },
        },
      ],
    },
  };
}

/** Returns predictions for users. The last one has no best estimate. */
export function predictedUsers(): SmbscopePredictionDocument {
  const { schema, generator, captures } = prediction();
  const numbers = [10, 20, 50, 100, 200, 500];
  const last = numbers.length - 1;
  return {
    schema,
    generator,
    captures,
    episode: null,
    headline: "With 500 users, a command takes 43.0 to 181 ms instead of 1.90 ms with the 8 captured.",
    load: {
      server: "10.20.0.9:445",
      user_is: "client",
      users: 18,
      commands: 20_000,
      from_ns: 0,
      to_ns: 60 * SECOND,
      is_busiest_hour: false,
      one_window_in: 1,
      commands_per_s: 333,
      think_time_ns: 20 * MS,
      response_time_ns: 1.9 * MS,
      network_ns: 0.3 * MS,
      outstanding_per_user: 1.2,
      bytes_to_server: 1_200,
      bytes_to_client: 22_000,
      mix: { read: 0.5, "open/close": 0.5 },
    },
    users: numbers.map((users, at) => {
      const best = 1.9 * MS * (1 + (users / 90) ** 2);
      const bounded = (value: number) => ({
        low: Math.round(0.6 * value),
        best: at === last ? null : Math.round(value),
        high: Math.round(1.8 * value),
      });
      return {
        users,
        response_time_ns: bounded(best),
        commands_per_s: bounded(Math.min(3_000, 18 * users)),
        server_busy: { low: 0.1, best: null, high: Math.min(1, users / 200) },
        is_extrapolated: at > 2,
      };
    }),
    users_assumptions: ["Every user does what the captured ones did."],
    proof: null,
  };
}
