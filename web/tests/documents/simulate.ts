// Synthetic report of any size: exchanges from a seed, summarised as the schema defines it. Other tests cover real output.
import { COUNTERS } from "../../src/types/counters";
import type {
  Episode,
  GroupEntry,
  SlowExchange,
  SmbscopeReportDocument,
  StatisticsEntry,
  TimeSplit,
  Times,
  UserEntity,
} from "../../src/types/report";

/** One exchange, as far as the summaries need it. */
interface Exchange {
  start: number;
  took: number;
  command: number;
  client: number;
  user: number;
  file: number;
  share: number;
  failed: boolean;
  request: number;
  response: number;
}

/** The mix: command, group, share of all, median in µs, spread (sigma of the logarithm), bytes of the response. */
const MIX: [string, GroupEntry["group"], number, number, number, number, string[]][] = [
  ["READ", "Read", 0.34, 420, 0.9, 42_000, []],
  ["WRITE", "Write", 0.16, 900, 1.1, 84, []],
  ["CREATE", "Open/Close", 0.15, 310, 0.7, 220, []],
  ["CLOSE", "Open/Close", 0.14, 160, 0.5, 128, []],
  ["QUERY_INFO", "Attributes", 0.1, 140, 0.5, 190, ["NetworkOpen", "FsFullSize", "All"]],
  ["QUERY_DIRECTORY", "Directory", 0.06, 700, 0.9, 6_400, []],
  ["SET_INFO", "Attributes", 0.03, 240, 0.6, 70, ["Rename", "EndOfFile"]],
  ["LOCK", "Locking", 0.02, 130, 0.5, 70, []],
];

const START = 1_763_757_000_000_000_000;
const PER_DECADE = 24;

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export interface Settings {
  seed?: number;
  exchanges?: number;
  clients?: number;
  files?: number;
  seconds?: number;
  /** Put in front of every name of a user, share and file. */
  prefix?: string;
}

/** Summarises what a client did in a period as an episode. */
function episode(
  exchanges: Exchange[],
  client: number,
  name: string,
  from: number,
  duration: number,
  command: (exchange: Exchange) => SlowExchange,
): Episode {
  const own = exchanges.filter((e) => e.client === client && e.start >= from && e.start < from + duration);
  const waited = own.reduce((sum, e) => sum + e.took, 0);
  return {
    number: client + 1,
    client: name,
    kind: "document",
    about: "plan.xlsx",
    label: "opened plan.xlsx",
    start_ns: Math.round(from),
    end_ns: Math.round(from + duration),
    duration_ns: Math.round(duration),
    waited_ns: waited,
    think_ns: Math.max(0, Math.round(duration - waited)),
    commands: own.length,
    opens: own.filter((e) => MIX[e.command]?.[0] === "CREATE").length,
    files: new Set(own.map((e) => e.file)).size,
    bytes_read: 0,
    bytes_written: 0,
    timed: own.length,
    longest: own
      .sort((a, b) => b.took - a.took)
      .slice(0, 250)
      .map(command),
  };
}

