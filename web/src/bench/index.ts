// The page of a ramp, `smbscope.bench/1`: response time and throughput against users.
import { h } from "../lib/dom";
import { bytes, counted, date, duration, perSecond, span, thousands, unbroken } from "../lib/format";
import {
  facts,
  headPart,
  lead,
  list,
  meanings,
  type Page,
  part,
  resultBox,
  section,
  tile,
  tiles,
  whatNext,
} from "../lib/page";
import { errorCount, total } from "../report/figures";
import type { SmbscopeBenchDocument } from "../types/bench";
import { rampChart, sidesChart, throughputCurve } from "./charts";
import { countedSections } from "./counted";
import { byRate, headline, load, loadText } from "./load";
import { capacityTable, jobsTable, launchTable, runTable, serverTable, sidesTable } from "./tables";

export function benchPage(bench: SmbscopeBenchDocument): Page {
  const { runs } = bench;
  const several = runs.length > 1;
  const sides = sidesTable(bench);
  const tried = capacityTable(bench);
  const launches = launchTable(bench);
  const jobs = launches ? null : jobsTable(bench);
  const server = serverTable(bench);
  return {
    title: title(bench),
    facts: [
      facts([
        ...(bench.launch
          ? launchFacts(bench, bench.launch)
          : ([
              ["Target", targetText(bench)],
              ["Workload", workloadText(bench)],
              ["Load", scheduleText(bench)],
            ] as [string, string][])),
        ["Time", `${date(bench.started_ns)} UTC`],
      ]),
      result(bench),
      !launches && keyFigures(bench),
      several && headPart("Response time against throughput", throughputCurve(bench)),
    ],
    version: bench.generator.version,
    sections: [
      section(
        "ramp",
        launches ? "Launches" : several ? "Load points" : "The run",
        [
          launches,
          runs.length > 0 && !launches && runTable(bench),
          several && part("Response time and throughput against the load", rampChart(bench)),
          jobs && part("Jobs", jobs),
          server && part("What it cost the server", server),
          tried && part("Loads tried for the capacity", tried),
        ],
        launches ? "Launches" : several ? "Load points" : "Run",
      ),
      ...countedSections(bench),
      sides &&
        section(
          "sides",
          "Seen by the client and on the wire",
          [
            lead(
              "The difference is what the client's own system adds: from the program to the network card, and back.",
            ),
            several && sidesChart(bench),
            sides,
            captures(bench),
          ],
          "Client and wire",
        ),
      section(
        "method",
        "How it was measured",
        [
          facts([
            ["Protocol", protocolText(bench)],
            ...Object.entries(bench.environment).map(([name, text]): [string, string] => [capital(name), text]),
          ]),
          h("div", { class: "prose" }, meanings(launches ? LAUNCH_METHOD : METHOD)),
        ],
        "Method",
      ),
    ],
  };
}

function title({ title: given, target, launch }: SmbscopeBenchDocument): string {
  if (launch) return given ? `Launch: ${given}` : `Launch of ${launch.program}`;
  if (given) return `SMB load: ${given}`;
  return target.dialect === "local" ? "Load on a local folder" : `SMB load on ${target.host}`;
}

type Launch = NonNullable<SmbscopeBenchDocument["launch"]>;

function launchFacts(bench: SmbscopeBenchDocument, launch: Launch): [string, string][] {
  const mounted = launch.mounted_by === null ? "" : `, mounted by ${launch.mounted_by}`;
  return [
    ["Command", launch.command.join(" ")],
    ["Until", launch.until],
    ["Files on", `${targetText(bench)}${mounted}`],
    ["Caches", launch.caches],
  ];
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1).replaceAll("_", " ");
}

function targetText({ target }: SmbscopeBenchDocument): string {
  if (target.dialect === "local") {
    const below = target.directory === null ? "" : `, directory ${target.directory}`;
    return `local folder ${target.share}${below}`;
  }
  const directory = target.directory === null ? "" : `, directory ${target.directory}`;
  const host = target.host.includes(":") ? `[${target.host}]` : target.host;
  return `${host}:${target.port}, share ${target.share}${directory}${target.user === null ? "" : `, as ${target.user}`}`;
}

