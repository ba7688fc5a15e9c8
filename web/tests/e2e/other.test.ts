// Pages of ramps, comparisons and studies in Chromium.
import { unbroken } from "../../src/lib/format";
import { cause } from "../documents/cause";
import { comparedRamps, comparison } from "../documents/comparison";
import { launch } from "../documents/launch";
import { predictedUsers, prediction } from "../documents/prediction";
import { ramp } from "../documents/ramp";
import { sides } from "../documents/sides";
import { simulate } from "../documents/simulate";
import { study } from "../documents/study";
import { expect, type Page, test } from "./page";

const NONSENSE = /\b(NaN|undefined|Infinity|\[object)/;

test("a ramp shows its capacity and a point for each run", async ({ open }) => {
  const bench = ramp();
  const page = await open(bench);
  await expect(page.locator(".head .answer .headline")).toHaveText(bench.answer.headline);
  await expect(page.locator(".head .answer")).toHaveClass(/culprit-capture/);
  await expect(page.locator(".head .answer li").first()).toHaveText(
    "The server sustains 12 users with p95 < 10ms. All 3 tries met it at 11 users, none at 14 users.",
  );
  for (const name of ["Mean", "p95", "Commands", "Read"]) {
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
  // The curve has the users at its points, and the points at their throughput.
  const curve = page.locator(".head");
  await expect(curve.locator('[data-series="p95"] circle')).toHaveCount(bench.runs.length);
  await expect(curve.locator('[data-series="p95"] text').first()).toHaveText("1\u00a0user");
  await expect(curve.locator('[data-series="p95"] text').last()).toHaveText("32\u00a0users");
  const across = await curve
    .locator('[data-series="p95"] circle')
    .evaluateAll((dots) => dots.map((dot) => Number(dot.getAttribute("cx"))));
  const speeds = bench.runs.map((run) => run.operations_per_second);
  const share = (values: number[]) =>
    ((values[index] ?? 0) - (values[0] ?? 0)) / ((values.at(-1) ?? 0) - (values[0] ?? 0));
  expect(share(across)).toBeCloseTo(share(speeds), 3);
  expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
});

test("the box of a ramp has the capacity, the evidence and the warnings, in this order", async ({ open }) => {
  const bench = ramp();
  const evidence = ["Slow: p95 of Write 25.1 ms, above 20.0 ms.", "At 32 users: Nothing is slow: median 1.2 ms."];
  const warnings = ["Closed loop: a stall holds back the load."];
  const page = await open({ ...bench, warnings, answer: { ...bench.answer, evidence } });
  const sentences = page.locator(".head .answer > ul > li");
  await expect(sentences).toHaveText([/^The server sustains/, ...[...evidence, ...warnings].map(unbroken)]);
});

test("a ramp compares client and wire", async ({ open }) => {
  const bench = ramp();
  const page = await open(bench);
  const rows = page.locator("#sides tbody tr");
  // The first run was not captured.
  await expect(rows).toHaveCount(bench.runs.length - 1);
  // The simulated client adds 60 µs on average. The median is 78% of the mean.
  await expect(rows.first()).toContainText("46.8\u00a0µs");
  await page.locator("#sides").getByRole("button", { name: "2\u00a0users", exact: true }).click();
  // The parts of Other are not among them.
  await expect(page.locator("#sides tr.depth-1")).toHaveCount(4);
  for (const name of ["Client median", "Wire median", "Added, median"]) {
    await expect(page.locator(`#sides [data-series="${name}"] circle`)).toHaveCount(bench.runs.length - 1);
  }
});

test("a load point has what a capture has, in the same order, and can be chosen", async ({ open }) => {
  const bench = ramp([1, 4, 8]);
  const page = await open(bench);
  const order = await page.locator("main > section").evaluateAll((all) => all.map(({ id }) => id));
  expect(order).toEqual(["ramp", "time", "slices", "groups", "commands", "slowest", "who", "where", "sides", "method"]);
  // The first run has no breakdown, as from an older version.
  await expect(page.locator("#slowest select option")).toHaveText(["4\u00a0users", "8\u00a0users"]);
  const slowest = page.locator("#slowest table");
  await expect(slowest.locator("tbody tr")).toHaveCount(20);
  // There are no packets to be looked up.
  await expect(slowest.locator("th")).not.toContainText(["Packets"]);
  const worst = () => slowest.locator("tbody tr").first().innerText();
  const before = await worst();
  await page.locator("#time select").selectOption({ label: "4\u00a0users" });
  expect(await worst()).not.toBe(before);
  // Chosen in one place, it is chosen in all of them.
  await expect(page.locator("#commands select")).toHaveValue("0");
  await expect(page.locator("#time .timed svg.chart")).toHaveCount(1);
  await expect(page.locator("#groups tbody tr").last()).toContainText("Total");
});

test("a ramp has the server's processor and disks below its throughput, and over time", async ({ open }) => {
  const bench = ramp();
  const page = await open(bench);
  // The first run has no server metrics.
  for (const name of ["Server CPU", "Server CPU, maximum", "Samba CPU", "Disk read"]) {
    await expect(page.locator(`#ramp [data-series="${name}"] circle`)).toHaveCount(bench.runs.length - 1);
  }
  // No disk was written to.
  await expect(page.locator('#ramp [data-series="Disk written"]')).toHaveCount(0);
  // Two samples of the load point that is shown.
  const samples = await page.locator('#time [data-series="Server CPU"] path').getAttribute("d");
  expect(samples?.match(/L/g)?.length).toBe(1);
});

test("a server that stands still is set off in the run over time", async ({ open }) => {
  const page = await open(ramp());
  // From 18 s to 20 s, the run of 32 users alone.
  await expect(page.locator("#time .band")).toHaveCount(1);
  await expect(page.locator("#time .stalls")).toHaveText(/From 18\.0.s on, no command was answered for 2.00.s\./);
  await page.locator("#time select").selectOption({ label: "4\u00a0users" });
  await expect(page.locator("#time .band")).toHaveCount(0);
});

test("commands, operations and loads tried have tables, and expected errors are said to be so", async ({ open }) => {
  const bench = ramp([4, 8, 32]);
  const page = await open(bench);
  await expect(page.getByRole("table", { name: "Commands", exact: true }).locator("tbody tr")).toHaveCount(6);
  await expect(page.getByRole("table", { name: "Operations of the workload" }).locator("tbody tr")).toHaveCount(1);
  await expect(page.locator("#ramp")).toContainText("not met");
  await expect(page.locator("#commands")).toContainText("Errors, all expected by the workload");
  await expect(page.locator(".tiles")).toContainText("all expected");
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
  await expect(page.locator("#ramp")).toContainText("90.0%");
  await expect(page.locator("#ramp")).toContainText("more than 10 % errors");
  await expect(page.locator("#commands")).toContainText("connection refused");
  await expect(page.locator("#commands")).toContainText("STATUS_DISK_FULL");
  await expect(page.locator("#commands")).not.toContainText("expected by the workload");
  await expect(page.locator(".tiles")).not.toContainText("expected");
  await expect(page.locator("#commands")).toContainText("Due p95");
  expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
});

test("a run alone, or none, is shown without a ramp", async ({ open, page }) => {
  await open({ ...ramp([5]), capacity: null, overall_response_time_ns: null });
  await expect(page.locator("#ramp svg.chart")).toHaveCount(0);
  await expect(page.locator("#ramp tbody tr")).toHaveCount(1);
  await expect(page.locator(".tiles dt")).toHaveText(["Throughput", "Mean", "Commands", "Read", "Written", "Errors"]);
  expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
});

test("launches that sent no command have no empty sections", async ({ open }) => {
  const document = launch();
  const none = { groups: [], concurrency: [], slowest: [], files: [], users: [], slices: null };
  const runs = document.runs.map((run) => ({
    ...run,
    operations: 0,
    commands: [],
    counted: run.counted && { ...run.counted, ...none, heatmap: { ...run.counted.heatmap, bins: [] } },
    answer: null,
    capture: null,
    server: null,
  }));
  const page = await open({ ...document, runs });
  const order = await page.locator("main > section").evaluateAll((all) => all.map(({ id }) => id));
  expect(order.filter((id) => id !== "sides")).toEqual(["ramp", "method"]);
});

test("a comparison says first what got slower, and its caveats after the figures", async ({ open }) => {
  const document = comparison();
  const page = await open(document);
  await expect(page.locator(".head .answer .headline")).toHaveText(document.answers.map(({ headline }) => headline));
  await expect(page.locator(".head .answer .about")).toHaveText(document.columns.slice(1).map(({ name }) => name));
  const order = await page.locator("main > section").evaluateAll((all) => all.map(({ id }) => id));
  expect(order).toEqual(["time", "slices", "groups", "commands", "slowest", "files", "overview", "caveats", "method"]);
});

test("a comparison says what to do about a cause of the slower side, and of no other", async ({ open }) => {
  const document = comparison();
  const answers = document.answers.map((answer, i) => ({
    ...answer,
    culprit: i === 0 ? ("server" as const) : ("nothing" as const),
    causes: [cause],
  }));
  const page = await open({ ...document, answers });
  await expect(page.locator(".head .answer .advice")).toHaveCount(1);
  await expect(page.locator(".head .answer").first().locator(".advice")).toHaveText(
    `What to do about “${cause.title}”: ${cause.advice}`,
  );
});

test("a comparison has a dot for each column and group, and a panel of factors for each but the baseline", async ({
  open,
}) => {
  const document = comparison();
  const page = await open(document);
  const groups = document.groups.length + 1;
  for (const column of [0, 1, 2]) {
    await expect(page.locator(`#groups .dot[data-column="${column}"]`)).toHaveCount(groups);
  }
  await expect(page.locator("#groups .chart g.factor")).toHaveCount(2 * groups);
  const dots = await placesOfFactors(page, "#groups");
  expect(dots.length).toBe(2 * groups);
  for (const { x, one, factor } of dots) {
    if (Math.abs(factor - 1) > 0.01) expect(Math.sign(x - one)).toBe(Math.sign(factor - 1));
  }
});

/** Reads the positions of factors and of the baseline. */
async function placesOfFactors(page: Page, part: string): Promise<{ x: number; one: number; factor: number }[]> {
  return page.locator(`${part} .chart`).evaluateAll((charts) =>
    charts.flatMap((chart) => {
      const one = Number(chart.querySelector(".one")?.getAttribute("x1"));
      return [...chart.querySelectorAll("g.factor:not(.baseline)")].map((found) => ({
        x: Number(/translate\(([\d.]+)/.exec(found.querySelector(".dot")?.getAttribute("transform") ?? "")?.[1]),
        one,
        factor: Number(/([\d.]+)×/.exec(found.querySelector("title")?.textContent ?? "")?.[1]),
      }));
    }),
  );
}

test("a study has its answer first, and every factor on one logarithmic axis with its interval and its word", async ({
  open,
}) => {
  const document = study();
  const page = await open(document);
  await expect(page.locator("h1")).toHaveText("SMB study: processor-load");
  await expect(page.locator(".head .question")).toHaveText(document.question);
  await expect(page.locator(".head .answer .headline")).toHaveText(document.answer.headline);
  await expect(page.locator(".head .answer > ul > li")).toHaveText([
    ...[...document.answer.evidence, ...document.answer.caveats].map(unbroken),
    "No result for dialect nt1, cpu-load 100, repetition 2: the command before failed: exit status 1.",
  ]);
  await expect(page.locator(".head .answer .next code")).toHaveText(document.answer.next.map(({ command }) => command));
  await expect(page.locator(".head")).toContainText("12\u00a0variants × 7\u00a0repetitions: 83 of 84\u00a0runs");
  // Six measures of twelve variants, one of them the baseline.
  const charts = page.locator("#factors .chart:not(.chart-sample)");
  await expect(charts.locator("g.factor")).toHaveCount(6 * 12);
  await expect(charts.locator("g.factor.baseline")).toHaveCount(6);
  await expect(charts.locator("path.interval")).toHaveCount(6 * 11);
  const most = charts.locator('g.factor[data-name="dialect nt1, cpu-load 100"]').first();
  await expect(most).toContainText("541× (525× to 558×)");
  await expect(most.locator(".word")).toHaveText("slower");
  await expect(most).toHaveClass(/worse/);
  const words = await charts.locator(".word").allTextContents();
  expect(new Set(words)).toEqual(
    new Set(["slower", "faster", "more", "less", "equal within 5%", "undecided, 31\u00a0repetitions"]),
  );
  // The same distance for the same multiple: the axis is logarithmic.
  const places = await placesOfFactors(page, "#factors");
  const far = places.filter(({ factor }) => Math.abs(Math.log(factor)) > 0.4);
  const scale = far.map(({ x, one, factor }) => (x - one) / Math.log(factor));
  expect(Math.max(...scale) / Math.min(...scale)).toBeLessThan(1.02);
  expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
});

test("a study has curves with bands against its axis of numbers and against users, and the server below", async ({
  open,
}) => {
  const page = await open(study());
  // Five measures, and four panels of the server, its processors among them once: a line for each dialect.
  for (const dialect of ["3.1.1", "2.1", "nt1"]) {
    await expect(page.locator(`#curves [data-series="${dialect}"] .spread-band`)).toHaveCount(9);
    await expect(page.locator(`#curves [data-series="${dialect}"] circle`)).toHaveCount(9 * 4);
  }
  const users = [1, 8, 32];
  await open(study(users, 3));
  const lines = page.locator("#curves figure").first().locator('[data-series="dialect nt1, cpu-load 50"]');
  await expect(lines.locator("circle")).toHaveCount(9 * users.length);
  // Three repetitions have a range and no interval, and the load can be chosen: the heaviest at first.
  await expect(page.locator("#factors select")).toHaveValue("2");
  await expect(page.locator("#factors .legend")).toContainText("too few repetitions");
  await expect(page.locator("#factors .chart path.interval.range").first()).toBeVisible();
});

test("a proof has the replay as captured above the one with the chosen change, on the same time axis", async ({
  open,
}) => {
  const page = await open(prediction());
  await expect(page.locator(".answer .headline")).toContainText("1 of 2 predictions hold");
  await expect(page.locator(".answer li")).toHaveCount(3);
  const longest = () =>
    page.locator("#changes figure").evaluateAll((figures) =>
      figures.map((figure) => {
        const bars = [...figure.querySelectorAll(".command-bar")].map((bar) => bar.getBoundingClientRect());
        return Math.max(...bars.map((bar) => bar.right)) - Math.min(...bars.map((bar) => bar.left));
      }),
    );
  await expect(page.locator("#changes")).toContainText(
    "on the same time axis. Replays of less than two seconds repeat",
  );
  await expect(page.locator("#changes figure")).toHaveCount(2);
  const [before = 0, after = 0] = await longest();
  // 40 commands of 5 and of 25 ms, with a pause of 1 ms.
  expect(after / before).toBeCloseTo((40 * 26 - 1) / (40 * 6 - 1), 1);
  await page.locator("#changes select").selectOption({ label: "bandwidth=20mbit" });
  const [slower = 0, slowest = 0] = await longest();
  expect(slowest / slower).toBeCloseTo((40 * 55 - 1) / (40 * 6 - 1), 1);
  await expect(page.locator("#changes select option")).toHaveCount(2);
});

test("a prediction for users has a curve with its band", async ({ open }) => {
  const page = await open(predictedUsers());
  await expect(page.locator("#users .spread-band")).toHaveCount(2);
  await expect(page.locator("#users circle")).toHaveCount(12);
  expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
});

test("a study has every value of every repetition, and all that is needed to make it again", async ({ open }) => {
  const document = study();
  const page = await open(document);
  const table = page.locator(".table").filter({ has: page.getByRole("table", { name: "Every repetition" }) });
  const values = document.results.reduce((sum, row) => sum + row.values.filter((value) => value !== null).length, 0);
  await expect(table.locator(".table-status")).toHaveText(`${values}\u00a0rows`);
  await expect(page.locator("#setup")).toContainText("stress-ng --cpu 0 &");
  await expect(page.locator("#reproduce .command code")).toHaveText(document.command);
  expect(await page.locator("#reproduce pre").textContent()).toBe(document.definition.text);
  await expect(page.locator("#reproduce")).toContainText("exchanges.parquet");
  await expect(page.locator("#reproduce tbody")).toContainText("01-dialect-3.1.1-cpu-load-0/1");
  // Before its first run.
  await open({
    ...document,
    runs: [],
    results: [],
    server: [],
    answer: { ...document.answer, headline: "", evidence: [], caveats: [], next: [] },
    started_ns: null,
  });
  await expect(page.locator(".head .answer .headline")).toHaveText("No result yet.");
  await expect(page.locator("#factors, #curves, #results")).toHaveCount(0);
  expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
});

test("a comparison has the heat map of each capture that has one, to be chosen", async ({ open }) => {
  const page = await open(comparison());
  const drawn = () => page.locator("#time .heat path").evaluateAll((all) => all.map((path) => path.getAttribute("d")));
  const first = await drawn();
  expect(first.length).toBeGreaterThan(1);
  await page.locator("#time select").selectOption({ label: "with antivirus" });
  expect(await drawn()).not.toEqual(first);
  await open(comparedRamps());
  await expect(page.locator("#time")).toHaveCount(0);
});

test("the distributions of a comparison lie over each other, a chart for each group", async ({ open }) => {
  const document = comparison();
  const page = await open(document);
  const groups = document.groups.filter((group) => group.part_of === null);
  const charts = page.locator("#groups .multiples figure");
  await expect(charts).toHaveCount(groups.length);
  for (const [i, group] of groups.entries()) {
    for (const [column, { name }] of document.columns.entries()) {
      const d = await charts.nth(i).locator(`[data-series="${name}"] path`).getAttribute("d");
      expect((d?.match(/L/g)?.length ?? 0) + 1).toBe(group.cumulative[column]?.length);
    }
  }
  // Without distributions there is no empty chart.
  await open({ ...document, groups: document.groups.map((group) => ({ ...group, cumulative: [[], [], []] })) });
  await expect(page.locator("#groups .multiples")).toHaveCount(0);
});

test("ramps are compared load point by load point", async ({ open }) => {
  const document = comparedRamps();
  const page = await open(document);
  // Five panels and three of the server, two ramps: three load points of the one, two of the other.
  await expect(page.locator('#ramps [data-series="before"] circle')).toHaveCount(8 * 3);
  await expect(page.locator('#ramps [data-series="after"] circle')).toHaveCount(8 * 2);
  // Several runs of one column have bands, except for the maximum CPU.
  await expect(page.locator('#ramps [data-series="before"] .spread-band')).toHaveCount(7);
  await expect(page.locator('#ramps [data-series="after"] .spread-band')).toHaveCount(0);
  // Of groups, only reads and writes move bytes.
  await page.locator("#ramps select").first().selectOption({ label: "Read" });
  await expect(page.locator("#ramps svg.chart").first()).toContainText("Bytes per second");
  await page.locator("#ramps select").first().selectOption({ label: "Open/Close" });
  await expect(page.locator("#ramps svg.chart").first()).not.toContainText("Bytes per second");
  // Factors of the highest load point that both have: all groups and each, of four figures.
  const moving = document.groups.filter(({ group }) => group === "Read" || group === "Write").length;
  const rows = document.groups.length + 1;
  await expect(page.locator("#ramps .chart g.factor")).toHaveCount(3 * rows + 1 + moving);
  await expect(page.locator("#ramps .chart g.factor").first()).toContainText("0.50×");
  const row = page.locator("#ramps tbody tr").filter({ hasText: "after" }).first();
  await expect(row).toContainText("0.50×");
  await expect(page.locator("#ramps")).toContainText("capacity 12");
  // Three load points of the one, two of the other.
  const server = page.locator(".table").filter({ has: page.getByRole("table", { name: "Server load" }) });
  await expect(server.locator("tbody tr")).toHaveCount(5);
  await expect(server.locator("tbody tr").first()).toContainText("2.0%");
  expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
});

test("the statistic of a comparison can be chosen", async ({ open }) => {
  const document = comparison();
  const page = await open(document);
  const read = document.groups.find((group) => group.group === "Read");
  const value = (metric: "p95" | "max") => `${read?.cells[1]?.ratios?.[metric]?.value.toFixed(2)}×`;
  const row = page.locator("#groups .scroller").first().getByRole("row").filter({ hasText: "Read" });
  await expect(row).toContainText(value("p95"));
  await page.locator("#groups select").selectOption({ label: "Slowest" });
  await expect(row).toContainText(value("max"));
  // Only the mean has intervals in this document.
  await expect(page.locator("#groups .factor path.interval")).toHaveCount(0);
  await page.locator("#groups select").selectOption({ label: "Mean" });
  await expect(page.locator("#groups .chart:not(.chart-sample) path.interval")).toHaveCount(
    2 * (document.groups.length + 1),
  );
});

test("a study with hostile names and a hostile file stays text", async ({ open }) => {
  const hostile = "</script><img src=x onerror=alert(1)>";
  const document = study([8], 5, { dialects: [hostile, "2.1", "nt1"], loads: ["0", "50"] });
  document.name = hostile;
  document.answer.headline = hostile;
  document.definition.text = hostile;
  document.environment = { [hostile]: hostile };
  const page = await open(document, hostile);
  await expect(page.locator("h1")).toHaveText(`SMB study: ${hostile}`);
  await expect(page.locator("#reproduce pre")).toHaveText(hostile);
  await expect(page.locator("#setup")).toContainText(hostile);
  await expect(page.locator("img")).toHaveCount(0);
  await expect(page.locator("script")).toHaveCount(3);
});

test("a comparison with hostile names stays text", async ({ open }) => {
  const hostile = "</script><img src=x onerror=alert(1)>";
  const document = comparison([hostile, `${hostile}2`, "c"]);
  const page = await open(document, hostile);
  await expect(page.locator("img")).toHaveCount(0);
  await expect(page.locator("#overview thead")).toContainText(hostile);
});

for (const [name, document] of [
  ["report", simulate({ exchanges: 4_000 })],
  [
    "report of four capture points",
    { ...simulate({ exchanges: 200 }), sides: sides(["client-".repeat(9), "firewall", "wan", "server"]) },
  ],
  ["ramp", ramp()],
  ["comparison", comparison()],
  ["comparison of ramps", comparedRamps()],
  ["prediction", prediction()],
  ["prediction for users", predictedUsers()],
  ["study", study()],
  ["study of several loads", study([1, 8, 32, 64], 3)],
] as const) {
  test(`a ${name} fits a narrow window and paper, and no label is on another or cut`, async ({ open, page }) => {
    for (const width of [360, 390, 1440]) {
      await page.setViewportSize({ width, height: 800 });
      await open(document);
      expect(await page.evaluate(() => globalThis.document.documentElement.scrollWidth)).toBe(width);
      const clashes = await page.locator("svg.chart").evaluateAll((charts) =>
        charts.flatMap((chart) => {
          const outer = chart.getBoundingClientRect();
          const boxes = [...chart.querySelectorAll("text")].map((text) => ({
            text: text.textContent ?? "",
            box: text.getBoundingClientRect(),
          }));
          const found = boxes
            .filter(({ box }) => box.left < outer.left - 1 || box.right > outer.right + 2)
            .map(({ text }) => `cut: ${text}`);
          for (const [i, { text, box: a }] of boxes.entries()) {
            for (const { text: other, box: b } of boxes.slice(i + 1)) {
              const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
              const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
              // Boxes of text have air above and below.
              if (across > 1 && down > 5) found.push(`${text} on ${other}`);
            }
          }
          return found;
        }),
      );
      expect(clashes, `${width} pixels`).toEqual([]);
    }
    expect((await page.pdf({ format: "A4" })).length).toBeGreaterThan(10_000);
  });
}

test("a ramp says what to look at next, and of each load point whether it is slow and its slices", async ({ open }) => {
  const bench = ramp();
  const page = await open(bench);
  await expect(page.locator(".head .next code")).toHaveText(bench.answer.next.map(({ command }) => command));
  const last = bench.runs.at(-1);
  await expect(page.locator("#time .answer .headline")).toHaveText(last?.answer?.headline ?? "?");
  await expect(page.locator("#time .answer .headline .culprit")).toHaveText("Server or network");
  await expect(page.locator("#time .answer li")).toHaveText(last?.answer?.evidence ?? []);
  const slice = last?.counted?.slices?.entries[0];
  await expect(page.locator("#slices tbody")).toContainText(slice?.key.user ?? "?");
});

test("a comparison has the slices of all columns, and what to look at next", async ({ open }) => {
  const document = comparison();
  const page = await open(document);
  await expect(page.locator("#slices tbody tr")).toHaveCount(document.slices?.entries.length ?? 0);
  await expect(page.locator("#slices select")).toHaveValue("5");
  const commands = document.answers.flatMap(({ next }) => next.map(({ command }) => command));
  await expect(page.locator(".head .next code")).toHaveText(commands);
});