export function simulate(settings: Settings = {}): SmbscopeReportDocument {
  const { seed = 1, exchanges: wanted = 20_000, clients = 12, files = 400, seconds = 300, prefix = "" } = settings;
  const next = random(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  const exchanges: Exchange[] = [];
  for (let i = 0; i < wanted; i += 1) {
    const at = next();
    // A busy spell from 55 % to 70 % of the time, in which the server slows down.
    const busy = at > 0.55 && at < 0.7 ? 1 : 0;
    const share = next();
    let sum = 0;
    const command = MIX.findIndex(([, , part]) => {
      sum += part;
      return share < sum;
    });
    const index = command < 0 ? 0 : command;
    const entry = MIX[index] as (typeof MIX)[number];
    const slow = next() < 0.01 + 0.06 * busy ? 12 : 1;
    exchanges.push({
      start: START + Math.floor(at * seconds * 1e9),
      took: Math.max(9_000, Math.round(entry[3] * 1_000 * Math.exp(entry[4] * normal()) * slow * (1 + 2.5 * busy))),
      command: index,
      client: Math.floor(next() ** 1.6 * clients),
      user: Math.floor(next() * Math.max(1, clients * 0.8)),
      file: Math.floor(next() ** 3 * files),
      share: Math.floor(next() ** 2 * 5),
      failed: next() < (entry[0] === "CREATE" ? 0.09 : 0.004),
      request: entry[0] === "WRITE" ? Math.round(30_000 * next()) + 120 : 120 + Math.floor(90 * next()),
      response: Math.round(entry[5] * (0.3 + next())),
    });
  }
  exchanges.sort((a, b) => a.start - b.start);
  const elapsed = seconds * 1e9;
  const of = (test: (exchange: Exchange) => boolean) => exchanges.filter(test);
  const groupOf = (exchange: Exchange) => MIX[exchange.command]?.[1];
  const parts = (names: GroupEntry["group"][]): GroupEntry[] =>
    names.map((name) =>
      group(
        name,
        of((e) => groupOf(e) === name),
        [],
      ),
    );
  const others: GroupEntry["group"][] = ["Attributes", "Directory", "Locking"];
  const ports = Array.from({ length: clients }, (_, i) => 49_152 + i * 7);
  const splits = ports.map((_, i) =>
    split(
      of((e) => e.client === i),
      elapsed,
      next,
    ),
  );
  const names = {
    user: (i: number) =>
      `${prefix}LAB\\${["alice", "bob", "carol", "dave", "erin", "frank"][i % 6]}${Math.floor(i / 6) || ""}`,
    share: (i: number) => `${prefix}${["office", "projects", "home", "media", "IPC$"][i] ?? "office"}`,
    file: (i: number) => `${prefix}dept ${i % 17}\\2026\\Quarter ${(i % 4) + 1}\\Übersicht ${i}.xlsx`,
    client: (i: number) => `10.20.${Math.floor(i / 200)}.${11 + (i % 200)}`,
  };
  const table = <K extends keyof Exchange>(key: K, count: number) =>
    Array.from({ length: count }, (_, i) => ({ i, of: of((e) => e[key] === i) }))
      .filter((entry) => entry.of.length > 0)
      .sort((a, b) => sum(b.of.map((e) => e.took)) - sum(a.of.map((e) => e.took)));
  const byFile = new Map<number, Exchange[]>();
  for (const exchange of exchanges) {
    const found = byFile.get(exchange.file);
    if (found) found.push(exchange);
    else byFile.set(exchange.file, [exchange]);
  }
  const total = row(exchanges);
  const connections = ports.map((port, i) => {
    const own = of((e) => e.client === i);
    const direction = (bytes: number) => ({
      packets: own.length * 2 + Math.ceil(bytes / 1448),
      bytes,
      message_packets: own.length,
      continuation_packets: Math.ceil(bytes / 1448),
      pure_acks: own.length,
      retransmitted: i % 4 === 1 ? 3 : 0,
      lost_before_capture: 0,
      needless: 0,
      resend_delay_ns: 0,
      ack_stalls: 0,
      ack_stall_ns: 0,
      dropped_bytes: i % 5 === 2 ? 1448 : 0,
      dropped_packets: i % 5 === 2 ? 1 : 0,
      window_closed_ns: 0,
      window_limited_ns: 0,
      filled_window: null,
    });
    return {
      flow_id: 1 + i * 14,
      client: names.client(i),
      client_port: port,
      server: "10.20.0.1",
      server_port: 445,
      first_ns: START,
      last_ns: START + elapsed,
      protocol: "SMB2" as const,
      dialect: i % 6 === 5 ? "SMB 3.0.2" : "SMB 3.1.1",
      negotiation: i % 9 === 4 ? 1 : 0,
      midstream: i % 9 === 4,
      end: (i % 7 === 3 ? "reset" : "open") as "reset" | "open",
      signing_required: i % 9 === 4 ? null : i % 3 === 0,
      signed_messages: i % 3 === 0 ? own.length * 2 : 4,
      encrypted_frames: 0,
      compressed_frames: 0,
      messages: own.length * 2,
      exchanges: own.length,
      max_outstanding: 1 + (i % 8),
      max_credits_granted: 512,
      credit_wait_ns: 0,
      max_asynchronous: 0,
      server_round_trip_ns: i % 9 === 4 ? null : 38_000 + i * 500,
      client_round_trip_ns: i % 9 === 4 ? null : 210_000 + i * 900,
      users: [...new Set(own.map((e) => names.user(e.user)))].slice(0, 3),
      shares: [...new Set(own.map((e) => names.share(e.share)))].slice(0, 4),
      encapsulation: i % 3 === 0 ? "VLAN (802.1Q), VXLAN on UDP port 4789" : null,
      proxy: null,
      to_server: direction(sum(own.map((e) => e.request))),
      to_client: direction(sum(own.map((e) => e.response))),
      time_split: splits[i] as TimeSplit,
    };
  });
  const slowest = [...exchanges].sort((a, b) => b.took - a.took).slice(0, 100);
  const packet = new Map(exchanges.map((exchange, i) => [exchange, 15 + i * 4]));
  const command = (e: Exchange): SlowExchange => {
    const at = packet.get(e) ?? 1;
    const network = Math.min(e.took, 38_000);
    return {
      flow_id: 1 + e.client * 14,
      client: names.client(e.client),
      client_port: ports[e.client] ?? 0,
      server: "10.20.0.1",
      server_port: 445,
      protocol: "SMB2",
      command: MIX[e.command]?.[0] ?? "",
      subcommand: null,
      group: (groupOf(e) ?? "Attributes") as SlowExchange["group"],
      user: names.user(e.user),
      share: names.share(e.share),
      path: names.file(e.file),
      status: e.failed ? "STATUS_OBJECT_NAME_NOT_FOUND" : "STATUS_SUCCESS",
      capture: `${prefix}fileserver-01.pcapng.zst`,
      response_capture: null,
      request_first_packet: at,
      request_last_packet: e.request > 1_448 ? at + 1 : at,
      response_first_packet: at + 2,
      response_last_packet: e.response > 1_448 ? at + 3 : at + 2,
      request_first_ns: e.start,
      response_time_ns: e.took,
      request_transfer_ns: Math.round(e.took * 0.05),
      service_time_ns: Math.round(e.took * 0.8),
      server_time_ns: Math.round(e.took * 0.8) - network,
      response_transfer_ns: e.took - Math.round(e.took * 0.05) - Math.round(e.took * 0.8),
      retransmission_delay_ns: null,
      request_bytes: e.request,
      response_bytes: e.response,
    };
  };
  return {
    schema: "smbscope.report/1",
    generator: { name: "smbscope", version: "0.1.0" },
    title: null,
    filter: null,
    matched: null,
    episodes: [0.2, 0.6].map((from, i) =>
      episode(exchanges, i, names.client(i), START + from * elapsed, elapsed / 10, command),
    ),
    waterfall: [],
    slices: slices(exchanges, names),
    captures: ["fileserver-01.pcapng.zst", "fileserver-02.pcapng.zst"].map((name, i) => ({
      name: `${prefix}${name}`,
      format: "pcapng",
      compression: "zstd",
      packets: wanted * 2,
      bytes: wanted * 9_000,
      first_ns: START + (i * elapsed) / 2,
      last_ns: START + ((i + 1) * elapsed) / 2,
      resolution_ns: 1,
      snap_length: 65_535,
      link_types: [1],
      coarse_clock_ns: null,
      clock_offset: null,
      warnings: [],
    })),
    quality: quality(wanted),
    totals: {
      commands: wanted,
      untimed: 0,
      outcomes: { complete: wanted },
      first_ns: START,
      last_ns: START + elapsed,
      elapsed_ns: elapsed,
      load: {
        elapsed_ns: elapsed,
        commands_per_second: wanted / (elapsed / 1e9),
        errors: Object.values(total.errors).reduce((all, count) => all + count, 0),
        bytes_read: 9_000,
        bytes_written: 4_000,
        read_bytes_per_second: 9_000 / (elapsed / 1e9),
        written_bytes_per_second: 4_000 / (elapsed / 1e9),
      },
      headline: total,
    },
    answer: {
      culprit: "server",
      headline: "Server: the server took 71% of the 41.2 s that 10.20.1.1 waited for 10.20.0.1.",
      states_first_cause: false,
      evidence: [
        "The longest wait was a WRITE of projects\\plan.xlsx (packet 463): 316 ms.",
        "Time of 10.20.1.1 on 10.20.0.1: server 44%, client 38%, round trips and retransmissions 18%.",
      ],
      causes: [],
      notes: [],
      ruled_out: ["Packet loss: no segment was retransmitted."],
      caveats: [],
      next: [
        { label: "files", command: "smbscope analyze --filter 'group == Write' --by file fileserver-0?.pcapng.zst" },
        {
          label: "when",
          command: "smbscope analyze --filter 'group == Write' --interval 20s fileserver-0?.pcapng.zst",
        },
      ],
      slow: "wait=1s,each=200ms,share=5%",
    },
    smb1: null,
    time_split: splits.reduce(added),
    negotiations: [
      {
        connections: connections.filter(({ negotiation }) => negotiation === 0).length,
        clients: [...new Set(connections.map(({ client }) => client))].slice(0, 100),
        servers: ["10.20.0.1:445"],
        client: {
          dialects: ["2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"],
          began_with_smb1: false,
          signing: "enabled",
          capabilities: ["leasing", "large MTU"],
          ciphers: ["AES-128-GCM", "AES-128-CCM"],
          signing_algorithms: ["AES-GMAC", "AES-CMAC"],
          compression_algorithms: null,
        },
        server: {
          dialect: "3.1.1",
          signing: "required",
          capabilities: ["leasing", "large MTU", "multichannel"],
          max_read: 8_388_608,
          max_write: 8_388_608,
          ciphers: ["AES-128-GCM"],
          signing_algorithms: ["AES-GMAC"],
          compression_algorithms: [],
        },
        features: [
          { feature: "Dialect", client: "2.0.2 to 3.1.1", server: "3.1.1", outcome: "the newest there is" },
          {
            feature: "Multichannel",
            client: "no",
            server: "yes",
            outcome: "not available: the client does not offer it",
          },
        ],
      },
      {
        connections: connections.filter(({ negotiation }) => negotiation === 1).length,
        clients: ["10.20.1.5"],
        servers: ["10.20.0.1:445"],
        client: null,
        server: null,
        features: [],
      },
    ].filter((negotiation) => negotiation.connections > 0),
    caching: {
      opens: [
        { granted: "not requested", count: 40 },
        { granted: "RWH lease", count: 160 },
      ],
      unknown_opens: 3,
      reads: 1_000,
      bytes_read: 9_000,
      repeated: { reads: 30, bytes: 3_000, cacheable_reads: 20, cacheable_bytes: 2_000 },
      clients: [{ client: "10.20.1.1", reads: 30, bytes: 3_000, cacheable_reads: 20, cacheable_bytes: 2_000 }],
      files: [
        {
          client: "10.20.1.1",
          share: "home",
          path: "settings.ini",
          reads: 30,
          bytes: 3_000,
          cacheable_reads: 20,
          cacheable_bytes: 2_000,
        },
      ],
    },
    connections,
    commands: MIX.flatMap(([command, groupName, , , , , subcommands], i) => {
      const own = of((e) => e.command === i);
      if (own.length === 0) return [];
      return {
        protocol: "SMB2" as const,
        command,
        groups: [groupName] as Exclude<GroupEntry["group"], "Other">[],
        ...row(own),
        subcommands: subcommands.map((subcommand, k) => ({
          subcommand,
          ...row(own.filter((_, n) => n % subcommands.length === k)),
        })),
        apart: [],
      };
    }),
    groups: [
      group(
        "Open/Close",
        of((e) => groupOf(e) === "Open/Close"),
        [],
      ),
      group(
        "Read",
        of((e) => groupOf(e) === "Read"),
        [],
      ),
      group(
        "Write",
        of((e) => groupOf(e) === "Write"),
        [],
      ),
      group(
        "Other",
        of((e) => others.includes(groupOf(e) ?? "Other")),
        parts(others),
      ),
    ],
    shares: table("share", 5).map((entry) => ({ share: names.share(entry.i), ...entity(entry.of) })),
    files: [...byFile]
      .map(([i, own]) => ({ share: i % 50 === 49 ? null : names.share(i % 5), path: names.file(i), ...entity(own) }))
      .sort((a, b) => (b.response_time.mean ?? 0) * b.timed - (a.response_time.mean ?? 0) * a.timed),
    clients: table("client", clients).map((entry) => ({
      client: names.client(entry.i),
      ...entity(entry.of),
      time_split: splits[entry.i] ?? null,
    })),
    servers: [{ server: "10.20.0.1", server_port: 445, ...entity(exchanges), time_split: splits.reduce(added) }],
    users: table("user", clients).map((entry) => ({ user: names.user(entry.i), ...entity(entry.of) })),
    ...overTime(exchanges, elapsed),
    slowest: slowest.map(command),
    omitted: { connections: 0, shares: 0, files: 0, clients: 0, servers: 0, users: 0 },
    warnings: [],
  };
}

/** The document of a capture in which commands overlapped, so that it has a curve of load. */
export function overlapping(report: SmbscopeReportDocument): SmbscopeReportDocument {
  const concurrency = report.concurrency.map((entry) => ({
    ...entry,
    outstanding_from: 16 * entry.outstanding_from,
    outstanding_to: 16 * entry.outstanding_to,
  }));
  return { ...report, concurrency };
}

/** The exchanges by user and share, the rest of them added up. */
function slices(
  exchanges: Exchange[],
  names: { user(i: number): string; share(i: number): string },
): SmbscopeReportDocument["slices"] {
  const found = new Map<string, Exchange[]>();
  for (const exchange of exchanges) {
    const key = `${exchange.user} ${exchange.share}`;
    found.set(key, [...(found.get(key) ?? []), exchange]);
  }
  const figures = (own: Exchange[]) => {
    const { count, timed, errors, bytes_read, bytes_written } = entity(own);
    const took = own.map((e) => e.took);
    return {
      count,
      timed,
      errors,
      bytes_read,
      bytes_written,
      response_time_sum_ns: sum(took),
      response_time: times(took),
      service_time: times(took.map((ns) => Math.round(ns * 0.8))),
    };
  };
  const kept = [...found.values()].slice(0, 30);
  const rest = [...found.values()].slice(30).flat();
  return {
    by: ["user", "share"],
    sort: "response_time",
    missed_at_most_ns: rest.length > 0 ? 1_000_000 : 0,
    entries: kept
      .map((own) => ({
        key: {
          user: own[0] && own[0].user > 0 ? names.user(own[0].user) : null,
          share: names.share(own[0]?.share ?? 0),
        },
        missed_at_most_ns: 0,
        ...figures(own),
      }))
      .sort((a, b) => b.response_time_sum_ns - a.response_time_sum_ns),
    other: rest.length > 0 ? figures(rest) : null,
  };
}

const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);

