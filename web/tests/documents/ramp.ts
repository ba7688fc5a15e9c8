// A ramp that was never run: users of a server with a known service time, by mean value analysis (Reiser and Lavenberg
// 1980), so that throughput and response time hang together as they do in nature.
import type { BenchRun, LoadPointBreakdown, SmbscopeBenchDocument, Times } from "../../src/types/bench";
import { simulate } from "./simulate";

const THINK = 5e6;
const SERVICE = 380e3;
const DISK = 290e3;
const START = 1_763_800_000_000_000_000;

/** Response time and throughput of `users` users. */
export function meanValues(users: number): { response: number; perSecond: number } {
  let queues = [0, 0];
  let response = 0;
  let rate = 0;
  for (let n = 1; n <= users; n += 1) {
    const waits = [SERVICE * (1 + (queues[0] ?? 0)), DISK * (1 + (queues[1] ?? 0))];
    response = waits.reduce((a, b) => a + b, 0);
    rate = n / (response + THINK);
    queues = waits.map((wait) => wait * rate);
  }
  return { response, perSecond: rate * 1e9 };
}

function times(count: number, mean: number, few = false): Times {
  const at = (factor: number) => Math.round(mean * factor);
  return {
    count,
    min: at(0.2),
    max: at(9.5),
    mean: at(1),
    stddev: at(0.8),
    p50: at(0.78),
    p90: at(1.9),
    p95: at(2.4),
    p99: few ? null : at(4.1),
    p999: few ? null : at(7.3),
  };
}

const ADDED = 60e3;

type Group = BenchRun["groups"][number]["group"];

const GROUPS: [Group, number, number, string | null][] = [
  ["Open/Close", 0.31, 0.7, null],
  ["Other", 0.14, 0.65, null],
  ["Attributes", 0.08, 0.4, "Other"],
  ["Directory", 0.06, 0.98, "Other"],
  ["Read", 0.36, 0.9, null],
  ["Write", 0.19, 1.9, null],
];

const COMMANDS: [string, string | null, Group, number, number][] = [
  ["CREATE", null, "Open/Close", 0.16, 0.95],
  ["CLOSE", null, "Open/Close", 0.15, 0.43],
  ["QUERY_INFO", "FileStandardInformation", "Attributes", 0.08, 0.4],
  ["QUERY_DIRECTORY", null, "Directory", 0.06, 0.98],
  ["READ", null, "Read", 0.36, 0.9],
  ["WRITE", null, "Write", 0.19, 1.9],
];

/** Breakdown like the report of a capture, without packet numbers. */
function counted(seed: number, start: number): LoadPointBreakdown {
  const { groups, heatmap, concurrency, slowest, files, users, slices } = simulate({ seed, exchanges: 600 });
  const none = { request_first_packet: 0, request_last_packet: 0, response_first_packet: 0, response_last_packet: 0 };
  const later = start - (heatmap.bins[0]?.start_ns ?? 0);
  return {
    groups,
    heatmap: { ...heatmap, bins: heatmap.bins.map((bin) => ({ ...bin, start_ns: bin.start_ns + later })) },
    concurrency,
    slowest: slowest.slice(0, 20).map((slow) => ({ ...slow, ...none, capture: null, response_capture: null })),
    files: files.slice(0, 100),
    users,
    slices,
  };
}

/** A pass of the workload by each user. */
/** Two samples: the processors of the server get busier with the users. */
function server(users: number, start: number): BenchRun["server"] {
  const series = (metric: string, unit: string, first: number, second: number) => ({
    metric,
    unit,
    mean: (first + second) / 2,
    max: Math.max(first, second),
    values: [first, second],
  });
  return {
    source: "this machine",
    times_ns: [start + 1e9, start + 2e9],
    metrics: [
      series("cpu", "percent", 2 * users, 3 * users),
      series("cpu_busiest", "percent", 3 * users, 3 * users),
      series("samba_cpu", "percent", users, users),
      series("memory", "bytes", 2e9, 2.1e9),
      series("disk_read", "bytes/s", 0, 1e6),
      series("disk_operations", "1/s", 100, 120),
    ],
  };
}

