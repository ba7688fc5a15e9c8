// Synthetic study: application launches with several dialects under CPU load, with factors of up to 541×.
import type { SmbscopeStudyDocument, StudyRow, StudyServerRow } from "../../src/types/study";
import { random } from "./simulate";

const START = 1_763_800_000_000_000_000;
const DIALECTS = ["3.1.1", "2.1", "nt1"];
const LOADS = ["0", "50", "75", "100"];

/** Factors against the newest dialect on an idle server. */
const FACTORS: Record<string, number[]> = {
  "3.1.1": [1, 1.14, 1.6, 5.2],
  "2.1": [0.99, 0.7, 2.4, 12],
  nt1: [1.03, 9.8, 38, 541],
};

type Verdict = NonNullable<StudyRow["verdict"]>;

export function study(
  users = [8],
  repetitions = 7,
  names = { dialects: DIALECTS, loads: LOADS },
): SmbscopeStudyDocument {
  const next = random(7);
  const variants = names.dialects.flatMap((dialect, i) =>
    names.loads.map((load, j) => ({
      name: `dialect ${dialect}, cpu-load ${load}`,
      baseline: 0,
      settings: { dialect, "cpu-load": load },
      folder: `${String(i * names.loads.length + j + 1).padStart(2, "0")}-dialect-${dialect}-cpu-load-${load}`,
      place: "private server",
      environment: { "CPU load": `${load}%` },
      command: `smbscope bench --dialect ${dialect} --users ${users.join(",")} --workload logon (lab --cpu-load ${load})`,
      before: j === 0 ? [] : ["stress-ng --cpu 0 &"],
      after: j === 0 ? [] : ["kill %1"],
    })),
  );
  const factor = (variant: number) =>
    FACTORS[DIALECTS[Math.floor(variant / names.loads.length)] ?? ""]?.[variant % names.loads.length] ?? 1;
  const failed = { variant: variants.length - 1, repetition: 2 };
  const made = (variant: number, repetition: number) => variant !== failed.variant || repetition !== failed.repetition;
  const rows = (measure: string, unit: string, at: (variant: number, users: number) => number): StudyRow[] =>
    users.flatMap((of) =>
      variants.map((_, variant): StudyRow => {
        const values = Array.from({ length: repetitions }, (_, i) =>
          made(variant, i + 1) ? at(variant, of) * (0.96 + 0.08 * next()) : null,
        );
        const known = values.filter((value) => value !== null);
        const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
        const squares = known.reduce((sum, value) => sum + (value - mean) ** 2, 0);
        const ratio = at(variant, of) / at(0, of);
        const slower = unit === "s" ? ratio > 1 : ratio < 1;
        const size = Math.abs(Math.log(ratio));
        const [worse, better]: Verdict[] = unit === "percent" || unit === "" ? ["less", "more"] : ["slower", "faster"];
        const verdict: Verdict =
          repetitions < 5
            ? "too_few"
            : size < 0.02
              ? "equal"
              : size < 0.05
                ? "undecided"
                : ((slower ? worse : better) ?? "undecided");
        const answer =
          verdict === "equal"
            ? { answer: "equal" as const }
            : verdict !== "undecided" && verdict !== "too_few"
              ? { answer: ratio > 1 ? ("higher" as const) : ("lower" as const) }
              : { answer: "undecided" as const, repetitions_needed: repetitions < 5 ? null : 31 };
        const ends: [number, number] = [ratio * 0.97, ratio * 1.031];
        return {
          measure,
          unit,
          users: of,
          rate: null,
          variant,
          values,
          mean,
          stddev: known.length > 1 ? Math.sqrt(squares / (known.length - 1)) : null,
          factor:
            variant === 0
              ? null
              : {
                  ratio,
                  interval: repetitions < 5 ? null : ends,
                  range: repetitions < 5 ? ends : null,
                  detectable: repetitions < 5 ? null : 1.04,
                  repetitions,
                  scope: "runs",
                  p_value: repetitions < 5 ? null : 0.001,
                  ...answer,
                },
          adjusted_p_value: variant === 0 || repetitions < 5 ? null : 0.002,
          verdict: variant === 0 ? null : verdict,
        };
      }),
    );
  const busy = (variant: number) => Number(names.loads[variant % names.loads.length] ?? 0);
  const seconds = (variant: number, of: number) => 0.0092 * factor(variant) * (0.5 + of / 16);
  const server = (metric: string, unit: string, at: (variant: number, of: number) => number): StudyServerRow[] =>
    users.flatMap((of) =>
      variants.map((_, variant): StudyServerRow => {
        const means = Array.from({ length: repetitions }, () => at(variant, of) * (0.95 + 0.1 * next()));
        return { metric, unit, users: of, rate: null, variant, means, maxima: means.map((mean) => 1.2 * mean) };
      }),
    );
  return {
    schema: "smbscope.study/1",
    generator: { name: "smbscope", version: "0.1.0" },
    name: "processor-load",
    question: "What do users wait for when the server's processors are busy, and does the dialect matter?",
    answer: {
      culprit: "server",
      headline:
        "p95(Open/Close), 8 users: dialect nt1, cpu-load 100 is slower than dialect 3.1.1, cpu-load 0, 541 times (525 to 558); dialect nt1, cpu-load 75 is slower than dialect 3.1.1, cpu-load 0, 38.0 times (36.9 to 39.2); 8 more below.",
      states_first_cause: false,
      evidence: ["dialect nt1, cpu-load 100: Server: service time took 95% of all response times (7 min 42 s)."],
      causes: [],
      notes: [],
      ruled_out: [],
      caveats: [
        "Undecided: dialect 2.1, cpu-load 0 against dialect 3.1.1, cpu-load 0; 9 more repetitions would probably decide.",
      ],
      next: [
        {
          label: "decide",
          command: "smbscope study studies/processor-load.toml --quick --repetitions 16 -o processor-load-16",
        },
      ],
      slow: "",
    },
    definition: {
      source: "studies/processor-load.toml",
      sha256: "0123456789abcdef".repeat(4),
      text: 'name = "processor-load"\nrepetitions = 7\n\n[[axis]]\nbench.dialect = ["3.1.1", "2.1", "nt1"]\n\n[[axis]]\nlab.cpu-load = [0, 50, 75, 100]\n',
      quick: true,
      left_out: ["duration 3s instead of 20s"],
      targets: [],
      about: [],
    },
    command: `smbscope study studies/processor-load.toml --quick --repetitions ${repetitions} -o load`,
    started_ns: START,
    repetitions,
    seed: 1,
    environment: { processor: "AMD EPYC 7543", cores: "16", kernel: "Linux 6.12", server: "Samba 4.22" },
    variants,
    runs: Array.from({ length: repetitions }, (_, i) => i + 1).flatMap((repetition) =>
      variants.map((found, variant) => ({
        variant,
        repetition,
        directory: `${found.folder}/${repetition}`,
        started_ns: START + ((repetition - 1) * variants.length + variant) * 20e9,
        duration_ns: 19_500_000_000,
        attempts: made(variant, repetition) ? 1 : 2,
        repeated: made(variant, repetition) ? null : "the command before failed: exit status 1",
        other_load_percent: 2.5,
        failed: made(variant, repetition) ? null : "the command before failed: exit status 1",
      })),
    ),
    unfit: [],
    results: [
      ...rows("p95(Open/Close)", "s", seconds),
      ...rows("mean(total)", "s", (variant, of) => seconds(variant, of) / 3),
      ...rows("commands", "1/s", (variant, of) => (of * 100) / factor(variant) ** 0.4),
      ...rows("throughput", "B/s", (variant, of) => (of * 4e6) / factor(variant) ** 0.4),
      ...rows("disk_queue", "", (variant, of) => (of * factor(variant)) / 50),
      ...rows("server_cpu", "percent", (variant, of) => Math.min(83, busy(variant) * 0.8 + of / 10)),
    ],
    server: [
      ...server("cpu", "percent", (variant, of) => Math.min(83, busy(variant) * 0.8 + of / 10)),
      ...server("disk_queue", "count", (variant, of) => (of * factor(variant)) / 50),
      ...server("disk_busiest", "percent", (_, of) => of / 4),
      ...server("disk_read", "bytes/s", (_, of) => of * 1e5),
    ],
    warnings: [],
    studies: [],
  };
}