/** Statistics as the schema defines them: Hyndman and Fan 7, each percentile with the values that it needs. */
export function times(values: number[]): Times {
  const sorted = [...values].sort((a, b) => a - b);
  const n = sorted.length;
  const quantile = (q: number, needs: number) => {
    if (n < needs) return null;
    const at = (n - 1) * q;
    const low = sorted[Math.floor(at)] ?? 0;
    const high = sorted[Math.ceil(at)] ?? 0;
    return Math.round(low + (high - low) * (at - Math.floor(at)));
  };
  const mean = sum(sorted) / n;
  const deviation = Math.sqrt(sum(sorted.map((v) => (v - mean) ** 2)) / (n - 1));
  return {
    count: n,
    min: sorted[0] ?? null,
    max: sorted[n - 1] ?? null,
    mean: n > 0 ? Math.round(mean) : null,
    stddev: n > 1 ? Math.round(deviation) : null,
    p50: quantile(0.5, 1),
    p90: quantile(0.9, 10),
    p95: quantile(0.95, 20),
    p99: quantile(0.99, 100),
    p999: quantile(0.999, 1_000),
  };
}

export function row(own: Exchange[]): StatisticsEntry {
  const distribution = new Array<number>(10).fill(0) as StatisticsEntry["distribution"];
  for (const e of own) {
    const decade = Math.min(9, Math.max(0, Math.floor(Math.log10(e.took)) - 2));
    distribution[decade] = (distribution[decade] ?? 0) + 1;
  }
  const failed = own.filter((e) => e.failed).length;
  const part = (share: number) => times(own.map((e) => Math.round(e.took * share)));
  return {
    count: own.length,
    timed: own.length,
    errors: failed > 0 ? { STATUS_OBJECT_NAME_NOT_FOUND: failed } : {},
    outcomes: own.length > 0 ? { complete: own.length } : {},
    average_packets: 2.4,
    request_bytes: sum(own.map((e) => e.request)),
    response_bytes: sum(own.map((e) => e.response)),
    distribution,
    response_time: part(1),
    service_time: part(0.8),
    server_time: part(0.7),
    request_transfer: part(0.05),
    response_transfer: part(0.15),
    srt: part(0.95),
    retransmission_delay: times([]),
    think_time: part(2),
  };
}

