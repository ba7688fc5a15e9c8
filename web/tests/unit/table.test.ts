import { describe, expect, it } from "vitest";
import { type Column, compare, countColumn, matches, sorted, textColumn, timeColumn } from "../../src/table/columns";
import { csv, tsv } from "../../src/table/export";

interface Row {
  name: string | null;
  count: number | null;
}

const columns: Column<Row>[] = [
  textColumn("Name", (row) => row.name),
  countColumn("Count", (row) => row.count),
  timeColumn("Time", (row) => row.count),
];
const [name, count] = columns as [Column<Row>, Column<Row>];
const rows: Row[] = [
  { name: "10.0.0.10", count: 3 },
  { name: "10.0.0.9", count: null },
  { name: null, count: 3 },
  { name: "b", count: 20 },
];

describe("sorting", () => {
  it("puts numbers in names in the order of their size", () => {
    expect(sorted(rows, name, false).map((row) => row.name)).toEqual(["10.0.0.9", "10.0.0.10", "b", null]);
  });

  it("puts the unknown last in both directions", () => {
    expect(sorted(rows, count, false).map((row) => row.count)).toEqual([3, 3, 20, null]);
    expect(sorted(rows, count, true).map((row) => row.count)).toEqual([20, 3, 3, null]);
    expect([compare(null, null, true), compare(1, null, true), compare(null, 1, false)]).toEqual([0, -1, 1]);
  });

  it("keeps the order of equals", () => {
    expect(sorted(rows, count, true).map((row) => row.name)).toEqual(["b", "10.0.0.10", null, "10.0.0.9"]);
  });
});

describe("the filter", () => {
  it("wants every word, in any text and in any case", () => {
    const texts: Column<Row>[] = [name, textColumn("Share", () => "Office")];
    const row = { name: "Übersicht.XLSX", count: 7 };
    expect(matches(texts, row, ["über", "office"])).toBe(true);
    expect(matches(texts, row, ["über", "home"])).toBe(false);
    // Numbers are not looked through: "7" would find nearly every row.
    expect(matches([...texts, count], row, ["7"])).toBe(false);
  });
});

describe("copies and downloads", () => {
  it("have raw numbers with their unit in the heading", () => {
    expect(csv(columns, [{ name: "a", count: 1_500 }])).toBe("Name,Count,Time (ns)\r\na,1500,1500\r\n");
  });

  it("quote what a spreadsheet would take apart", () => {
    expect(csv([name], [{ name: 'a,"b"\nc', count: 0 }])).toBe('Name\r\n"a,""b""\nc"\r\n');
    expect(tsv([name], [{ name: "a\tb\nc", count: 0 }])).toBe("Name\r\na b c\r\n");
  });

  it("never hold a name that a spreadsheet takes for a formula", () => {
    for (const formula of ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"]) {
      expect(
        csv([name], [{ name: formula, count: 0 }])
          .split("\r\n")[1]
          ?.replace(/^"/, "")
          .startsWith("'"),
      ).toBe(true);
    }
    // A number keeps its sign.
    expect(csv([count], [{ name: "", count: -1 }])).toBe("Count\r\n-1\r\n");
  });

  it("leave the unknown empty", () => {
    expect(csv(columns, [{ name: null, count: null }])).toBe("Name,Count,Time (ns)\r\n,,\r\n");
  });
});
