// Panels of server metrics, below response time and throughput on the same axis.
import { bytesPanel, type Panel, percentPanel, type Series, timePanel } from "./lines";
import { FIGURES, groupStroke, type Stroke, seriesStroke, serverStroke } from "./palette";

/** Statistic of a server metric. */
export interface ServerFigure {
  name: string;
  metric: string;
  of: "mean" | "max";
  stroke: Stroke;
}

interface Part {
  title: string;
  panel(title: string, height: number, series: Series[]): Panel;
  figures: readonly ServerFigure[];
  /** Drawn in one panel only, and so for a single server. */
  together?: true;
}

/** Mean times inside smbd, from Samba's profiling. */
export const INSIDE_SAMBA: readonly ServerFigure[] = [
  { name: "Create in Samba", metric: "samba_create_time", of: "mean", stroke: groupStroke("Open/Close") },
  {
    name: "Close in Samba",
    metric: "samba_close_time",
    of: "mean",
    stroke: { ...groupStroke("Open/Close"), dashes: "2 3" },
  },
  { name: "Read in Samba", metric: "samba_read_time", of: "mean", stroke: groupStroke("Read") },
  { name: "Write in Samba", metric: "samba_write_time", of: "mean", stroke: groupStroke("Write") },
  {
    name: "Flush in Samba",
    metric: "samba_flush_time",
    of: "mean",
    stroke: { ...groupStroke("Write"), dashes: "2 3" },
  },
];

const PARTS: readonly Part[] = [
  {
    title: "Server CPU",
    panel: percentPanel,
    figures: [
      { name: "Server CPU", metric: "cpu", of: "mean", stroke: serverStroke("") },
      { name: "Server CPU, maximum", metric: "cpu", of: "max", stroke: serverStroke("7 3") },
    ],
  },
  {
    title: "Samba CPU (100% is one processor)",
    panel: percentPanel,
    figures: [{ name: "Samba CPU", metric: "samba_cpu", of: "mean", stroke: serverStroke("2 3") }],
  },
  {
    title: "Time inside Samba",
    panel: timePanel,
    figures: INSIDE_SAMBA,
    together: true,
  },
  {
    title: "Server disk throughput",
    panel: bytesPanel,
    figures: [
      { name: "Disk read", metric: "disk_read", of: "mean", stroke: seriesStroke(FIGURES.read) },
      { name: "Disk written", metric: "disk_written", of: "mean", stroke: seriesStroke(FIGURES.written) },
    ],
  },
  {
    title: "Busiest disk",
    panel: percentPanel,
    figures: [{ name: "Disk busy", metric: "disk_busiest", of: "mean", stroke: serverStroke("9 3 2 3") }],
  },
];

/** Names used here for measures of studies that are server metrics. */
export const MEASURES: Readonly<Record<string, string>> = {
  server_cpu: "Server CPU",
  samba_cpu: "Samba CPU",
  disk_busy: "Disk busy",
};

const HEIGHT = 100;

/** Creates the panels of one server, with a line per figure. */
export function serverPanels(series: (figure: ServerFigure) => Series): Panel[] {
  return PARTS.map(({ title, panel, figures }) => panel(title, HEIGHT, figures.map(series).filter(isSomething))).filter(
    (panel) => panel.series.length > 0,
  );
}

/** Creates the panels of several servers: one per figure, with a line per server. */
export function serversPanels(series: (figure: ServerFigure) => Series[]): Panel[] {
  return PARTS.filter(({ together }) => !together)
    .flatMap(({ panel, figures }) => figures.map((figure) => panel(figure.name, HEIGHT, series(figure))))
    .filter((panel) => panel.series.some(isSomething));
}

/** Returns false for a line that is always zero. */
function isSomething({ points }: Series): boolean {
  return points.some(([, value]) => value > 0);
}
