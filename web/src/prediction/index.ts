// Page of predictions, `smbscope.prediction/1`: durations under changes with their proof by replays, and the response
// time by number of users.
import { bandOf, curve, lines, ratePanel, timePanel } from "../charts/lines";
import { lanes, waterfall } from "../charts/waterfall";
import { ABSENT, counted, duration, ratio, span, thousands, unbroken } from "../lib/format";
import { Choice, facts, lead, list, type Page, part, resultBox, type Section, section } from "../lib/page";
import { type Column, countColumn, numberColumn, speedColumn, textColumn, timeColumn } from "../table/columns";
import { table } from "../table/table";
import type {
  MeasuredDuration,
  PredictedDuration,
  Prediction,
  Proof,
  ProvedChange,
  SmbscopePredictionDocument,
  UsersPoint,
} from "../types/prediction";

export function predictionPage(prediction: SmbscopePredictionDocument): Page {
  const { captures, episode, headline, proof, generator } = prediction;
  const [only] = captures;
  return {
    title: `SMB prediction: ${captures.length === 1 ? only : `${captures.length} captures`}`,
    facts: [
      resultBox("none", "Prediction", unbroken(headline), notes(proof)),
      facts([
        ["Captures", captures.join(", ")],
        ["Commands", episode === null ? "the whole capture" : `episode ${episode}`],
      ]),
    ],
    version: generator.version,
    sections: [changes(prediction), users(prediction), assumptions(prediction)],
  };
}

/** Lists what the lab could not do, and why predictions failed. */
function notes(proof: Proof | null): HTMLElement | null {
  if (proof === null) return null;
  const ofChanges = proof.changes.flatMap(({ change, verdict }) =>
    verdict.kind === "holds" ? [] : [`${change}: ${verdict.why}.`],
  );
  const sentences = [...ofChanges, ...proof.not_replayed.map((reason) => `Not as captured: ${reason}.`)];
  return sentences.length > 0 ? list(sentences.map(unbroken)) : null;
}

interface ChangeRow {
  name: string;
  /** Absent for the capture itself. */
  prediction: Prediction | null;
  proved: ProvedChange | null;
  duration: number;
  commands: number;
  measured: MeasuredDuration | null;
}

function changes({ captured_ns, commands, predictions, proof }: SmbscopePredictionDocument): Section | null {
  if (captured_ns === undefined || commands === undefined || predictions === undefined) return null;
  const captured: ChangeRow = {
    name: "as captured",
    prediction: null,
    proved: null,
    duration: captured_ns,
    commands,
    measured: proof?.as_captured_ns ?? null,
  };
  const rows = predictions.map((prediction, at): ChangeRow => {
    const proved = proof?.changes[at] ?? null;
    return {
      name: prediction.change,
      prediction,
      proved,
      duration: prediction.duration_ns.best,
      commands: commands - prediction.saved_commands,
      measured: proved?.measured_ns ?? null,
    };
  });
  return section("changes", "Under other conditions", [
    changeTable([captured, ...rows], captured_ns, proof),
    proof && part("The replays", ...replays(proof)),
  ]);
}

function changeTable(rows: readonly ChangeRow[], captured: number, proof: Proof | null): HTMLElement {
  const ofCapture = ({ prediction, duration }: ChangeRow) =>
    prediction ? range(prediction.duration_ns) : span(duration);
  const columns: Column<ChangeRow>[] = [
    textColumn("Change", ({ name }) => name),
    timeColumn("Duration", (row) => row.duration, { text: ofCapture, width: 28, help: "Predicted from the capture" }),
    numberColumn("Ratio", (row) => row.duration / Math.max(1, captured), ratio, {
      help: "Ratio to the duration as captured",
    }),
    countColumn("Commands", (row) => row.commands),
  ];
  if (proof) columns.push(...proofColumns());
  return table({ caption: "Durations", columns, rows });
}

function proofColumns(): Column<ChangeRow>[] {
  const results = { holds: "holds", misses: "fails", not_made: "not made" };
  return [
    timeColumn("Predicted replay", ({ proved }) => proved?.predicted_ns?.best ?? null, {
      text: ({ proved }) => (proved?.predicted_ns ? range(proved.predicted_ns) : ABSENT),
      width: 28,
      help: "Predicted from the replay as captured",
    }),
    timeColumn("Measured", ({ measured }) => measured?.best ?? null, {
      text: ({ measured }) => (measured ? range(measured) : ABSENT),
      width: 28,
      help: "Median of the replays, with their range",
    }),
    textColumn("Result", ({ proved }) => (proved ? results[proved.verdict.kind] : null)),
  ];
}