function jobs(users: number, start: number): BenchRun["jobs"] {
  const list = Array.from({ length: users }, (_, session) => ({
    session: session + 1,
    started_ns: start,
    elapsed_ns: 20e9 + session * 1e8,
    waited_ns: 15e9,
    files: 300,
    bytes_read: 40_000_000,
    bytes_written: 1_000_000,
  }));
  return {
    elapsed: times(users, 20e9, true),
    unfinished: users,
    elapsed_sum_ns: list.reduce((sum, job) => sum + job.elapsed_ns, 0),
    waited_sum_ns: users * 15e9,
    files: users * 300,
    bytes_read: users * 40_000_000,
    bytes_written: users * 1_000_000,
    list,
  };
}

/** Answer for a load point. The client can't separate the server from the network. */
function pointAnswer(slow: boolean): NonNullable<BenchRun["answer"]> {
  return {
    culprit: slow ? "capture" : "nothing",
    headline: slow
      ? "Server or network: service time took 92% of all response times (7 min 05 s)."
      : "Nothing is slow: median 1.2 ms, p95 3.4 ms; the slowest command took 12.1 ms.",
    states_first_cause: false,
    evidence: slow ? ["Slow: p95 of Write 25.1 ms, above 20.0 ms."] : [],
    causes: [],
    notes: [],
    ruled_out: [],
    caveats: [],
    next: [],
    slow: "",
  };
}

