// The details of one command, opened from a chart.
import { copyButton } from "../lib/clipboard";
import { type Child, h } from "../lib/dom";
import { clock, duration } from "../lib/format";
import { facts, openDialog } from "../lib/page";
import { clientSelection, fileSelection, selectButton, shareSelection } from "../lib/selection";
import type { SlowExchange } from "../types/report";
import { endpoint } from "./connections";
import { commandName } from "./figures";
import { wiresharkFilter } from "./slowest";

export function openCommand(exchange: SlowExchange): void {
  const { client, client_port, server, server_port, share, path } = exchange;
  const name = `${commandName(exchange)}${exchange.subcommand ? ` ${exchange.subcommand}` : ""}`;
  const filter = wiresharkFilter(exchange);
  const entries: [string, Child | false][] = [
    ["Took", h("b", {}, duration(exchange.response_time_ns))],
    ["Server time", exchange.server_time_ns !== null && duration(exchange.server_time_ns)],
    ["File", path !== null && selectButton(fileSelection(path, share))],
    ["Share", share !== null && selectButton(shareSelection(share))],
    ["Client", h("span", {}, selectButton(clientSelection(client)), ` (${endpoint(client, client_port)})`)],
    ["User", exchange.user],
    ["Server", endpoint(server, server_port)],
    ["Start", `${clock(exchange.request_first_ns)} UTC`],
    ["Status", exchange.status],
    [
      "Wireshark filter",
      h(
        "span",
        { class: "command" },
        h("code", {}, filter),
        copyButton("Copy", () => filter, { "aria-label": `Copy ${filter}` }),
      ),
    ],
  ];
  const known = entries.filter((entry): entry is [string, Child] => Boolean(entry[1]));
  openDialog(name, name, facts(known));
}
