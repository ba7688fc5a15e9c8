// What the page of a capture shows of its commands, of those of a load point.
import { overTime } from "../charts/overtime";
import { choice, part } from "../lib/page";
import { cumulative, loadCurve } from "../report/groups";
import { slowestTable } from "../report/slowest";
import { entities } from "../report/tables";
import { textColumn } from "../table/columns";
import type { Counted, Run, SmbscopeBenchDocument } from "../types/bench";
import { load, loadText } from "./load";

/** The commands of one run, which can be chosen; none in documents of older versions. */
export function countedPart(bench: SmbscopeBenchDocument): HTMLElement | null {
  const options = bench.runs.flatMap((run) => {
    const { counted } = run;
    return counted && counted.heatmap.bins.length > 0
      ? [{ name: loadText(bench, load(bench, run)), value: { run, counted } }]
      : [];
  });
  if (options.length === 0) return null;
  return choice("Run", options, options.length - 1, ({ run, counted }) => commands(run, counted));
}

function commands(run: Run, counted: Counted) {
  const distribution = cumulative(counted);
  const underLoad = loadCurve(counted);
  const named = <Row extends { is_other: boolean }>(rows: readonly Row[]) => rows.filter((row) => !row.is_other);
  return [
    part("Response times over time", overTime(counted.heatmap, run.started_ns, run.started_ns + run.duration_ns)),
    distribution && part("Latency distribution", distribution),
    underLoad && part("Response time under load", underLoad),
    part("Slowest commands", slowestTable(counted.slowest, false)),
    counted.files.length > 0 && entities("Files", named(counted.files), [textColumn("Path", (row) => row.path)], 0),
    counted.users.length > 1 && entities("Users", named(counted.users), [textColumn("User", (row) => row.user)], 0),
  ];
}
