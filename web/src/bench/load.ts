// What a load point of a ramp is counted in, and what its users waited.
import { counted, thousands } from "../lib/format";
import type { BenchRun, SmbscopeBenchDocument, Times } from "../types/bench";

/** Load points differ in their rate, and not in their users. */
export function byRate(bench: SmbscopeBenchDocument): boolean {
  return bench.settings.rates.length > 0;
}

/** The load of a run: users, or operations a second. */
export function load(bench: SmbscopeBenchDocument, run: BenchRun): number {
  return byRate(bench) && run.pace.loop === "open" ? run.pace.rate : run.users;
}

/** A load in words: `8 users`, `500/s`. */
export function loadText(bench: SmbscopeBenchDocument, value: number): string {
  return byRate(bench) ? `${thousands(Math.round(value))}/s` : counted(value, "user");
}

/** What users waited: in an open loop from when operations were due, otherwise the response times of commands. */
export function headline(run: BenchRun): Times {
  return run.due ?? run.total.client;
}