function protocolText({ target }: SmbscopeBenchDocument): string {
  const { dialect } = target;
  if (dialect === "local") {
    return "none: calls on the file system, counted as the SMB2 commands that they stand for";
  }
  const name = dialect === null ? "not negotiated" : /^\d/.test(dialect) ? `SMB ${dialect}` : dialect;
  const found = (asked: string, algorithm: string | null) => (algorithm ? `${asked} (${algorithm})` : asked);
  const signing = found(target.signing, target.signing_algorithm);
  return `${name}, signing ${signing}, encryption ${found(target.encryption, target.cipher)}`;
}

function workloadText({ workload }: SmbscopeBenchDocument): string {
  const set = workload.file_set;
  return [
    `${workload.name} (${workload.source ?? "built in"})`,
    ...Object.entries(workload.parameters).map(([name, value]) => `${name}=${value}`),
    set ? `${counted(set.files, "file")}, ${bytes(set.bytes)}` : null,
    workload.seed === null ? null : `seed ${workload.seed}`,
  ]
    .filter((text) => text !== null)
    .join("; ");
}

function scheduleText({ settings }: SmbscopeBenchDocument): string {
  const { schedule } = settings;
  const how =
    schedule.loop === "open"
      ? `open loop, ${rates(settings.rates, schedule)}${schedule.random ? ", at random" : ""}`
      : `closed loop${schedule.think_ns > 0 ? `, ${duration(schedule.think_ns)} between operations` : ""}`;
  const sessions = settings.sessions_per_user > 1 ? `; ${settings.sessions_per_user} sessions a user` : "";
  const connections =
    settings.connections_per_session > 1 ? `; ${settings.connections_per_session} connections a session` : "";
  const polling = settings.busy_poll ? "; busy polling" : "";
  const warmup = settings.warmup_ns > 0 ? `after ${span(settings.warmup_ns)} of warm-up` : "without warm-up";
  const lasts =
    settings.passes === null
      ? span(settings.duration_ns)
      : `${counted(settings.passes, "pass", "passes")} of each user`;
  const length = `${lasts} at each load point ${warmup}`;
  return `${how}; ${length}${sessions}${connections}${polling}; ${counted(settings.threads, "thread")}`;
}

function rates(all: readonly number[], { rate, per_user }: { rate: number; per_user: boolean }): string {
  const [first, last] = [all[0], all.at(-1)];
  if (first !== undefined && last !== undefined && all.length > 1) {
    return `${thousands(first)} to ${thousands(last)} operations/s of all users together`;
  }
  return `${thousands(rate)} operations/s of ${per_user ? "each user" : "all users together"}`;
}

/** How far the captures can be trusted: each sentence once. */
function captures({ runs }: SmbscopeBenchDocument): HTMLElement | null {
  const said = new Set(runs.flatMap((run) => (run.capture?.state === "made" ? [run.capture.quality] : [])));
  return said.size > 0 ? lead(unbroken([...said].join(" "))) : null;
}

/** Between which loads the capacity is certain. */
function certain(bench: SmbscopeBenchDocument): string {
  const { always = null, never = null } = bench.capacity ?? {};
  const held = always === null ? [] : [`it held in all of 3 tries at ${loadText(bench, always)}`];
  const missed = never === null ? [] : [`${held.length > 0 ? "and" : "it held"} in none at ${loadText(bench, never)}`];
  const parts = [...held, ...missed];
  return parts.length > 0 ? `; ${parts.join(", ")}` : "";
}

