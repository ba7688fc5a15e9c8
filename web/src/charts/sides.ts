// Time of commands between and beyond capture points: the path from the client to the server as one picture, and a stacked
// bar for each command group on a common scale.
import { h } from "../lib/dom";
import { counted, duration, prosePercent } from "../lib/format";
import type { GroupPath, PathSegment, SidesFigures } from "../types/report";

/** Mean times of some commands. The first is the sum of the others. */
export interface MeanTimes {
  name: string;
  commands: number;
  response: number;
  between: number;
  beyond: number;
  transfer: number;
}

export function meanTimes({ group, response_time, path, beyond, transfer }: GroupPath): MeanTimes {
  return {
    name: group,
    commands: response_time.count,
    response: response_time.mean ?? 0,
    between: path.mean ?? 0,
    beyond: beyond.mean ?? 0,
    transfer: transfer.mean ?? 0,
  };
}

/** Returns the groups without expected waits. */
export function timedGroups({ groups }: Pick<PathSegment, "groups">): GroupPath[] {
  return groups.filter(({ group }) => group !== "Waiting");
}

/** Computes the means over all commands except expected waits. Null without any. */
export function overallMeans(segment: Pick<PathSegment, "groups">): MeanTimes | null {
  const all = timedGroups(segment).map(meanTimes);
  const commands = all.reduce((sum, group) => sum + group.commands, 0);
  if (commands === 0) return null;
  const mean = (figure: Exclude<keyof MeanTimes, "name" | "commands">) =>
    all.reduce((sum, group) => sum + group[figure] * group.commands, 0) / commands;
  return {
    name: "All",
    commands,
    response: mean("response"),
    between: mean("between"),
    beyond: mean("beyond"),
    transfer: mean("transfer"),
  };
}

type Kind = "shortest" | "above" | "server" | "further" | "transfer";

const KIND_CLASSES: Record<Kind, string> = {
  shortest: "part-network",
  above: "part-network above-shortest",
  server: "part-server",
  further: "part-server_or_network",
  transfer: "part-response_transfer",
};

/** Parts of a mean response time. The first two are the time between the points. */
export function parts({ between, beyond, transfer }: MeanTimes, roundTrip: number, isLast: boolean): [Kind, number][] {
  const shortest = Math.min(roundTrip, between);
  const all: [Kind, number][] = [
    ["shortest", shortest],
    ["above", between - shortest],
    [isLast ? "server" : "further", beyond],
    ["transfer", transfer],
  ];
  return all.filter(([, ns]) => ns > 0);
}

/** Draws the points as a chain with the mean time between neighbours. */
export function chain({ points, segments }: SidesFigures): HTMLElement {
  const last = segments.at(-1);
  const beyond = last && overallMeans(last)?.beyond;
  const { transfer = 0 } = (segments[0] && overallMeans(segments[0])) ?? {};
  const between = segments.reduce((sum, segment) => sum + (overallMeans(segment)?.between ?? 0), 0);
  const whole = between + (beyond ?? 0) + transfer;
  const time = (ns: number | null | undefined) => h("b", { class: "time" }, duration(ns));
  const line = () => h("span", { class: "line", "aria-hidden": "true" });
  const share = (ns: number | null | undefined) =>
    ns === null || ns === undefined || whole <= 0 ? "" : ` (${prosePercent(ns, whole)})`;
  const steps = points.flatMap(({ name }, i) => {
    const point = h("li", { class: "point" }, h("span", { class: "name" }, name));
    const segment = segments[i];
    if (!segment) return [point];
    const between = overallMeans(segment)?.between;
    const device = deviceText(segment);
    const box = device === null ? null : h("span", { class: "device" }, device);
    const lost = (segment.lost_to_server ?? 0) + (segment.lost_to_client ?? 0);
    const about = h(
      "span",
      { class: "what" },
      `between${share(between)}`,
      lost > 0 && ", ",
      lost > 0 && h("span", { class: "flag" }, `${counted(lost, "segment")} lost`),
    );
    return [point, h("li", { class: "hop" }, time(between), line(), box, about)];
  });
  const end = h(
    "li",
    { class: "hop end" },
    time(beyond),
    line(),
    h("span", { class: "what" }, "beyond ", h("span", { class: "name" }, last?.to ?? ""), share(beyond)),
  );
  const rest =
    transfer > 0 && h("p", { class: "table-note" }, `Transfer of data: ${duration(transfer)}${share(transfer)}`);
  return h("div", {}, h("ol", { class: "chain" }, ...steps, end), rest);
}

/** Describes devices in between in a few words. Null if none was found. */
function deviceText({ terminated, rewritten }: PathSegment): string | null {
  if (terminated > 0) return "device ends TCP";
  return rewritten > 0 ? "addresses or ports rewritten" : null;
}

/** Creates the bars of a segment: all commands, then each group. Returns null without commands. */
export function sideBars(segment: PathSegment, isLast: boolean): HTMLElement | null {
  const overall = overallMeans(segment);
  if (!overall) return null;
  const groups = timedGroups(segment).map(meanTimes);
  const rows = groups.length > 1 ? [overall, ...groups] : groups;
  const longest = Math.max(1, ...rows.map(({ between, beyond, transfer }) => between + beyond + transfer));
  const bars = rows.map((row) => bar(row, segment, isLast, longest));
  const kinds = new Set(rows.flatMap((row) => parts(row, segment.round_trip_ns, isLast).map(([kind]) => kind)));
  return h(
    "figure",
    { class: "side-bars" },
    h("p", { class: "bar-label" }, "Mean response time by group"),
    h("ol", {}, ...bars),
    legend(segment, kinds),
  );
}

function bar(row: MeanTimes, segment: PathSegment, isLast: boolean, longest: number): HTMLElement {
  const pieces = parts(row, segment.round_trip_ns, isLast).map(([kind, ns]) => {
    const share = ns / longest;
    const style = `flex-basis: ${(100 * share).toFixed(4)}%`;
    const text = duration(ns);
    // A time needs this share of a bar on a screen, and twice as much on a phone.
    const label = share > 0.13 && h("span", { class: share > 0.26 ? "in-bar" : "in-bar in-wide" }, text);
    return h("span", { class: `segment ${KIND_CLASSES[kind]}`, style, title: text }, label);
  });
  return h(
    "li",
    {},
    h("span", {}, row.name),
    h("span", { class: "split-bar", "aria-hidden": "true" }, ...pieces),
    value(row.between, "between"),
    value(row.beyond, "beyond"),
  );
}

function value(ns: number, where: string): HTMLElement {
  return h("span", { class: "value" }, h("b", {}, duration(ns)), ` ${where}`);
}

function legend({ from, to, round_trip_ns }: PathSegment, kinds: ReadonlySet<Kind>): HTMLElement {
  const item = (kind: Kind, text: string) =>
    kinds.has(kind) &&
    h(
      "span",
      { class: "item" },
      h("span", { class: `swatch ${KIND_CLASSES[kind]}`, "aria-hidden": "true" }),
      h("span", { class: "name" }, text),
    );
  return h(
    "div",
    { class: "legend" },
    item("shortest", `between ${from} and ${to}: shortest round trip (${duration(round_trip_ns)})`),
    item("above", "between: above the shortest"),
    item("server", `beyond ${to}`),
    item("further", `beyond ${to}`),
    item("transfer", "transfer of data"),
  );
}
