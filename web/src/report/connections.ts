// Table of connections, and the details of one.
import { splitFigure, splitsLegend } from "../charts/split";
import { type Child, h } from "../lib/dom";
import { bytes, clock, counted, duration, percent, span, thousands } from "../lib/format";
import { facts, openDialog } from "../lib/page";
import { clientSelection, selectButton, shareSelection } from "../lib/selection";
import { type Column, countColumn, textColumn, timeColumn } from "../table/columns";
import { grid } from "../table/grid";
import { table } from "../table/table";
import type { ConnectionEntry, SmbscopeReportDocument } from "../types/report";
import { featureGrid } from "./negotiation";
import { omittedNote, splitColumn } from "./tables";

export function connectionTable(report: SmbscopeReportDocument): HTMLElement {
  const columns: Column<ConnectionEntry>[] = [
    textColumn("Client", (row) => endpoint(row.client, row.client_port), {
      width: 22,
      cell: (row) =>
        h(
          "button",
          {
            type: "button",
            class: "link",
            "aria-haspopup": "dialog",
            title: "Connection details",
            click: () => openDetails(row, report),
          },
          endpoint(row.client, row.client_port),
        ),
    }),
    countColumn("Commands", (row) => row.exchanges),
    textColumn("Server", (row) => endpoint(row.server, row.server_port)),
    textColumn("Dialect", (row) => row.dialect ?? row.protocol),
    textColumn("Users", (row) => row.users.join(", ") || null, { width: 15 }),
    timeColumn("RTT to server", (row) => row.server_round_trip_ns, {
      help: "Round trip between capture point and server",
    }),
    timeColumn("RTT to client", (row) => row.client_round_trip_ns, {
      help: "Round trip between capture point and client",
    }),
    countColumn("Retransmitted", (row) => row.to_server.retransmitted + row.to_client.retransmitted, {
      help: "Packets retransmitted by TCP, both ways",
    }),
    countColumn("Dropped", (row) => row.to_server.dropped_packets + row.to_client.dropped_packets, {
      help: "Packets dropped by the capture, both ways",
    }),
    splitColumn((row) => row.time_split),
  ];
  return table({
    caption: "Connections",
    columns,
    rows: report.connections,
    time: (row) => [row.first_ns, row.last_ns],
    sort: { title: "Commands", descending: true },
    legend: splitsLegend(report.connections.map(({ time_split }) => time_split)),
    note: omittedNote(report.omitted.connections),
    only: {
      client: (row, { name }) => row.client === name,
      share: (row, { name }) => row.shares.includes(name),
    },
  });
}

export function endpoint(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

function openDetails(connection: ConnectionEntry, report: SmbscopeReportDocument): void {
  const title = `${endpoint(connection.client, connection.client_port)} → ${endpoint(connection.server, connection.server_port)}`;
  openDialog(
    `Connection ${title}`,
    title,
    facts(known(connection)),
    connection.time_split && connection.time_split.elapsed_ns > 0
      ? splitFigure(connection.time_split, "Where the time on this connection went")
      : null,
    offers(connection, report),
    directions(connection),
  );
}

function offers(connection: ConnectionEntry, report: SmbscopeReportDocument): HTMLElement | null {
  const negotiation = connection.negotiation === null ? undefined : report.negotiations[connection.negotiation];
  if (!negotiation || negotiation.features.length === 0) return null;
  return featureGrid("Offered features", negotiation);
}

const ENDS = { open: "still open at the end of the capture", closed: "closed", reset: "reset" };

function known(connection: ConnectionEntry): [string, Child][] {
  const { messages, signed_messages: signed, time_split: split } = connection;
  const signing =
    connection.signing_required === null
      ? "negotiation not captured"
      : connection.signing_required
        ? "required by the server"
        : "not required by the server";
  const names = (list: Child[]) =>
    list.length > 0
      ? h("span", { class: "names" }, ...list.map((name) => h("span", { class: "name" }, name)))
      : "unknown";
  return [
    ["Client", selectButton(clientSelection(connection.client))],
    [
      "Time",
      `${clock(connection.first_ns)} to ${clock(connection.last_ns)} UTC, ${span(connection.last_ns - connection.first_ns)}`,
    ],
    ["Started", connection.midstream ? "before the capture" : "during the capture"],
    ["Ended", ENDS[connection.end]],
    ["Dialect", connection.dialect ?? "unknown"],
    ...(connection.encapsulation ? [["Inside", connection.encapsulation] as [string, Child]] : []),
    ...(connection.proxy ? [["Proxy", connection.proxy] as [string, Child]] : []),
    ["Signing", `${signing}, ${messages > 0 ? percent(signed, messages) : "none"} of messages signed`],
    ["Encryption", connection.encrypted_frames > 0 ? counted(connection.encrypted_frames, "encrypted frame") : "none"],
    [
      "Compression",
      connection.compressed_frames > 0 ? counted(connection.compressed_frames, "compressed frame") : "none",
    ],
    [
      "Round-trip times",
      `${duration(connection.server_round_trip_ns)} to the server, ${duration(connection.client_round_trip_ns)} to the client, from the capture point`,
    ],
    ["Commands", `${thousands(connection.exchanges)}, at most ${thousands(connection.max_outstanding)} outstanding`],
    ["Mean outstanding", split && split.busy_ns > 0 ? (split.outstanding_ns / split.busy_ns).toFixed(2) : "–"],
    [
      "Credits",
      connection.max_credits_granted > 0 ? `${thousands(connection.max_credits_granted)} at most` : "none granted",
    ],
    ["Users", names(connection.users)],
    ["Shares", names(connection.shares.map((share) => selectButton(shareSelection(share))))],
    ["First packet", `${thousands(connection.flow_id)}, counted across all captures`],
  ];
}

function directions(connection: ConnectionEntry): HTMLElement {
  const { to_server: up, to_client: down } = connection;
  const rows: [string, (side: ConnectionEntry["to_server"]) => string][] = [
    ["Packets", (side) => thousands(side.packets)],
    ["Bytes", (side) => bytes(side.bytes)],
    ["Starting a message", (side) => thousands(side.message_packets)],
    ["Continuing a message", (side) => thousands(side.continuation_packets)],
    ["Pure acknowledgements", (side) => thousands(side.pure_acks)],
    ["Retransmitted", (side) => thousands(side.retransmitted)],
    ["Dropped by the capture", (side) => `${thousands(side.dropped_packets)} (${bytes(side.dropped_bytes)})`],
  ];
  return grid({
    caption: "Packets by direction",
    columns: [[""], ["To the server", "number"], ["To the client", "number"]],
    rows: rows.map(([name, text]) => [name, text(up), text(down)]),
    kind: "grid small",
    captioned: true,
  });
}
