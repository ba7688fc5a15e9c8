// Page of a bench document, `smbscope.bench/1`.
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
          several && part("Response time and throughput against load", rampChart(bench)),
          jobs && part("Jobs", jobs),
          server && part("Server load", server),
          tried && part("Loads tried to find the capacity", tried),
        ],
        launches ? "Launches" : several ? "Load points" : "Run",
      ),
      ...countedSections(bench),
      sides &&
        section("sides", "Client and wire", [
          lead(
            "The difference is the time added by the client's own system, between the program and the network card.",
          ),
          several && sidesChart(bench),
          sides,
          captures(bench),
        ]),
      section(
        "method",
        "How the figures are measured",
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
    return "none: file system calls, counted as the equivalent SMB2 commands";
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
      ? `open loop, ${rates(settings.rates, schedule)}${schedule.random ? ", at random intervals" : ""}`
      : `closed loop${schedule.think_ns > 0 ? `, ${duration(schedule.think_ns)} between operations` : ""}`;
  const sessions = settings.sessions_per_user > 1 ? `; ${settings.sessions_per_user} sessions per user` : "";
  const connections =
    settings.connections_per_session > 1 ? `; ${settings.connections_per_session} connections per session` : "";
  const polling = settings.busy_poll ? "; busy polling" : "";
  const warmup = settings.warmup_ns > 0 ? `after ${span(settings.warmup_ns)} of warm-up` : "without warm-up";
  const lasts =
    settings.passes === null ? span(settings.duration_ns) : `${counted(settings.passes, "pass", "passes")} per user`;
  const length = `${lasts} per load point ${warmup}`;
  return `${how}; ${length}${sessions}${connections}${polling}; ${counted(settings.threads, "thread")}`;
}

function rates(all: readonly number[], { rate, per_user }: { rate: number; per_user: boolean }): string {
  const [first, last] = [all[0], all.at(-1)];
  if (first !== undefined && last !== undefined && all.length > 1) {
    return `${thousands(first)} to ${thousands(last)} operations/s across all users`;
  }
  return `${thousands(rate)} operations/s ${per_user ? "per user" : "across all users"}`;
}

/** Quality of the captures, each sentence once. */
function captures({ runs }: SmbscopeBenchDocument): HTMLElement | null {
  const said = new Set(runs.flatMap((run) => (run.capture?.state === "made" ? [run.capture.quality] : [])));
  return said.size > 0 ? lead(unbroken([...said].join(" "))) : null;
}

/** Tries around the capacity, as a sentence of its own. */
function certain(bench: SmbscopeBenchDocument): string {
  const { always = null, never = null } = bench.capacity ?? {};
  const met = always === null ? null : `all 3 tries met it at ${loadText(bench, always)}`;
  const missed = never === null ? null : `none ${met === null ? "of 3 tries met it " : ""}at ${loadText(bench, never)}`;
  const parts = [met, missed].filter((part) => part !== null).join(", ");
  return parts === "" ? "" : ` ${parts.charAt(0).toUpperCase()}${parts.slice(1)}.`;
}

/** Creates the box with the headline, the capacity, the evidence and the warnings. */
function result(bench: SmbscopeBenchDocument): HTMLElement {
  const { answer, capacity: found, warnings } = bench;
  const answered = byRate(bench) ? found?.rate : found?.users;
  const capacity =
    typeof answered === "number"
      ? `The server sustains ${loadText(bench, answered)} with ${found?.criterion}.${certain(bench)}`
      : `None of the loads tried met ${found?.criterion}.`;
  const sentences = [...(found ? [capacity] : []), ...answer.evidence, ...warnings];
  return resultBox(
    answer.culprit,
    bench.launch ? "Launch" : bench.runs.length > 1 ? "Ramp" : "Run",
    answer.headline ? unbroken(answer.headline) : null,
    sentences.length > 0 && list(sentences.map(unbroken)),
    whatNext(answer.next),
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
  const several = runs.length > 1;
  return tiles(
    several ? tile("Overall", duration(bench.overall_response_time_ns), "mean of ramp") : null,
    best
      ? tile(
          several ? "Peak" : "Throughput",
          perSecond(best.operations_per_second),
          `at ${loadText(bench, load(bench, best))}`,
        )
      : null,
    first
      ? tile(
          several ? "Lightest load" : "Mean",
          duration(headline(first).mean),
          `${several ? "mean " : ""}at ${loadText(bench, load(bench, first))}`,
        )
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
    "From the start of the program until the end of the launch was detected, checked every 2 ms, for a window every 10 ms. One unmeasured launch precedes the others.",
  ],
  [
    "Wait",
    "Time with at least one command outstanding on any connection, according to the capture. A command belongs to the launch in which it started.",
  ],
  [
    "Response time",
    "From the first packet of the request to the last packet of the response, as in all smbscope reports.",
  ],
  ["Cold caches", "Before each launch, this machine's file caches are dropped and the share is remounted."],
];

const METHOD: [string, string][] = [
  [
    "Response time",
    "In the client: from passing the request to the system until the complete response has arrived. On the wire: from the first packet of the request to the last packet of the response, as in all smbscope reports.",
  ],
  [
    "Overall response time",
    "The area under the curve of mean response time against users, divided by the range of users. It is comparable only between ramps with the same load points.",
  ],
  [
    "Closed and open loop",
    "In a closed loop, users start an operation when the previous one is done. A server that stalls also stops the load, which hides the stall in the percentiles. In an open loop, each operation has a due time. Response times of load points, the curve, the overall response time and the capacity are measured from the due time.",
  ],
  [
    "Stall",
    "A period with outstanding commands in which the server sent no response on any connection, for at least 200 ms and 100× the median response time.",
  ],
  [
    "Added",
    "The client’s time minus the wire’s, taken for each command if client and capture were matched one by one, otherwise the difference between the two percentiles.",
  ],
  [
    "Job",
    "A complete pass of a finite workload, from its first request to its last response, including think time. It counts if it started in the measured part and was completed.",
  ],
  [
    "Percentiles",
    "A percentile needs enough values: 10 for the 90th, 20 for the 95th, 100 for the 99th and 1,000 for the 99.9th. A dash means that the value is unknown.",
  ],
  ["Warm-up", "Commands before the measured part of a run are excluded."],
];
