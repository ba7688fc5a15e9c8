// Synthetic launches of a program: five with cold caches, from a share with an open server.
import type { SmbscopeBenchDocument } from "../../src/types/bench";
import { ramp } from "./ramp";

export function launch(): SmbscopeBenchDocument {
  const bench = ramp([1, 5]);
  return {
    ...bench,
    title: null,
    launch: {
      program: "writer",
      command: ["/usr/bin/writer", "--user-dir={local}", "{folder}/letter.odt"],
      until: 'a window with "letter.odt"',
      caches: "cold",
      mounted_by: "mount.cifs",
    },
    answer: {
      ...bench.answer,
      headline: "writer was ready after 20.2 s (median of 5) and waited 15.0 s for the server.",
      next: [],
    },
    runs: bench.runs.slice(1),
    capacity: null,
    overall_response_time_ns: null,
    warnings: [],
  };
}
