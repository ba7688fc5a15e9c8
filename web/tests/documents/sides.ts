// The same traffic at several capture points: a path of 16 ms, a second one of 2 ms, and a server that takes 3 ms.
import type { GroupPath, PathSegment, SidesFigures } from "../../src/types/report";
import { times } from "./simulate";

const MS = 1_000_000;

/** Times of 40 commands, 0 to 1.95 ms above the shortest time between the points. */
export function groupPath(group: GroupPath["group"], shortest: number, beyond: number, transfer = 0): GroupPath {
  const path = Array.from({ length: 40 }, (_, i) => shortest + i * 0.05 * MS);
  return {
    group,
    response_time: times(path.map((ns) => ns + beyond + transfer)),
    beyond: times(path.map(() => beyond)),
    path: times(path),
    transfer: times(path.map(() => transfer)),
  };
}

function segment(from: string, to: string, more: Partial<PathSegment> = {}): PathSegment {
  return {
    from,
    to,
    connections: 3,
    rewritten: 0,
    terminated: 0,
    pairs: 120,
    only_from: 0,
    only_to: 0,
    clock: { offset_ns: -10_800_000 * MS, drift_ppm: 80.04, uncertainty_ns: 8 * MS, steps: 1 },
    round_trip_ns: 16 * MS,
    queued_to_server: times([0, 0.2 * MS, 0.4 * MS]),
    queued_to_client: times([0, 1.2 * MS, 2.4 * MS]),
    lost_to_server: 12,
    lost_to_client: 0,
    packets_to_server: 1_204,
    packets_to_client: 6_342,
    groups: [groupPath("Read", 16 * MS, 3 * MS, 4 * MS), groupPath("Open/Close", 16 * MS, 5 * MS)],
    ...more,
  };
}

/** Creates the figures of points with these names, from the client to the server. A device ends TCP on each segment but the first. */
export function sides(names: readonly string[] = ["client", "server"]): SidesFigures {
  const segments = names.slice(1).map((to, i) => {
    const from = names[i] ?? "";
    if (i === 0) return segment(from, to, { groups: [...segment(from, to).groups, waits] });
    const device = { rewritten: 3, terminated: 2, lost_to_server: null, lost_to_client: null, only_from: 4 };
    const groups = [groupPath("Read", 2 * MS, MS), groupPath("Open/Close", 2 * MS, 3 * MS)];
    return segment(from, to, { ...device, round_trip_ns: 2 * MS, groups });
  });
  return {
    points: names.map((name) => ({ name, captures: [`/captures/${name}.pcap`], connections: 3, exchanges: 124 })),
    segments,
  };
}

/** Expected waits, which the page leaves out. */
const waits = groupPath("Waiting", 16 * MS, 60_000 * MS);
