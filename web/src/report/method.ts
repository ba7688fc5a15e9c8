// Definitions of the figures, and the limits of the page.
import { h, s } from "../lib/dom";
import { counted } from "../lib/format";
import { meanings, part } from "../lib/page";
import type { Omitted, SmbscopeReportDocument } from "../types/report";

const TIMES: [string, string][] = [
  [
    "Response time",
    "From the first packet of the request to the last packet of the final response: the time the client waits. This is the headline figure, measured as in Swartz (1997).",
  ],
  [
    "Service time",
    "From the last packet of the request to the first packet of the final response: the server's processing plus the round trip.",
  ],
  [
    "Server time",
    "Service time minus the round trip between capture point and server. The round trip comes from the connection's own handshake and acknowledgements. If it is unknown, there is no server time; it is never guessed.",
  ],
  ["Request and response transfer", "From the first to the last packet of the request, or of the response."],
  [
    "Service response time (SRT)",
    "From the last packet of the request to the last packet of the response, as in Wireshark.",
  ],
  [
    "Retransmission delay",
    "From the first to the last copy of a retransmitted segment. This is the network's share and is shown separately.",
  ],
  [
    "Think time",
    "From the last packet of a response to the first packet of the next request, with nothing outstanding: the client's own time.",
  ],
];

function bucketWidth({ edges_ns: edges }: SmbscopeReportDocument["heatmap"]): string {
  return `${Math.round(100 * ((edges[2] ?? 0) / (edges[1] ?? 1) - 1))}%`;
}

export function method(report: SmbscopeReportDocument): HTMLElement {
  const left = omittedList(report.omitted);
  const texts: [string, string][] = [
    [
      "Groups",
      "Commands are grouped as in Swartz: Read, Write (with flushes), Open/Close, and Other (Attributes, Directory and Locking), plus Session and Control. Expected waits (change notify, blocking locks, reads of named pipes) have their own group, Waiting, and are excluded from all headline figures. Encrypted frames can only be timed as frames and form a group, too. An interim response (STATUS_PENDING) never ends a command.",
    ],
    [
      "Where the time went",
      "Each instant of a connection is divided equally among its outstanding commands, and each share is assigned to the phase its command is in. While a response arrives, the instant counts as transfer; while a lost segment is retransmitted, as network. With nothing outstanding, the first 10 s after a response count as client time and the rest as idle. The parts add up to the time from the first to the last packet, summed over all connections.",
    ],
    [
      "Percentiles",
      "Percentiles interpolate linearly (Hyndman and Fan, type 7). They are exact up to 10,000 values and have three significant digits above that. A percentile needs enough values: 10 for the 90th, 20 for the 95th, 100 for the 99th. For shares, users, clients and servers they are exact up to 256 values, for files up to 64. A dash means that the value is unknown.",
    ],
    [
      "What counts",
      "A command is timed only if the first packet of its request and the last packet of its response were captured. The others are counted by reason under Quality. A doubtful match is rejected. Bytes that the receiver acknowledged but that are missing from the capture count as dropped by the capture. Bytes that were sent twice count as lost by the network, or assumed lost.",
    ],
    [
      "Limits of this page",
      `The page lists at most the 100 slowest commands, and of each episode the 250 longest: 5,000 in all, of the episodes with the longest wait. Many clients or episodes leave less room. ${left} The heat map has at most 512 intervals and response time buckets ${bucketWidth(report.heatmap)} wide; the cumulative distributions have at most 128 points. All times of day are UTC.`,
    ],
  ];
  return h(
    "div",
    { class: "prose" },
    timestamps(),
    meanings(TIMES),
    ...texts.map(([title, text]) => part(title, h("p", {}, text))),
  );
}

function omittedList(omitted: Omitted): string {
  const parts = Object.entries(omitted)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => counted(count, name.replace(/s$/, ""), name));
  return parts.length > 0
    ? `To keep this file small, it omits ${parts.join(", ")} with the shortest total wait.`
    : "No table is truncated.";
}

/** Draws a command between client and server with its four timestamps. */
function timestamps(): HTMLElement {
  const text = (x: number, y: number, content: string, more: Record<string, string> = {}) =>
    s("text", { x, y, ...more }, content);
  const packet = (x1: number, x2: number, up: boolean) =>
    s("path", { class: "packet", d: up ? `M${x1} 60L${x2} 168` : `M${x1} 168L${x2} 60`, "marker-end": "url(#arrow)" });
  const instant = (x: number, label: string, up: boolean) =>
    s(
      "g",
      {},
      s("circle", { cx: x, cy: 114, r: 4 }),
      text(up ? x - 5 : x + 5, 132, label, { class: "instant", "text-anchor": up ? "end" : "start" }),
    );
  const span = (from: number, to: number, y: number, label: string, strong = false) =>
    s(
      "g",
      { class: strong ? "span strong" : "span" },
      s("path", { d: `M${from} ${y - 5}v10M${to} ${y - 5}v10M${from} ${y}H${to}` }),
      text((from + to) / 2, y - 7, label, { "text-anchor": "middle" }),
    );
  const drawing = s(
    "svg",
    {
      viewBox: "0 0 760 300",
      class: "timestamps",
      role: "img",
      "aria-label":
        "A request and its response pass the capture point. Response time runs from the first packet of the request to the last packet of the response, service time from the last packet of the request to the first packet of the response.",
    },
    s(
      "defs",
      {},
      s(
        "marker",
        { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
        s("path", { d: "M0 0.5L8 4L0 7.5z" }),
      ),
    ),
    text(66, 64, "Client", { "text-anchor": "end" }),
    text(66, 118, "Capture", { "text-anchor": "end", class: "muted" }),
    text(66, 172, "Server", { "text-anchor": "end" }),
    s("path", { class: "host", d: "M76 60H750M76 168H750" }),
    s("path", { class: "wire", d: "M76 114H750" }),
    packet(96, 150, true),
    packet(196, 250, true),
    packet(480, 534, false),
    packet(620, 674, false),
    text(108, 48, "request"),
    text(632, 48, "response", { "text-anchor": "middle" }),
    instant(123, "first", true),
    instant(223, "last", true),
    instant(507, "first", false),
    instant(647, "last", false),
    span(123, 223, 204, "transfer"),
    span(223, 507, 204, "service time"),
    span(507, 647, 204, "transfer"),
    span(250, 480, 240, "server time"),
    span(123, 647, 282, "response time", true),
  );
  return h("div", { class: "drawing", tabindex: 0, role: "region", "aria-label": "Times of a command" }, drawing);
}
