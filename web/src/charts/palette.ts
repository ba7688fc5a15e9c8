// Colours by what they stand for. They are variables of the style sheet, which has them for light, dark and paper; the
// hues are those of Okabe and Ito, which the colour-blind can tell apart. No meaning rests on a colour alone.

/** Groups of commands: colour, and the dashes of their lines. */
const GROUPS: Record<string, [string, string]> = {
  Read: ["blue", ""],
  Write: ["vermilion", "12 3"],
  "Open/Close": ["green", "7 3"],
  Other: ["purple", "2 3"],
  Session: ["sky", "9 3 2 3"],
  Control: ["amber", "4 2"],
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

export interface Stroke {
  colour: string;
  dashes: string;
}

export function groupStroke(group: string): Stroke {
  const [name, dashes] = GROUPS[group] ?? ["grey", ""];
  return { colour: `var(--${name})`, dashes };
}

/** By the index among series that have no colour of their own. */
export function seriesStroke(index: number): Stroke {
  const [name, dashes] = SERIES[index % SERIES.length] ?? ["grey", ""];
  return { colour: `var(--${name})`, dashes };
}
