// How the figures were computed: the four timestamps, the rule of the time split, what a percentile needs, the limits.
import { h, s } from "../lib/dom";
import { counted } from "../lib/format";
import { meanings, part } from "../lib/page";
import type { Omitted, SmbscopeReportDocument } from "../types/report";

const TIMES: [string, string][] = [
  [
    "Response time",
    "From the first packet of the request to the last of the final response: what the client waits. The headline figure, as Swartz (1997) measured it.",
  ],
  [
    "Service time",
    "From the last packet of the request to the first of the final response: the server's thinking and the round trip.",
  ],
  [
    "Server time",
    "Service time less the round trip between capture point and server. That comes from the connection's own handshake and acknowledgements; where it is not known, the server time is absent and never guessed.",
  ],
  ["Request and response transfer", "From the first to the last packet of each half."],
  [
    "Service response time (SRT)",
    "From the last packet of the request to the last of the response, as Wireshark counts it.",
  ],
  [
    "Retransmission delay",
    "From the first to the last copy of a segment that was sent again: the network's share, shown apart.",
  ],
  [
    "Think time",
    "From the last packet of a response to the first of the next request, with nothing outstanding: the client's own time.",
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
      "Commands are grouped as Swartz groups them: Read, Write (with flushes), Open/Close, and Other with Attributes, Directory and Locking; besides these Session and Control. Expected waits, such as change notification, blocking locks and reads of named pipes, are measured but kept out of every headline, in a group of their own: Waiting. Frames that are encrypted can only be timed as such and are a group too. An interim response (STATUS_PENDING) never ends a command.",
    ],
    [
      "Where the time went",
      "Each moment of a connection is divided equally among the commands outstanding on it, and each share goes to the phase in which its command is; while a response is coming in, or a lost segment is being sent again, the moment is the transfer's, or the network's. With nothing outstanding it is the client's own time for at most 10 s after a response, and idle after that. The parts add up to the time from the first to the last packet of all connections.",
    ],
    [
      "Percentiles",
      "They interpolate linearly (Hyndman and Fan, type 7), are exact up to 10,000 values and have three significant digits above. A percentile is shown only where enough values support it: the 90th needs 10, the 95th 20, the 99th 100. Of shares, users, clients and servers they are known up to 256 values, of files up to 64. A dash says that a value is not known.",
    ],
    [
      "What counts",
      "A command counts in the times only when the first packet of its request and the last of its response were captured; the others are counted by reason under Quality. A match that is in doubt is refused and not guessed. Bytes that the receiver acknowledged but the capture never held were dropped by the capture; bytes that were sent twice were lost by the network, or believed lost.",
    ],
    [
      "Limits of this page",
      `At most the 100 slowest commands are listed. ${left} The heat map has at most 512 intervals, and its buckets of response time are each ${bucketWidth(report.heatmap)} wide; the cumulative distributions at most 128 points. All times of day are UTC.`,
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
    ? `Left out for the size of the file: ${parts.join(", ")}, those with the least waiting.`
    : "No table was cut short.";
}

/** An exchange between client and server, with its four timestamps and the times between them. */
function timestamps(): HTMLElement {
  const text = (x: number, y: number, content: string, more: Record<string, string> = {}) =>
    s("text", { x, y, ...more }, content);
  const packet = (x1: number, x2: number, up: boolean) =>
    s("path", { class: "packet", d: up ? `M${x1} 60L${x2} 168` : `M${x1} 168L${x2} 60`, "marker-end": "url(#arrow)" });
  // Beside the packet: below it on the side that it comes from, or goes to.
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
        "A request and its response pass the capture point: response time runs from the first packet of the request to the last of the response, service time from the last of the request to the first of the response",
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
  return h("div", { class: "drawing" }, drawing);
}