function entity(own: Exchange[]): Omit<UserEntity, "user"> {
  const time = times(own.map((e) => e.took));
  const few = own.length <= 256;
  return {
    is_other: false,
    count: own.length,
    timed: own.length,
    errors: own.filter((e) => e.failed).length,
    bytes_read: sum(own.filter((e) => e.command === 0).map((e) => e.response)),
    bytes_written: sum(own.filter((e) => e.command === 1).map((e) => e.request)),
    response_time: few ? time : { ...time, p50: null, p90: null, p95: null, p99: null, p999: null },
  };
}

function group(name: GroupEntry["group"], own: Exchange[], parts: GroupEntry[]): GroupEntry {
  const sorted = own.map((e) => e.took).sort((a, b) => a - b);
  const points = Math.min(128, sorted.length);
  const cumulative: GroupEntry["cumulative"] = Array.from({ length: points }, (_, i) => {
    const at = Math.round(((i + 1) * sorted.length) / points) - 1;
    return [sorted[at] ?? 0, (at + 1) / sorted.length];
  });
  return { group: name, headline: true, ...row(own), parts, cumulative };
}

function split(own: Exchange[], elapsed: number, next: () => number): TimeSplit {
  const outstanding = sum(own.map((e) => e.took));
  const busy = Math.min(outstanding, elapsed * 0.8);
  const part = (share: number) => Math.floor(busy * share);
  const waiting = Math.floor((elapsed - busy) * 0.05 * next());
  const idle = Math.floor((elapsed - busy) * 0.2 * next());
  const named = {
    request_transfer_ns: part(0.04),
    network_ns: part(0.11),
    response_transfer_ns: part(0.13),
    server_or_network_ns: part(0.02),
    unknown_ns: 0,
    filtered_out_ns: 0,
    waiting_ns: waiting,
    idle_ns: idle,
  };
  const server_ns = Math.floor(busy) - part(0.04) - part(0.11) - part(0.13) - part(0.02);
  return {
    connections: 1,
    elapsed_ns: elapsed,
    ...named,
    server_ns,
    think_ns: elapsed - server_ns - sum(Object.values(named)),
    busy_ns: Math.floor(busy),
    outstanding_ns: outstanding,
    round_trips: own.length,
  };
}

