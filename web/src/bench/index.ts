// The page of a ramp, `smbscope.bench/1`: response time and throughput against users.
import { h } from "../lib/dom";
import { bytes, date, duration, span, thousands } from "../lib/format";
import { facts, lead, type Page, part, tile, tiles } from "../lib/page";
import type { SmbscopeBenchDocument } from "../types/bench";
import { groupChart, intervalsPart, rampChart } from "./charts";
import { errorTable, groupTable, runTable, sidesTable } from "./tables";

export function benchPage(bench: SmbscopeBenchDocument): Page {
  const { runs, target, workload } = bench;
  const several = runs.length > 1;
  const errors = errorTable(bench);
  const sides = sidesTable(bench);
  return {
    title: bench.title ? `SMB load: ${bench.title}` : `SMB load on ${target.host}`,
    facts: [
      facts([
        ["Target", `${target.host}:${target.port}, share ${target.share}`],
        [
          "Protocol",
          `${target.dialect ?? "not negotiated"}, signing ${target.signing}, encryption ${target.encryption}`,
        ],
        ["Workload", workload.source ? `${workload.name} (${workload.source})` : workload.name],
        ["Time", `${date(bench.started_ns)} UTC`],
        ...Object.entries(bench.environment).map(([name, text]): [string, string] => [capital(name), text]),
      ]),
      capacity(bench),
      keyFigures(bench),
    ],
    version: bench.generator.version,
    sections: [
      runs.length > 0
        ? {
            id: "ramp",
            title: several ? "Response time and throughput against users" : "The run",
            link: several ? "Ramp" : "Run",
            content: [several ? rampChart(bench) : null, part("Load points", runTable(bench))],
          }
        : null,
      runs.some((run) => run.groups.length > 0)
        ? {
            id: "groups",
            title: "By group of commands",
            link: "Groups",
            content: [several ? groupChart(bench) : null, part("Response times by group", groupTable(bench))],
          }
        : null,
      sides
        ? {
            id: "sides",
            title: "Seen by the client and on the wire",
            link: "Client and wire",
            content: [
              lead(
                "The difference is what the client's own system adds: from the program to the network card, and back.",
              ),
              sides,
            ],
          }
        : null,
      runs.some((run) => run.intervals.length > 1)
        ? { id: "intervals", title: "Each run over time", link: "Over time", content: [intervalsPart(bench)] }
        : null,
      errors ? { id: "errors", title: "Errors", content: [errors] } : null,
      { id: "method", title: "How it was measured", link: "Method", content: [method()] },
    ],
  };
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1).replaceAll("_", " ");
}

/** The answer in words. */
function capacity(bench: SmbscopeBenchDocument): HTMLElement {
  const { capacity: found, runs, warnings } = bench;
  const most = Math.max(0, ...runs.map((run) => run.users));
  const headline =
    found === null
      ? `${thousands(runs.length)} load points, up to ${thousands(most)} users.`
      : found.users === null
        ? "The server holds the criterion at no load of this ramp."
        : found.users >= most
          ? `The server serves all ${thousands(found.users)} users of this ramp.`
          : `The server serves ${thousands(found.users)} users.`;
  return h(
    "div",
    { class: `verdict ${found?.users === null ? "who-network" : "who-server"}` },
    h("p", { class: "who" }, "Capacity"),
    h("p", { class: "headline" }, headline),
    found ? h("p", { class: "trust" }, `Criterion: ${found.criterion}.`) : null,
    warnings.length > 0 ? h("ul", {}, ...warnings.map((warning) => h("li", {}, warning))) : null,
  );
}

function keyFigures(bench: SmbscopeBenchDocument): HTMLElement {
  const { runs } = bench;
  const best = runs.reduce((a, b) => (b.operations_per_second > (a?.operations_per_second ?? 0) ? b : a), runs[0]);
  const sum = (value: (run: (typeof runs)[number]) => number) => runs.reduce((total, run) => total + value(run), 0);
  const first = runs[0];
  return tiles(
    tile("Overall mean", duration(bench.overall_response_time_ns), "of the ramp"),
    best ? tile("At most", `${thousands(Math.round(best.operations_per_second))}/s`, `at ${best.users} users`) : null,
    first
      ? tile(
          "Lightest load",
          duration(first.total.client.mean),
          `mean at ${first.users} ${first.users === 1 ? "user" : "users"}`,
        )
      : null,
    tile("Operations", thousands(sum((run) => run.operations)), `in ${span(sum((run) => run.duration_ns))}`),
    tile("Read", bytes(sum((run) => run.bytes_read))),
    tile("Written", bytes(sum((run) => run.bytes_written))),
    tile("Errors", thousands(sum((run) => Object.values(run.errors).reduce((a, b) => a + b, 0)))),
  );
}

function method(): HTMLElement {
  return h(
    "div",
    { class: "prose" },
    h(
      "dl",
      { class: "meanings" },
      h("dt", {}, "Response time"),
      h(
        "dd",
        {},
        "In the client: from handing a request to the system to having the whole response. On the wire: from the first packet of the request to the last of the response, as in every report of smbscope.",
      ),
      h("dt", {}, "Overall response time"),
      h("dd", {}, "The mean over all load points, each weighted by its throughput."),
      h("dt", {}, "Percentiles"),
      h(
        "dd",
        {},
        "A percentile is shown only where enough values support it: the 90th needs 10, the 95th 20, the 99th 100, the 99.9th 1,000. A dash says that a value is not known.",
      ),
      h("dt", {}, "Warm-up"),
      h("dd", {}, "What was done before the measured part of a run does not count."),
    ),
  );
}
