// The pages of a ramp and of a comparison in Chromium.
import { comparedRamps, comparison } from "../documents/comparison";
import { ramp } from "../documents/ramp";
import { expect, test } from "./page";

const NONSENSE = /\b(NaN|undefined|Infinity|\[object)/;

test("a ramp shows its capacity and a point for each run", async ({ open }) => {
  const bench = ramp();
  const page = await open(bench);
  await expect(page.locator(".verdict .headline")).toHaveText(
    "The server serves 12\u00a0users.".replace("\u00a0", " "),
  );
  for (const name of ["Mean", "95 %", "Commands", "Read"]) {
    await expect(page.locator(`#ramp [data-series="${name}"] circle`)).toHaveCount(bench.runs.length);
  }
  // Users are on a linear axis: the line of the capacity is where its point is.
  const at = await page
    .locator('#ramp [data-series="Mean"] circle')
    .evaluateAll((dots) => dots.map((dot) => Number(dot.getAttribute("cx"))));
  const index = bench.runs.findIndex((run) => run.users === bench.capacity?.users);
  expect(Number(await page.locator("#ramp .mark line").getAttribute("x1"))).toBeCloseTo(at[index] ?? 0, 3);
  const [first, last] = [at[0] ?? 0, at.at(-1) ?? 0];
  expect(((at[index] ?? 0) - first) / (last - first)).toBeCloseTo((12 - 1) / (32 - 1), 3);
  // Response time from zero on, linear too.
  const heights = await page
    .locator('#ramp [data-series="Mean"] circle')
    .evaluateAll((dots) => dots.map((dot) => Number(dot.getAttribute("cy"))));
  const means = bench.runs.map((run) => run.total.client.mean ?? 0);
  const slope = ((heights[0] ?? 0) - (heights.at(-1) ?? 0)) / ((means.at(-1) ?? 0) - (means[0] ?? 0));
  expect(((heights[0] ?? 0) - (heights[index] ?? 0)) / slope).toBeCloseTo((means[index] ?? 0) - (means[0] ?? 0), -3);
  expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
});

test("a ramp sets the client beside the wire", async ({ open }) => {
  const bench = ramp();
  const page = await open(bench);
  const rows = page.locator("#sides tbody tr");
  // The first run was not captured.
  await expect(rows).toHaveCount(bench.runs.length - 1);
  // The simulated client adds 60 µs on average, of which the median is 78 %.
  await expect(rows.first()).toContainText("46.8\u00a0µs");
  await page.locator("#sides").getByRole("button", { name: "2\u00a0users", exact: true }).click();
  // The parts of Other are not among them.
  await expect(page.locator("#sides tr.depth-1")).toHaveCount(4);
  for (const name of ["Client median", "Wire median", "Added, median"]) {
    await expect(page.locator(`#sides [data-series="${name}"] circle`)).toHaveCount(bench.runs.length - 1);
  }
});

test("each run of a ramp can be looked at over time", async ({ open }) => {
  const page = await open(ramp());
  await expect(page.locator("#intervals svg.chart")).toHaveAttribute("aria-label", /32.users/);
  await page.locator("#intervals select").selectOption({ label: "4\u00a0users" });
  await expect(page.locator("#intervals svg.chart")).toHaveAttribute("aria-label", /4.users/);
  await expect(page.locator("#intervals .line")).toHaveCount(6);
});

test("each run of a ramp has what a capture has", async ({ open }) => {
  const bench = ramp([1, 4, 8]);
  const page = await open(bench);
  // The first run is as of an older version, which did not count so.
  await expect(page.locator("#closer select option")).toHaveText(["4\u00a0users", "8\u00a0users"]);
  const slowest = page.locator("#closer table").filter({ hasText: "Took" });
  await expect(slowest.locator("tbody tr")).toHaveCount(20);
  // There are no packets to be looked up.
  await expect(slowest.locator("th")).not.toContainText(["Packets"]);
  const worst = () => slowest.locator("tbody tr").first().innerText();
  const before = await worst();
  await page.locator("#closer select").selectOption({ label: "4\u00a0users" });
  expect(await worst()).not.toBe(before);
  await expect(page.locator("#closer svg.chart")).toHaveCount(3);
});

test("a server that stands still is set off in the run over time", async ({ open }) => {
  const page = await open(ramp());
  // From 18 s to 20 s, the run of 32 users alone.
  await expect(page.locator("#intervals .band")).toHaveCount(1);
  await expect(page.locator("#intervals .stalls")).toHaveText(/From 18.s on, no command was answered for 2.00.s\./);
  await page.locator("#intervals select").selectOption({ label: "4\u00a0users" });
  await expect(page.locator("#intervals .band")).toHaveCount(0);
});

test("commands, operations and loads tried have tables", async ({ open }) => {
  const bench = ramp([4, 8]);
  const page = await open(bench);
  await expect(page.locator("#commands tbody tr")).toHaveCount(2 * 6);
  await expect(page.locator("#operations tbody tr")).toHaveCount(2);
  await expect(page.locator("#ramp")).toContainText("does not hold");
  expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
});

test("an open loop without a capture, ended early, is shown as such", async ({ open }) => {
  const bench = ramp([4, 8]);
  const runs = bench.runs.map((run) => ({
    ...run,
    ended: { how: "stopped" as const, why: "more than 10 % errors" },
    pace: { loop: "open" as const, rate: 1_000, rate_kept: 900, not_begun: 3_000 },
    total: { ...run.total, wire: null, difference: null },
    capture: { state: "skipped" as const, why: "tcpdump is not installed" },
    failures: { "connection refused": 3 },
    workload_operations: run.workload_operations.map((operation) => ({
      ...operation,
      response_time: operation.service_time,
      unexpected: { STATUS_DISK_FULL: 5 },
    })),
  }));
  const page = await open({ ...bench, runs, capacity: null });
  await expect(page.locator("#sides")).toHaveCount(0);
  await expect(page.locator("#ramp")).toContainText("90.0\u00a0%");
  await expect(page.locator("#ramp")).toContainText("more than 10 % errors");
  await expect(page.locator("#errors")).toContainText("connection refused");
  await expect(page.locator("#errors")).toContainText("STATUS_DISK_FULL");
  await expect(page.locator("#operations")).toContainText("Due p95");
  expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
});

test("a run alone, or none, is shown without a ramp", async ({ open, page }) => {
  await open({ ...ramp([5]), capacity: null, overall_response_time_ns: null });
  await expect(page.locator("#ramp svg.chart")).toHaveCount(0);
  await expect(page.locator("#ramp tbody tr")).toHaveCount(1);
  expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
});

test("a comparison has a dot for each column and group, at its ratio", async ({ open }) => {
  const document = comparison();
  const page = await open(document);
  const groups = document.groups.length + 1;
  for (const column of [1, 2]) {
    // Once for the value and once for the ratio.
    await expect(page.locator(`#response-times .dot[data-column="${column}"]`)).toHaveCount(2 * groups);
  }
  await expect(page.locator('#response-times .dot[data-column="0"]')).toHaveCount(groups);
  const one = Number(await page.locator("#response-times .one").getAttribute("x1"));
  const dots = await page.locator('#response-times .dot[data-column="1"]').evaluateAll((found) =>
    found.map((dot) => ({
      x: Number(/translate\(([\d.]+)/.exec(dot.getAttribute("transform") ?? "")?.[1]),
      text: dot.textContent ?? "",
    })),
  );
  const ratios = dots.filter((dot) => dot.text.includes("×"));
  expect(ratios.length).toBe(groups);
  for (const dot of ratios) {
    const ratio = Number(/([\d.]+)×/.exec(dot.text)?.[1]);
    if (Math.abs(ratio - 1) > 0.01) expect(Math.sign(dot.x - one)).toBe(Math.sign(ratio - 1));
  }
});

test("ramps are compared load point by load point", async ({ open }) => {
  const document = comparedRamps();
  const page = await open(document);
  // Three panels, two ramps: three load points of the one, two of the other.
  await expect(page.locator('#ramps [data-series="before"] circle')).toHaveCount(9);
  await expect(page.locator('#ramps [data-series="after"] circle')).toHaveCount(6);
  const row = page.locator("#ramps tbody tr").filter({ hasText: "after" }).first();
  await expect(row).toContainText("0.50×");
  await expect(page.locator("#ramps")).toContainText("capacity 12");
  // Ramps do not say how values spread.
  await expect(page.locator("#distribution")).toHaveCount(0);
  expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
});

test("the statistic of a comparison can be chosen", async ({ open }) => {
  const document = comparison();
  const page = await open(document);
  const read = document.groups.find((group) => group.group === "Read");
  const value = (metric: "p95" | "max") => `${read?.cells[1]?.ratios?.[metric]?.value.toFixed(2)}×`;
  const row = page.locator("#response-times .scroller").first().getByRole("row").filter({ hasText: "Read" });
  await expect(row).toContainText(value("p95"));
  await page.locator("#response-times select").selectOption({ label: "Slowest" });
  await expect(row).toContainText(value("max"));
  // Only the mean has intervals in this document.
  await expect(page.locator("#response-times .interval")).toHaveCount(0);
  await page.locator("#response-times select").selectOption({ label: "Mean" });
  await expect(page.locator("#response-times .interval")).toHaveCount(2 * (document.groups.length + 1));
});

test("a comparison with hostile names stays text", async ({ open }) => {
  const hostile = "</script><img src=x onerror=alert(1)>";
  const document = comparison([hostile, `${hostile}2`, "c"]);
  const page = await open(document, hostile);
  await expect(page.locator("img")).toHaveCount(0);
  await expect(page.locator("#overview thead")).toContainText(hostile);
});

for (const [name, document] of [
  ["ramp", ramp()],
  ["comparison", comparison()],
] as const) {
  test(`a ${name} fits a narrow window and paper`, async ({ open, page }) => {
    await page.setViewportSize({ width: 360, height: 800 });
    await open(document);
    expect(await page.evaluate(() => globalThis.document.documentElement.scrollWidth)).toBe(360);
    expect((await page.pdf({ format: "A4" })).length).toBeGreaterThan(10_000);
  });
}
