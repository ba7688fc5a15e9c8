// The slowest commands, with a Wireshark filter for each.
import { type PartKey, partsLegend, segment, slimBar } from "../charts/split";
import { copyButton } from "../lib/clipboard";
import { clock, duration, percent } from "../lib/format";
import { clientSelection, fileSelection, namesTests, type Selection, shareSelection } from "../lib/selection";
import { type Column, pathColumn, selectColumn, textColumn, timeColumn } from "../table/columns";
import { table } from "../table/table";
import type { SlowExchange } from "../types/report";
import { endpoint } from "./connections";
import { commandName } from "./figures";

/** Builds a display filter for the packets in the request's file. Wireshark requires commas since 4.0. */
export function wiresharkFilter(exchange: SlowExchange): string {
  const elsewhere = exchange.response_capture !== null && exchange.response_capture !== exchange.capture;
  const packets = [exchange.request_first_packet, exchange.request_last_packet];
  if (!elsewhere) packets.push(exchange.response_first_packet, exchange.response_last_packet);
  const known = [...new Set(packets)].filter((packet) => packet > 0).sort((a, b) => a - b);
  return `frame.number in {${known.join(", ")}}`;
}

/** Columns that need a capture. */
const packetColumns: Column<SlowExchange>[] = [
  timeColumn("Server", (row) => row.server_time_ns, {
    help: "Service time minus the round trip",
    exported: "Server time (ns)",
  }),
  textColumn("Packets", wiresharkFilter, {
    help: "Copies a display filter for Wireshark",
    exported: "Wireshark filter",
    text: packets,
    cell: (row) =>
      copyButton(packets(row), () => wiresharkFilter(row), {
        "aria-label": `${packets(row)}: copy the filter ${wiresharkFilter(row)}`,
        title: wiresharkFilter(row),
      }),
  }),
];

/** Creates the table of the slowest commands. `captured` adds packet numbers, `selects` makes names select. */
export function slowestTable(slowest: readonly SlowExchange[], captured: boolean, selects = false): HTMLElement {
  const files = new Set(slowest.flatMap((row) => [row.capture, row.response_capture ?? row.capture]));
  const columns: Column<SlowExchange>[] = [
    timeColumn("Took", (row) => row.response_time_ns, { exported: "Response time (ns)" }),
    textColumn("Command", (row) => (row.subcommand ? `${commandName(row)} ${row.subcommand}` : commandName(row)), {
      width: 18,
    }),
    selectColumn(
      pathColumn((row) => [row.share, row.path].filter((text) => text !== null).join(": ") || null, { width: 26 }),
      (row) => (selects ? placeSelection(row) : null),
    ),
    {
      title: "Phases",
      screenOnly: true,
      kind: "other",
      width: 8,
      private: true,
      help: "Request, wait for the response, response. Sorts by the share of the wait",
      value: (row) => (row.service_time_ns === null ? null : row.service_time_ns / Math.max(1, row.response_time_ns)),
      text: () => "",
      cell: phases,
    },
    ...(captured ? packetColumns : []),
    textColumn("Start (UTC)", (row) => clock(row.request_first_ns)),
    selectColumn(
      textColumn("Client", (row) => endpoint(row.client, row.client_port)),
      (row) => (selects ? clientSelection(row.client) : null),
    ),
    textColumn("User", (row) => row.user, { width: 12, screenOnly: true }),
    textColumn("Status", (row) => (row.status === "STATUS_SUCCESS" ? null : row.status), {
      width: 17,
      screenOnly: true,
    }),
    ...(captured && files.size > 1 ? [textColumn<SlowExchange>("File", (row) => row.capture, { cutStart: true })] : []),
  ];
  return table({
    caption: "Slowest commands",
    columns,
    rows: slowest,
    time: (row) => [row.request_first_ns, row.request_first_ns],
    sort: { title: "Took", descending: true },
    only: selects ? namesTests<SlowExchange>() : undefined,
    legend: partsLegend(slowest.flatMap((row) => phaseParts(row).map(([, key]) => key))),
  });
}

/** Returns the selection of a command's file, or of its share. */
function placeSelection({ share, path }: SlowExchange): Selection | null {
  if (path !== null) return fileSelection(path, share);
  return share === null ? null : shareSelection(share);
}

function packets(row: SlowExchange): string {
  const half = (first: number, last: number) => (first === last ? `${first}` : `${first}–${last}`);
  return `${half(row.request_first_packet, row.request_last_packet)} → ${half(row.response_first_packet, row.response_last_packet)}`;
}

/** Returns the phases that took time. */
function phaseParts(row: SlowExchange): [string, PartKey, number][] {
  const {
    request_transfer_ns: request,
    service_time_ns: service,
    server_time_ns: server,
    response_transfer_ns: response,
  } = row;
  const parts: [string, PartKey, number][] = [["Request", "request_transfer_ns", request ?? 0]];
  if (service !== null && server !== null) {
    parts.push(["server", "server_ns", server], ["round trip", "network_ns", service - server]);
  } else {
    parts.push(["server or network", "server_or_network_ns", service ?? 0]);
  }
  parts.push(["response", "response_transfer_ns", response ?? 0]);
  return parts.filter(([, , ns]) => ns > 0);
}

/** Draws the phases of one command as a bar. */
function phases(row: SlowExchange): HTMLElement {
  const whole = Math.max(1, row.response_time_ns);
  const parts = phaseParts(row);
  const text = parts.map(([name, , ns]) => `${name} ${duration(ns)} (${percent(ns, whole)})`).join(", ");
  return slimBar(
    text,
    parts.map(([, key, ns]) => segment(key, ns / whole)),
  );
}
