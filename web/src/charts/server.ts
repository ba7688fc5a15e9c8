// Panels of what a load cost the server: beneath those of response time and throughput, on the same axis.
import { bytesPanel, type Panel, percentPanel, type Series, timePanel } from "./lines";

/** A figure of a metric, as documents name it. */
export interface ServerFigure {
  name: string;
  metric: string;
  of: "mean" | "max";
}

interface Part {
  title: string;
  panel(title: string, height: number, series: Series[]): Panel;
  figures: readonly ServerFigure[];
  /** Only beside each other in one panel, and so of one server. */
  together?: true;
}

/** Means of the time inside smbd, by Samba's own profile. */
export const INSIDE_SAMBA: readonly ServerFigure[] = [
  { name: "Create in Samba", metric: "samba_create_time", of: "mean" },
  { name: "Close in Samba", metric: "samba_close_time", of: "mean" },
  { name: "Read in Samba", metric: "samba_read_time", of: "mean" },
  { name: "Write in Samba", metric: "samba_write_time", of: "mean" },
  { name: "Flush in Samba", metric: "samba_flush_time", of: "mean" },
];

const PARTS: readonly Part[] = [
  {
    title: "Processors of the server",
    panel: percentPanel,
    figures: [
      { name: "Server CPU", metric: "cpu", of: "mean" },
      { name: "Server CPU, maximum", metric: "cpu", of: "max" },
    ],
  },
  {
    title: "Samba, of one processor",
    panel: percentPanel,
    figures: [{ name: "Samba CPU", metric: "samba_cpu", of: "mean" }],
  },
  {
    title: "Time inside Samba",
    panel: timePanel,
    figures: INSIDE_SAMBA,
    together: true,
  },
  {
    title: "Disks of the server",
    panel: bytesPanel,
    figures: [
      { name: "Disk read", metric: "disk_read", of: "mean" },
      { name: "Disk written", metric: "disk_written", of: "mean" },
    ],
  },
  {
    title: "Busiest disk",
    panel: percentPanel,
    figures: [{ name: "Disk busy", metric: "disk_busiest", of: "mean" }],
  },
];

/** Measures of studies that are figures of the server, and how those are called here. */
export const MEASURES: Readonly<Record<string, string>> = {
  server_cpu: "Server CPU",
  samba_cpu: "Samba CPU",
  disk_busy: "Disk busy",
};

const HEIGHT = 100;

/** Of one server: the figures of a panel are its lines. */
export function serverPanels(series: (figure: ServerFigure, index: number) => Series): Panel[] {
  let index = 0;
  return PARTS.map(({ title, panel, figures }) =>
    panel(title, HEIGHT, figures.map((figure) => series(figure, index++)).filter(isSomething)),
  ).filter((panel) => panel.series.length > 0);
}

/** Of several servers, whose lines have the same names in every panel: a panel for each figure that any of them has. */
export function serversPanels(series: (figure: ServerFigure) => Series[]): Panel[] {
  return PARTS.filter(({ together }) => !together)
    .flatMap(({ panel, figures }) => figures.map((figure) => panel(figure.name, HEIGHT, series(figure))))
    .filter((panel) => panel.series.some(isSomething));
}

/** A disk that nothing was read from needs no line. */
function isSomething({ points }: Series): boolean {
  return points.some(([, value]) => value > 0);
}
