// Sums that several parts of the report need.
import type { CommandEntry, StatisticsEntry, Times } from "../types/report";

/** Seconds waited: the sum of the times, from their mean. */
export function waited(times: Times): number {
  return (times.mean ?? 0) * times.count;
}

export function total(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

export function errorCount(row: Pick<StatisticsEntry, "errors">): number {
  return total(row.errors);
}

/** One status of one command. */
export interface ErrorEntry {
  status: string;
  command: string;
  count: number;
  /** Commands of that name; null where it is none. */
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

/** The name of a command as in all text; that of SMB1 says so where both protocols have it. */
export function commandName(command: Pick<CommandEntry, "protocol" | "command">): string {
  const name = command.command.replace(/^SMB_COM_/, "");
  return command.protocol === "SMB1" ? `${name} (SMB1)` : name;
}
