// Measures a page in Chromium: size, time until it is ready, and scrolling of its longest table.
//
//   node scripts/measure.mjs report.html
//
// "Ready" is the time from the start of navigation until the last section is drawn and the main thread is idle. Scrolling
// moves the longest table by 400 pixels per frame; frames longer than 50 ms are noticeable.
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "@playwright/test";
import { chromiumPath } from "./chromium.mjs";

const FRAMES = 120;

const file = process.argv[2];
if (!file) {
  console.error("measure: name a page: node scripts/measure.mjs report.html");
  process.exit(2);
}
const browser = await chromium.launch({
  executablePath: chromiumPath(),
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const ready = [];
let scrolled = { pixels: 0, median: 0, longest: 0, felt: 0 };
for (let run = 0; run < 5; run++) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(pathToFileURL(resolve(file)).href, { waitUntil: "load" });
  ready.push(
    await page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0))),
    ),
  );
  scrolled = await page.evaluate(async (frames) => {
    const scrollers = [...document.querySelectorAll(".scroller")];
    const longest = scrollers.reduce((a, b) => (b.scrollHeight > a.scrollHeight ? b : a));
    longest.scrollIntoView({ block: "center", behavior: "instant" });
    const times = [];
    let last = performance.now();
    for (let frame = 0; frame < frames; frame++) {
      longest.scrollTop = (longest.scrollTop + 400) % (longest.scrollHeight - longest.clientHeight || 1);
      await new Promise(requestAnimationFrame);
      times.push(performance.now() - last);
      last = performance.now();
    }
    times.sort((a, b) => a - b);
    return {
      pixels: longest.scrollHeight,
      median: times[frames / 2] ?? 0,
      longest: times[frames - 1] ?? 0,
      felt: times.filter((time) => time > 50).length,
    };
  }, FRAMES);
  await page.close();
}
await browser.close();
ready.sort((a, b) => a - b);
/** @param {number} value */
const ms = (value) => `${value.toFixed(0)} ms`;
console.log(`size ${(statSync(file).size / 1e6).toFixed(2)} MB`);
console.log(`ready after ${ms(ready[2])} (median of 5; ${ms(ready[0])} to ${ms(ready[4])})`);
console.log(
  `scrolling ${scrolled.pixels} pixels: a frame takes ${ms(scrolled.median)} (median of ${FRAMES}), ` +
    `the longest ${ms(scrolled.longest)}; ${scrolled.felt} longer than 50 ms`,
);
