// Colours by meaning, as variables of the style sheet, which defines them for light and dark mode. The hues are Okabe and
// Ito's, chosen for colour-blind readers. No meaning depends on colour alone.

/** Colour and dash pattern of each command group. */
const GROUPS: Record<string, [string, string]> = {
  Read: ["sky", ""],
  Write: ["amber", "12 3"],
  "Open/Close": ["green", "7 3"],
  Other: ["purple", "2 3"],
  Session: ["blue", "9 3 2 3"],
  Control: ["vermilion", "4 2"],
  Attributes: ["purple", "2 3"],
  Directory: ["purple", "5 3"],
  Locking: ["purple", "9 3"],
  Waiting: ["grey", "1 3"],
  Encrypted: ["grey", "5 2"],
};

const SERIES: [string, string][] = [
  ["blue", ""],
  ["vermilion", "7 3"],
  ["green", "2 3"],
  ["purple", "9 3 2 3"],
  ["amber", "4 2"],
  ["sky", "5 3"],
  ["grey", "1 3"],
];

/** Index of figures that several charts show, so that each has one colour. Reads and writes have the group's colour. */
export const FIGURES = { mean: 0, p95: 1, median: 2, commands: 3, written: 4, read: 5, bytes: 6 } as const;

export interface Stroke {
  colour: string;
  dashes: string;
}

/** Returns the stroke of a second line with the meaning of a figure, such as the median on the wire. */
export function figureStroke(figure: keyof typeof FIGURES, dashes: string): Stroke {
  return { ...seriesStroke(FIGURES[figure]), dashes };
}

/** Returns the stroke of a server metric. These have panels of their own, so dashes distinguish them. */
export function serverStroke(dashes: string): Stroke {
  return { colour: "var(--ink)", dashes };
}

export function groupStroke(group: string): Stroke {
  const [name, dashes] = GROUPS[group] ?? ["grey", ""];
  return { colour: `var(--${name})`, dashes };
}

/** Returns the stroke of a series without a colour of its own, by its index. */
export function seriesStroke(index: number): Stroke {
  const [name, dashes] = SERIES[index % SERIES.length] ?? ["grey", ""];
  return { colour: `var(--${name})`, dashes };
}