/** What the ramp answers; then the capacity that was asked for, and what weakens the figures. */
function result(bench: SmbscopeBenchDocument): HTMLElement {
  const { capacity: found, warnings } = bench;
  const answered = byRate(bench) ? found?.rate : found?.users;
  const capacity =
    typeof answered === "number"
      ? `The server serves ${loadText(bench, answered)} with ${found?.criterion}${certain(bench)}.`
      : `No load that was tried holds ${found?.criterion}.`;
  const sentences = [...(found ? [capacity] : []), ...warnings];
  return resultBox(
    bench.answer.culprit,
    bench.launch ? "Launch" : bench.runs.length > 1 ? "Ramp" : "Run",
    bench.answer.headline ? unbroken(bench.answer.headline) : null,
    sentences.length > 0 && list(sentences.map(unbroken)),
    whatNext(bench.answer.next),
  );
}

function keyFigures(bench: SmbscopeBenchDocument): HTMLElement {
  const { runs } = bench;
  const best = runs.reduce((a, b) => (b.operations_per_second > (a?.operations_per_second ?? 0) ? b : a), runs[0]);
  const sum = (value: (run: (typeof runs)[number]) => number) => runs.reduce((total, run) => total + value(run), 0);
  const first = runs[0];
  const unexpected = sum(({ workload_operations: operations }) =>
    operations.reduce((count, operation) => count + total(operation.unexpected), 0),
  );
  const expected = unexpected === 0 && sum(errorCount) > 0 && runs.every((run) => run.workload_operations.length > 0);
  return tiles(
    tile("Overall", duration(bench.overall_response_time_ns), "mean of ramp"),
    best ? tile("Peak", perSecond(best.operations_per_second), `at ${loadText(bench, load(bench, best))}`) : null,
    first
      ? tile("Lightest load", duration(headline(first).mean), `mean at ${loadText(bench, load(bench, first))}`)
      : null,
    tile("Commands", thousands(sum((run) => run.operations)), `in ${span(sum((run) => run.duration_ns))}`),
    tile("Read", bytes(sum((run) => run.bytes_read))),
    tile("Written", bytes(sum((run) => run.bytes_written))),
    tile("Errors", thousands(sum((run) => errorCount(run))), expected ? "all expected" : undefined),
  );
}

const LAUNCH_METHOD: [string, string][] = [
  [
    "Took",
    "From the start of the program until what ends the launch was seen: looked for every 2 ms, a window every 10 ms. One launch that does not count goes before.",
  ],
  [
    "Wait",
    "The part of a launch in which at least one command was outstanding at the server, on any connection, by the capture. A command belongs to the launch in which it began.",
  ],
  [
    "Response time",
    "From the first packet of the request to the last of the response, as in every report of smbscope.",
  ],
  ["Cold caches", "Before each launch the file caches of this machine are emptied, and the share is mounted anew."],
];

const METHOD: [string, string][] = [
  [
    "Response time",
    "In the client: from handing a request to the system to having the whole response. On the wire: from the first packet of the request to the last of the response, as in every report of smbscope.",
  ],
  [
    "Overall response time",
    "The area under the curve of mean response time against users, divided by the range of users. Compare it only with that of a ramp of the same load points.",
  ],
  [
    "Closed and open loop",
    "In a closed loop, users begin an operation when the one before is done: a server that stands still holds back the load, and so hides in the percentiles. In an open loop operations have a time at which they are due; response times of load points, the curve, the overall response time and the capacity run from there.",
  ],
  [
    "Stall",
    "A time in which commands were outstanding and the server answered none on any connection: at least 200 ms, and 100 times the median response time.",
  ],
  [
    "Added",
    "The client’s time less the wire’s: of each command that was seen from both places where they were matched one by one, otherwise the difference of the two percentiles.",
  ],
  [
    "Job",
    "A whole pass of a workload that has an end, from its first request to its last response, think time within it included. It counts where it began in the measured part and was completed.",
  ],
  [
    "Percentiles",
    "A percentile is shown only where enough values support it: the 90th needs 10, the 95th 20, the 99th 100, the 99.9th 1,000. A dash says that a value is not known.",
  ],
  ["Warm-up", "What was done before the measured part of a run does not count."],
];