/** Draws the commands of a replay as captured, and below, on the same time axis, with the chosen change. */
function replays({
  clients,
  threads,
  repeated,
  as_captured_commands: before,
  changes,
  as_captured_ns,
}: Proof): HTMLElement[] {
  const made = changes.filter(({ commands }) => commands.length > 0);
  const chosen = new Choice(
    "Change",
    made.map((change) => ({ name: change.change, value: change })),
    0,
  );
  const times = counted(as_captured_ns?.replays ?? 0, "replay");
  const who = `${counted(clients, "user")} over ${counted(threads, "connection")}`;
  const shown = `The commands of the median of ${times}, sent by ${who}: as captured, and with the change, on the same time axis.`;
  const about = lead(repeated ? `${shown} ${repeated}` : shown);
  if (made.length === 0) return [about];
  const draw = (change: ProvedChange) => {
    const end = Math.max(...[before, change.commands].map(lengthOf));
    const title = (name: string, all: readonly unknown[]) => `${name}: ${counted(all.length, "command")}`;
    return [
      part(title("As captured", before), waterfall(before, null, end)),
      part(title(`With ${change.change}`, change.commands), waterfall(change.commands, null, end)),
    ];
  };
  return [about, chosen.place(draw)];
}

function lengthOf(commands: Proof["as_captured_commands"]): number {
  return Math.max(1, ...lanes(commands).map(({ to }) => to));
}

function users({ users, load }: SmbscopePredictionDocument): Section | null {
  if (users === undefined || load === undefined) return null;
  const at = ({ users }: UsersPoint) => users;
  const [first, last] = [users[0]?.users ?? 1, users.at(-1)?.users ?? 1];
  const captured = Math.max(1, Math.round(load.users));
  const chart = lines({
    label: "Response time and commands per second by number of users",
    at: "At",
    x: {
      title: "Users",
      text: (n) => counted(n, "user"),
      tickText: thousands,
      logarithmic: last / first > 20,
      ...(users.length <= 12 ? { ticks: users.map(at) } : {}),
    },
    panels: [
      timePanel("Response time", 220, [
        curve("response time", 0, users, at, ({ response_time_ns: time }) => time.best ?? (time.low + time.high) / 2, {
          dots: true,
          ...bandOf(users, at, ({ response_time_ns: { low, high } }) => [low, high]),
        }),
      ]),
      ratePanel(150, [
        curve("commands", 0, users, at, ({ commands_per_s: rate }) => rate.best ?? (rate.low + rate.high) / 2, {
          dots: true,
          ...bandOf(users, at, ({ commands_per_s: { low, high } }) => [low, high]),
        }),
      ]),
    ],
    ...(captured >= first && captured <= last ? { mark: { x: captured, text: "captured" } } : {}),
    interpolate: true,
  });
  return section("users", "With more users", [
    lead("The band is what the capture leaves open. Where it supports no best estimate, the line is in the middle."),
    chart,
    usersTable(users),
  ]);
}

function usersTable(users: readonly UsersPoint[]): HTMLElement {
  const percentage = (share: number) => `${Math.round(100 * share)}%`;
  const columns: Column<UsersPoint>[] = [
    countColumn("Users", (point) => point.users),
    timeColumn("Response time", (point) => point.response_time_ns.best),
    timeColumn("At least", (point) => point.response_time_ns.low),
    timeColumn("At most", (point) => point.response_time_ns.high),
    speedColumn((point) => point.commands_per_s.best),
    textColumn("Server busy", ({ server_busy: { low, high } }) => `${percentage(low)} to ${percentage(high)}`),
  ];
  return table({ caption: "Response time by number of users", columns, rows: users });
}

function assumptions({ predictions = [], users_assumptions = [] }: SmbscopePredictionDocument): Section | null {
  const all = [...new Set([...predictions.flatMap(({ assumptions }) => assumptions), ...users_assumptions])];
  return section("assumptions", "Taken for granted", [all.length > 0 && list(all)]);
}

/** Formats a duration with its range: `2.41 s (2.12 s to 2.73 s)`. */
function range({ low, best, high }: PredictedDuration | MeasuredDuration): string {
  return unbroken(`${span(best)} (${duration(low)} to ${duration(high)})`);
}
