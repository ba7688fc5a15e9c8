// Sums shared by several parts of the report.
import type { CommandEntry, StatisticsEntry, Times } from "../types/report";

/** Computes the sum of response times from their mean. */
export function waited(times: Times): number {
  return (times.mean ?? 0) * times.count;
}

export function total(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

export function errorCount(row: Pick<StatisticsEntry, "errors">): number {
  return total(row.errors);
}

/** Number of times a command failed with a status. */
export interface ErrorEntry {
  status: string;
  command: string;
  count: number;
  /** Number of commands of that name. Null for a failed session. */
  of: number | null;
}

export function errorEntries(commands: readonly CommandEntry[]): ErrorEntry[] {
  return commands
    .flatMap((command) =>
      Object.entries(command.errors).map(([status, count]) => ({
        status,
        command: commandName(command),
        count,
        of: command.count,
      })),
    )
    .sort((a, b) => b.count - a.count);
}

/** Returns the display name of a command. */
export function commandName(command: Pick<CommandEntry, "protocol" | "command">): string {
  const name = command.command.replace(/^SMB_COM_/, "");
  return command.protocol === "SMB1" ? `${name} (SMB1)` : name;
}
