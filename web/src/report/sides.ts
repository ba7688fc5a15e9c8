// The time between capture points of the same traffic: a picture of the path, and the figures of each pair of neighbours.
import { chain, type MeanTimes, meanTimes, overallMeans, sideBars, timedGroups } from "../charts/sides";
import { type Child, h } from "../lib/dom";
import { counted, duration, percent, span, thousands } from "../lib/format";
import { facts, lead, part, type Section, section } from "../lib/page";
import { countColumn, shareColumn, textColumn, timeColumn } from "../table/columns";
import { scrollingGrid } from "../table/grid";
import { table } from "../table/table";
import type { CapturePoint, PathSegment, SmbscopeReportDocument, Times } from "../types/report";

/** Clocks that agree within this are said to agree, as in the text report. */
const AGREES_NS = 1_000;

export function sides({ sides: found, filter }: SmbscopeReportDocument): Section | null {
  if (!found || found.segments.length === 0) return null;
  const [first] = found.points;
  const { segments } = found;
  return section(
    "sides",
    "Between the capture points",
    [
      lead(
        "Mean time per command, there and back. It is exact: the difference of two service times, each by one clock. ",
        `All other figures on this page are from the capture at ${first?.name ?? "the first point"}.`,
        filter !== null && " The filter does not apply to this section.",
      ),
      chain(found),
      pointsGrid(found.points),
      ...segments.map((segment, i) => segmentPart(segment, i === segments.length - 1)),
    ],
    "Capture points",
  );
}

function pointsGrid(points: readonly CapturePoint[]): HTMLElement {
  return scrollingGrid({
    caption: "Capture points",
    columns: [["Point"], ["Commands", "number"], ["Connections", "number"], ["Captures"]],
    rows: points.map(({ name, captures, connections, exchanges }) => [
      name,
      thousands(exchanges),
      thousands(connections),
      h("span", { class: "names" }, ...captures.map((capture) => h("span", { class: "name" }, capture))),
    ]),
  });
}

function segmentPart(segment: PathSegment, isLast: boolean): HTMLElement {
  return part(
    `From ${segment.from} to ${segment.to}`,
    facts(segmentFacts(segment)),
    sideBars(segment, isLast),
    groupsTable(segment),
    directions(segment),
    h(
      "p",
      { class: "table-note" },
      segment.lost_to_server === null && "Losses are unknown if a device ends TCP. ",
      `How the shortest round trip of ${duration(segment.round_trip_ns)} divides between the directions is unknown: a clock that is ahead looks like a longer path. Queue: time of the last packet of a request or response above the shortest in that direction; commands with retransmissions don’t count.`,
    ),
  );
}

function segmentFacts(segment: PathSegment): [string, Child][] {
  const { from, to, connections, pairs, only_from, only_to, round_trip_ns } = segment;
  const only = (count: number, point: string) => count > 0 && `${counted(count, "command")} at ${point}`;
  const unpaired = [only(only_from, from), only(only_to, to)].filter((text) => text !== false);
  return [
    ["At both points", `${counted(pairs, "command")} on ${counted(connections, "connection")}`],
    ...(unpaired.length > 0
      ? [["At one point only", `${unpaired.join(", ")} (not captured at the other, or answered in between)`] as const]
      : []),
    ["Shortest round trip", duration(round_trip_ns)],
    ["Clocks", clockText(segment)],
    ["Device in between", deviceText(segment)],
  ] as [string, Child][];
}

/** Compares the clocks of two points: `server is 5.00 s ahead (± 8.07 ms), no drift measured`. */
export function clockText({ from, to, clock }: Pick<PathSegment, "from" | "to" | "clock">): string {
  const { offset_ns, drift_ppm, uncertainty_ns, steps } = clock;
  const isSame = Math.abs(offset_ns) <= Math.max(AGREES_NS, uncertainty_ns);
  const ahead = isSame ? "agree" : `${offset_ns > 0 ? to : from} is ${span(Math.abs(offset_ns))} ahead`;
  const faster = drift_ppm > 0 ? to : from;
  const drift =
    drift_ppm === 0 ? "no drift measured" : `${faster} gains ${Number(Math.abs(drift_ppm).toPrecision(2))} ppm`;
  const stepped = steps > 0 ? `; ${counted(steps, "step")} corrected` : "";
  return `${ahead} (±\u00a0${duration(uncertainty_ns)}), ${drift}${stepped}`;
}

