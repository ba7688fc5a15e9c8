// Units of load points, and the response times their users saw.
import { counted, thousands } from "../lib/format";
import type { BenchRun, SmbscopeBenchDocument, Times } from "../types/bench";

/** Returns true if load points differ in their rate rather than in their users. */
export function byRate(bench: SmbscopeBenchDocument): boolean {
  return bench.settings.rates.length > 0;
}

/** Returns the load of a run: users, or operations per second. */
export function load(bench: SmbscopeBenchDocument, run: BenchRun): number {
  return byRate(bench) && run.pace.loop === "open" ? run.pace.rate : run.users;
}

/** Formats a load: `8 users`, `500/s`. */
export function loadText(bench: SmbscopeBenchDocument, value: number): string {
  return byRate(bench) ? `${thousands(Math.round(value))}/s` : counted(value, "user");
}

/** Returns response times as users saw them: in an open loop from the due time, otherwise of commands. */
export function headline(run: BenchRun): Times {
  return run.due ?? run.total.client;
}
