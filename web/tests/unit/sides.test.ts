// The time between capture points: means, parts of a bar, clocks and devices.
import { describe, expect, it } from "vitest";
import { meanTimes, overallMeans, parts } from "../../src/charts/sides";
import { clockText, deviceText, lostText } from "../../src/report/sides";
import { groupPath, sides } from "../documents/sides";

const MS = 1_000_000;
const plain = (text: string) => text.replaceAll("\u00a0", " ");

describe("mean times", () => {
  it("are weighted by commands and leave out expected waits", () => {
    const { segments } = sides();
    // 40 reads with 3 ms beyond and 4 ms of transfer, 40 opens with 5 ms, 16.975 ms between on average.
    expect(overallMeans(segments[0] ?? { groups: [] })).toEqual({
      name: "All",
      commands: 80,
      response: 22.975 * MS,
      between: 16.975 * MS,
      beyond: 4 * MS,
      transfer: 2 * MS,
    });
  });

  it("are unknown without commands", () => {
    expect(overallMeans({ groups: [] })).toBeNull();
    expect(overallMeans({ groups: [groupPath("Waiting", MS, MS)] })).toBeNull();
  });
});

describe("a bar", () => {
  const read = meanTimes(groupPath("Read", 16 * MS, 3 * MS, 4 * MS));

  it("has the shortest round trip, the rest of the path, the time beyond, and the transfer", () => {
    expect(parts(read, 16 * MS, true)).toEqual([
      ["shortest", 16 * MS],
      ["above", 0.975 * MS],
      ["server", 3 * MS],
      ["transfer", 4 * MS],
    ]);
    const sum = parts(read, 16 * MS, true).reduce((all, [, ns]) => all + ns, 0);
    expect(sum).toBe(read.response);
  });

  it("does not take the time beyond a point in between for the server's", () => {
    expect(parts(read, 16 * MS, false).map(([kind]) => kind)).toEqual(["shortest", "above", "further", "transfer"]);
  });

  it("has no part without time", () => {
    expect(parts({ ...read, between: MS, beyond: 0, transfer: 0 }, 16 * MS, true)).toEqual([["shortest", MS]]);
  });
});

describe("the clocks", () => {
  const clock = { offset_ns: 0, drift_ppm: 0, uncertainty_ns: 8_069_000, steps: 0 };
  const said = (more: Partial<typeof clock>) =>
    plain(clockText({ from: "client", to: "server", clock: { ...clock, ...more } }));

  it("say which one is ahead, and within what", () => {
    expect(said({})).toBe("agree (± 8.07 ms), no drift measured");
    expect(said({ offset_ns: -8_000_000 })).toBe("agree (± 8.07 ms), no drift measured");
    expect(said({ offset_ns: 5_000_013_000 })).toBe("server is 5.00 s ahead (± 8.07 ms), no drift measured");
    expect(said({ offset_ns: -10_800e9, drift_ppm: -80.04, steps: 2 })).toBe(
      "client is 3 h 00 min ahead (± 8.07 ms), client gains 80 ppm; 2 steps corrected",
    );
  });
});

describe("a device in between", () => {
  it("is said to end TCP, to change addresses, or not to be found", () => {
    const none = { connections: 3, terminated: 0, rewritten: 0 };
    expect(deviceText(none)).toBe("none found: addresses and ports are the same");
    expect(plain(deviceText({ ...none, rewritten: 3 }))).toBe("changes addresses or ports of all 3 connections");
    expect(plain(deviceText({ ...none, terminated: 2 }))).toMatch(/^ends TCP on 2 of 3 connections: it acknowledges/);
    expect(deviceText({ connections: 1, terminated: 1, rewritten: 1 })).toMatch(
      /^ends TCP on the connection: .*; changes addresses or ports of the connection$/,
    );
  });
});

describe("losses", () => {
  it("are unknown if a device ends TCP, and otherwise a share of the packets", () => {
    expect(lostText(null, 100)).toBe("unknown");
    expect(lostText(0, 100)).toBe("0");
    expect(lostText(12, 1_204)).toBe("12 (1.0%)");
  });
});