function added(a: TimeSplit, b: TimeSplit): TimeSplit {
  const keys = Object.keys(a) as (keyof TimeSplit)[];
  return Object.fromEntries(keys.map((key) => [key, a[key] + b[key]])) as unknown as TimeSplit;
}

/** The heat map, the time line and the load curve. */
function overTime(exchanges: Exchange[], elapsed: number) {
  let width = 1_000_000;
  while (elapsed / width > 512) width *= 2;
  const edges = [0];
  for (let i = 0; i <= PER_DECADE * 8; i += 1) edges.push(Math.round(1_000 * 10 ** (i / PER_DECADE)));
  const bins = new Map<number, { of: Exchange[]; outstanding: number }>();
  const bin = (i: number) => {
    let found = bins.get(i);
    if (!found) {
      found = { of: [], outstanding: 0 };
      bins.set(i, found);
    }
    return found;
  };
  for (const e of exchanges) {
    const first = Math.floor((e.start - START) / width);
    bin(first).of.push(e);
    const end = e.start - START + e.took;
    for (let i = first; i * width < end; i += 1) {
      bin(i).outstanding += Math.min(end, (i + 1) * width) - Math.max(e.start - START, i * width);
    }
  }
  const sorted = [...bins].sort(([a], [b]) => a - b);
  const bucket = (took: number) => edges.findLastIndex((edge) => edge <= took);
  const heatmap = {
    width_ns: width,
    edges_ns: edges,
    bins: sorted.map(([i, entry]) => {
      const counts = new Map<number, number>();
      for (const e of entry.of) counts.set(bucket(e.took), (counts.get(bucket(e.took)) ?? 0) + 1);
      return {
        start_ns: START + i * width,
        outstanding_ns: Math.round(entry.outstanding),
        request_bytes: sum(entry.of.map((e) => e.request)),
        response_bytes: sum(entry.of.map((e) => e.response)),
        counts: [...counts].sort(([a], [b]) => a - b),
      };
    }),
  };
  const levels = new Map<number, { of: Exchange[]; bins: number }>();
  for (const [, entry] of sorted) {
    const mean = entry.outstanding / width;
    const level = Math.floor(Math.log2(mean / 0.0625));
    const found = levels.get(level) ?? { of: [], bins: 0 };
    found.of.push(...entry.of);
    found.bins += 1;
    levels.set(level, found);
  }
  const concurrency = [...levels]
    .sort(([a], [b]) => a - b)
    .map(([level, entry]) => {
      const { mean, p50, p95 } = times(entry.of.map((e) => e.took));
      return {
        outstanding_from: 0.0625 * 2 ** level,
        outstanding_to: 0.0625 * 2 ** (level + 1),
        time_ns: entry.bins * width,
        commands: entry.of.length,
        request_bytes: sum(entry.of.map((e) => e.request)),
        response_bytes: sum(entry.of.map((e) => e.response)),
        response_time: { mean, p50, p95 },
      };
    });
  const timeline = {
    width_ns: width * 2,
    bins: sorted
      .filter(([i]) => i % 2 === 0)
      .map(([i, entry]) => ({
        start_ns: START + i * width,
        commands: entry.of.length,
        errors: entry.of.filter((e) => e.failed).length,
        request_bytes: sum(entry.of.map((e) => e.request)),
        response_bytes: sum(entry.of.map((e) => e.response)),
        response_time: {
          count: entry.of.length,
          sum: sum(entry.of.map((e) => e.took)),
          max: entry.of.length > 0 ? Math.max(...entry.of.map((e) => e.took)) : null,
        },
        busy_ns: Math.round(entry.outstanding * 0.8),
        outstanding_ns: Math.round(entry.outstanding),
      })),
  };
  return { heatmap, concurrency, timeline };
}

function quality(commands: number): SmbscopeReportDocument["quality"] {
  const none = Object.fromEntries(Object.keys(COUNTERS).map((name) => [name, 0]));
  const some = {
    packets: commands * 4 + 120,
    wire_bytes: commands * 18_000,
    captured_bytes: commands * 18_000,
    tcp_packets: commands * 4,
    not_tcp: 120,
    smb_flow_packets: commands * 4,
    pure_acks: commands,
    retransmitted_segments: 9,
    retransmitted_bytes: 13_032,
    dropped_packets: 2,
    dropped_bytes: 2_896,
    capture_gaps: 2,
  };
  const sentence = "Packets are missing from the capture, but all commands in it were timed.";
  const skipped = [
    { layer: "EtherType", number: 0x0806, name: "ARP", packets: 80 },
    { layer: "UDP port", number: 53, name: "DNS", packets: 40 },
  ];
  const not_timed = { percent: 0, at_least: 0, at_most: 0 };
  const encapsulations = [{ headers: "VLAN (802.1Q), VXLAN on UDP port 4789", connections: 2, packets: 40_210 }];
  return { ...none, ...some, sentence, not_timed, skipped, encapsulations } as SmbscopeReportDocument["quality"];
}