export function ramp(steps = [1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32]): SmbscopeBenchDocument {
  const duration = 30e9;
  const runs = steps.map((users, index): BenchRun => {
    const { response, perSecond } = meanValues(users);
    const operations = Math.round((perSecond * duration) / 1e9);
    const errors = { STATUS_SHARING_VIOLATION: users - 20, STATUS_IO_TIMEOUT: 2 };
    // The first run was not captured. The client's own system adds 60 µs.
    const measured = (count: number, mean: number) => ({
      client: times(count, mean),
      wire: index === 0 ? null : times(count, mean - ADDED),
      difference: index === 0 ? null : times(count, ADDED),
    });
    return {
      users,
      started_ns: START + index * 40e9,
      duration_ns: duration,
      warmup_ns: 5e9,
      ended: { how: "done" },
      pace: { loop: "closed" },
      operations,
      operations_per_second: operations / 30,
      bytes_read: operations * 15_000,
      bytes_written: operations * 4_000,
      errors: users >= 24 ? errors : {},
      total: measured(operations, response),
      due: null,
      stalls: users === 32 ? [{ start_ns: START + index * 40e9 + 18e9, duration_ns: 2e9 }] : [],
      groups: GROUPS.map(([group, share, factor, part_of]) => ({
        group,
        part_of,
        headline: true,
        operations: Math.round(operations * share),
        ...measured(Math.round(operations * share), response * factor),
      })),
      commands: COMMANDS.map(([command, subcommand, group, share, factor]) => ({
        protocol: "SMB2",
        command,
        subcommand,
        group,
        count: Math.round(operations * share),
        errors: command === "CREATE" && users >= 24 ? errors : {},
        ...measured(Math.round(operations * share), response * factor),
      })),
      workload_operations: [
        {
          operation: "Open a document",
          service_time: times(Math.round(operations / 9), response * 4),
          response_time: null,
          unexpected: {},
        },
      ],
      connects: times(users, 14e6, true),
      connect_commands: { NEGOTIATE: users, SESSION_SETUP: 2 * users, TREE_CONNECT: users },
      queue: null,
      overload: null,
      hosts: [],
      jobs: index === 0 ? null : jobs(users, START + index * 40e9),
      server: index === 0 ? null : server(users, START + index * 40e9),
      failures: {},
      unanswered: 0,
      client_cpu: {
        user_ns: Math.round(operations * 6e3),
        system_ns: Math.round(operations * 9e3),
        percent: 4 + users * 2.6,
        per_operation_ns: 15_000,
        busiest_percent: Math.min(100, 3 + users * 3),
        limited: users >= 32,
        late_p99_ns: 84_000,
        late_max_ns: 84_000,
      },
      counted: index === 0 ? null : counted(users, START + index * 40e9),
      answer: index === 0 ? null : pointAnswer(users >= 32),
      capture:
        index === 0
          ? null
          : {
              state: "made",
              file: null,
              quality: "All commands in the capture were timed.",
              packets: operations * 2,
              dropped_packets: 0,
              client_commands: operations,
              wire_commands: operations,
              matched: operations,
              server: null,
            },
      intervals: Array.from({ length: 30 }, (_, second) => {
        // The last run has a server that stands still for two seconds.
        const still = users === 32 && (second === 18 || second === 19);
        const wave = 1 + 0.12 * Math.sin(second * 1.7 + users);
        return {
          start_ns: START + (index * 40 + second) * 1e9,
          users,
          operations: still ? 0 : Math.round(perSecond / wave),
          errors: users >= 24 && second % 9 === 4 ? 1 : 0,
          bytes_read: still ? 0 : Math.round((perSecond * 15_000) / wave),
          bytes_written: still ? 0 : Math.round((perSecond * 4_000) / wave),
          p50: still ? null : Math.round(response * 0.78 * wave),
          p95: still || second === 7 ? null : Math.round(response * 2.4 * wave * wave),
          max: still ? null : second === 20 && users === 32 ? 2.1e9 : Math.round(response * 9 * wave),
        };
      }),
    };
  });
  return {
    schema: "smbscope.bench/1",
    generator: { name: "smbscope", version: "0.1.0" },
    title: "Filer with SSD",
    launch: null,
    answer: {
      ...pointAnswer(true),
      headline: "2,625 commands/s with 32 users, still rising, median 5.61 ms, p95 17.3 ms.",
      evidence: [],
      next: [
        {
          label: "knee",
          command: "smbscope bench smb://bench@filer.example.net/bench --users 10..16:1 --think 5.00ms",
        },
        { label: "packets", command: "smbscope analyze --by file monday/point-08-12-users.pcap" },
      ],
    },
    target: {
      host: "filer.example.net",
      port: 445,
      share: "bench",
      directory: null,
      user: "bench",
      dialect: "3.1.1",
      signing: "on",
      signing_algorithm: "AES-128-CMAC",
      encryption: "off",
      cipher: null,
    },
    workload: {
      name: "office",
      source: "workloads/office.toml",
      parameters: { documents: "1200" },
      seed: 1,
      file_set: { files: 1_200, bytes: 24_600_000 },
      sha256: "a".repeat(64),
      definition: null,
    },
    settings: {
      schedule: { loop: "closed", think_ns: 5e6 },
      passes: null,
      users: steps,
      rates: [],
      duration_ns: duration,
      warmup_ns: 5e9,
      threads: 8,
      sessions_per_user: 1,
      connections_per_session: 1,
      busy_poll: false,
      connects_per_second: 100,
      max_errors_percent: 1,
      capture: true,
    },
    started_ns: START,
    environment: { client: "16 processors, Linux 6.12", server: "Samba 4.22", network: "10 Gbit/s" },
    runs,
    capacity: {
      criterion: "p95 < 10ms",
      users: 12,
      rate: null,
      always: 11,
      never: 14,
      tried: [
        { users: 8, rate: null, found: "6.1 ms", holds: true },
        { users: 16, rate: null, found: "13.9 ms", holds: false },
        { users: 12, rate: null, found: "9.4 ms", holds: true },
      ],
    },
    overall_response_time_ns: 2_345_000,
    warnings: ["At 32 users the client was the limit: that run says nothing about the server."],
    invocation: { command: "smbscope bench smb://bench@filer.example.net/bench", directory: "monday" },
  };
}