/** Tells what a device between the points does to connections. */
export function deviceText({
  connections,
  terminated,
  rewritten,
}: Pick<PathSegment, "connections" | "terminated" | "rewritten">): string {
  const of = (count: number) =>
    connections === 1
      ? "the connection"
      : count === connections
        ? `all ${thousands(connections)} connections`
        : `${thousands(count)} of ${counted(connections, "connection")}`;
  const found = [
    terminated > 0 && `ends TCP on ${of(terminated)}: it acknowledges for the other side`,
    rewritten > 0 && `changes addresses or ports of ${of(rewritten)}`,
  ].filter((text) => text !== false);
  return found.length > 0 ? found.join("; ") : "none found: addresses and ports are the same";
}

interface GroupRow extends MeanTimes {
  path: Pick<Times, "p95" | "max"> | null;
}

function groupsTable(segment: PathSegment): HTMLElement | null {
  const overall = overallMeans(segment);
  if (!overall) return null;
  const groups: GroupRow[] = timedGroups(segment).map((group) => ({ ...meanTimes(group), path: group.path }));
  const { from, to } = segment;
  return table<GroupRow>({
    caption: `From ${from} to ${to}`,
    columns: [
      textColumn("Group", (row) => row.name, { width: 14 }),
      countColumn("Commands", (row) => row.commands, { help: "Commands that both points saw" }),
      timeColumn("Mean", (row) => row.response, { help: `Mean response time at ${from}` }),
      timeColumn("Between", (row) => row.between, { help: "Mean time between the points, there and back" }),
      timeColumn("Beyond", (row) => row.beyond, { help: `Mean time from request to response at ${to}` }),
      timeColumn("Transfer", (row) => row.transfer, {
        help: `Mean time from the first to the last packet of request and response at ${from}`,
      }),
      shareColumn("Share between", (row) => (row.response > 0 ? row.between / row.response : null), {
        help: "Share of the response time between the points",
      }),
      timeColumn("Between p95", (row) => row.path?.p95 ?? null),
      timeColumn("Between, slowest", (row) => row.path?.max ?? null),
    ],
    rows: groups.length > 1 ? [...groups, { ...overall, path: null }] : groups,
    filter: false,
  });
}

function directions(segment: PathSegment): HTMLElement {
  const { queued_to_server: up, queued_to_client: down, round_trip_ns } = segment;
  const within = `0 to ${duration(round_trip_ns)}`;
  const both = (title: string, figure: (times: Times) => number | null) => [
    title,
    duration(figure(up)),
    duration(figure(down)),
  ];
  return scrollingGrid({
    caption: `Directions between ${segment.from} and ${segment.to}`,
    columns: [["By direction"], ["To the server", "number"], ["To the client", "number"]],
    rows: [
      ["Shortest time", within, within],
      both("Queue, mean", ({ mean }) => mean),
      both("Queue, p95", ({ p95 }) => p95),
      both("Queue, longest", ({ max }) => max),
      ["Data packets", thousands(segment.packets_to_server), thousands(segment.packets_to_client)],
      [
        "Lost segments",
        lostText(segment.lost_to_server, segment.packets_to_server),
        lostText(segment.lost_to_client, segment.packets_to_client),
      ],
    ],
  });
}

/** Formats lost segments with their share of the data packets. */
export function lostText(lost: number | null, packets: number): string {
  if (lost === null) return "unknown";
  return lost > 0 ? `${thousands(lost)} (${percent(lost, Math.max(lost, packets))})` : "0";
}
