// A ramp that was never run: users of a server with a known service time, by mean value analysis (Reiser and Lavenberg
// 1980), so that throughput and response time hang together as they do in nature.
import type { Run, SmbscopeBenchDocument, Times } from "../../src/types/bench";

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

const GROUPS: [string, number, number][] = [
  ["Open/Close", 0.31, 0.7],
  ["Read", 0.36, 0.9],
  ["Write", 0.19, 1.9],
  ["Other", 0.14, 0.65],
];

export function ramp(steps = [1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32]): SmbscopeBenchDocument {
  const duration = 30e9;
  const runs = steps.map((users, index): Run => {
    const { response, perSecond } = meanValues(users);
    const operations = Math.round((perSecond * duration) / 1e9);
    const wire = (mean: number) => (index === 0 ? null : mean - 60e3);
    return {
      users,
      duration_ns: duration,
      warmup_ns: 5e9,
      operations,
      operations_per_second: operations / 30,
      bytes_read: operations * 15_000,
      bytes_written: operations * 4_000,
      errors: users >= 24 ? { STATUS_SHARING_VIOLATION: users - 20, STATUS_IO_TIMEOUT: 2 } : {},
      total: { client: times(operations, response), wire: index === 0 ? null : times(operations, wire(response) ?? 0) },
      groups: GROUPS.map(([group, share, factor]) => ({
        group,
        operations: Math.round(operations * share),
        client: times(Math.round(operations * share), response * factor),
        wire: index === 0 ? null : times(Math.round(operations * share), response * factor - 60e3),
      })),
      client_cpu_percent: 4 + users * 2.6,
      client_limited: users >= 32,
      intervals: Array.from({ length: 30 }, (_, second) => {
        const wave = 1 + 0.12 * Math.sin(second * 1.7 + users);
        return {
          start_ns: START + (index * 40 + second) * 1e9,
          operations: Math.round(perSecond / wave),
          errors: users >= 24 && second % 9 === 4 ? 1 : 0,
          bytes_read: Math.round((perSecond * 15_000) / wave),
          bytes_written: Math.round((perSecond * 4_000) / wave),
          p50: Math.round(response * 0.78 * wave),
          p95: second === 7 ? null : Math.round(response * 2.4 * wave * wave),
        };
      }),
    };
  });
  return {
    schema: "smbscope.bench/1",
    generator: { name: "smbscope", version: "0.1.0" },
    title: "Filer with SSD",
    target: {
      host: "filer.example.net",
      port: 445,
      share: "bench",
      dialect: "SMB 3.1.1",
      signing: "on",
      encryption: "off",
    },
    workload: { name: "office", source: "workloads/office.toml" },
    started_ns: START,
    environment: { client: "16 processors, Linux 6.12", server: "Samba 4.22", network: "10 Gbit/s" },
    runs,
    capacity: { criterion: "95 % of commands within 10 ms", users: 12 },
    overall_response_time_ns: 2_345_000,
    warnings: ["At 32 users the client was the limit: that run says nothing about the server."],
  };
}
