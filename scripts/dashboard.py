#!/usr/bin/env python3
"""Draws the Grafana dashboard of the packages, from the same queries: docs/dashboard.png.

A private server is loaded for six minutes, and its storage is slow in the second half. `smbscope watch` serves the
metrics and a real Prometheus scrapes them. Each panel's queries are then sent to Prometheus as Grafana would.
Needs root (to capture), Samba, FUSE, Prometheus (Debian: samba fuse3 prometheus) and Matplotlib (pip install
matplotlib).
"""

import argparse
import json
import re
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DASHBOARD = Path("packaging/grafana/smbscope.json")
SCRAPE_S = 5
"""Grafana's $__rate_interval: four scrapes."""
RATE = f"{4 * SCRAPE_S}s"
PHASE_S = 180
COLUMNS = 24
LABELS = 0.012
"""Height of the labels below a panel, as a share of the picture."""
COLOURS = ["#2f6fb2", "#c8553d", "#4a9a5e", "#8a63b8", "#b98a1f", "#4f9ea8", "#a8547c", "#6d7480"]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running(command: list[str], log: Path, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **options)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def load(smbscope: str, folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Loads two servers, one after the other. Returns the panels with their series, and the alerts that fire."""
    metrics, web = free_port(), free_port()
    config = folder / "prometheus.yml"
    rules = Path("packaging/prometheus/smbscope.rules.yml").resolve()
    config.write_text(
        f"global: {{scrape_interval: {SCRAPE_S}s, evaluation_interval: {SCRAPE_S}s}}\n"
        f"rule_files: [{rules}]\n"
        f"scrape_configs: [{{job_name: smbscope, static_configs: [{{targets: ['127.0.0.1:{metrics}']}}]}}]\n"
    )
    address = f"http://127.0.0.1:{web}"
    prometheus = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    watch = [smbscope, "watch", "-i", "any", "--metrics", str(metrics), "-o", str(folder / "watch.json")]
    bench = (
        f'"{smbscope}" bench -q --workload netbench-like --users 8 --duration {PHASE_S}s --think 60ms -o {folder}/$0'
    )
    web_option = f"--web.listen-address=127.0.0.1:{web}"
    with (
        running(watch, folder / "watch.log"),
        running([*prometheus, web_option], folder / "prometheus.log"),
    ):
        begin = time.time()
        for name, slow in [("fast", []), ("slow", ["--storage-latency", "40ms"])]:
            lab = [smbscope, "lab", "run", "--accounts", "8", "--delay", "100us", *slow]
            run = [*lab, "--", "sh", "-c", f'{bench} "$SMBSCOPE_LAB_URL"', name]
            done = subprocess.run(run, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise SystemExit(f"the {name} server: {done.stderr.strip()}")
        end = time.time()
        found = ask(address, "alerts", {})
        panels = [answered(address, panel, begin, end) for panel in json.loads(DASHBOARD.read_text())["panels"]]
    return panels, sorted({alert["labels"]["alertname"] for alert in found["alerts"] if alert["state"] == "firing"})


def ask(address: str, what: str, query: dict[str, str]) -> Any:
    with urllib.request.urlopen(f"{address}/api/v1/{what}?{urllib.parse.urlencode(query)}", timeout=30) as response:
        return json.load(response)["data"]


def answered(address: str, panel: dict[str, Any], begin: float, end: float) -> dict[str, Any]:
    """Returns the panel with the series of its queries: name and points."""
    series = []
    for target in panel["targets"]:
        query = re.sub(r"\$(instance|server|share)\b", ".*", target["expr"]).replace("$__rate_interval", RATE)
        found = ask(
            address, "query_range", {"query": query, "start": f"{begin}", "end": f"{end}", "step": f"{SCRAPE_S}s"}
        )
        for one in found["result"]:
            name = target.get("legendFormat") or ""
            for label, value in one["metric"].items():
                name = name.replace(f"{{{{{label}}}}}", value)
            name = re.sub(r"\{\{\w+\}\}", "", name)
            points = [(float(at) - begin, float(value)) for at, value in one["values"]]
            series.append({"name": name.strip(), "points": [point for point in points if point[1] == point[1]]})
    return {**{key: panel[key] for key in ("type", "title", "gridPos")}, "unit": unit(panel), "series": series}


def unit(panel: dict[str, Any]) -> str:
    return str(panel.get("fieldConfig", {}).get("defaults", {}).get("unit", "short"))


def quantity(value: float, unit: str) -> str:
    """Formats a value as Grafana does."""
    if unit == "s":
        for scale, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
            if abs(value) >= scale:
                return f"{value / scale:.3g} {name}"
        return f"{value * 1e6:.3g} µs" if value else "0 s"
    suffix = {"ops": "/s", "Bps": "B/s", "pps": "/s"}.get(unit, "")
    for scale, name in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {name}{suffix}"
    return f"{value:.3g} {suffix}".strip()


def draw(panels: list[dict[str, Any]], output: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    pyplot.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    figure = pyplot.figure(figsize=(14, rows * 0.34), facecolor="white")
    grid = figure.add_gridspec(rows, COLUMNS, left=0.045, right=0.99, top=0.985, bottom=0.02, wspace=2.2, hspace=3.2)
    for panel in panels:
        place = panel["gridPos"]
        axes = figure.add_subplot(grid[place["y"] : place["y"] + place["h"], place["x"] : place["x"] + place["w"]])
        left, bottom, width, height = axes.get_position().bounds
        axes.set_position((left, bottom + LABELS, width, height - 1.6 * LABELS))
        axes.set_title(panel["title"], loc="left", fontweight="bold", fontsize=9)
        if panel["type"] == "stat":
            stat(axes, panel)
        elif panel["type"] == "table":
            text = sorted({one["name"] for one in panel["series"] if one["points"]})
            axes.axis("off")
            axes.text(0, 0.95, "\n".join(text) or "none", va="top", family="monospace")
        elif panel["type"] == "heatmap":
            heatmap(axes, panel)
        else:
            curves(axes, panel)
    figure.savefig(output, dpi=90)


def stat(axes: Any, panel: dict[str, Any]) -> None:
    points = panel["series"][0]["points"] if panel["series"] else []
    axes.axis("off")
    if points:
        axes.text(0, 0.4, quantity(points[-1][1], panel["unit"]), fontsize=24, color=COLOURS[0], va="center")


def curves(axes: Any, panel: dict[str, Any]) -> None:
    for number, one in enumerate(panel["series"]):
        times, values = zip(*one["points"], strict=True) if one["points"] else ((), ())
        axes.plot(
            [t / 60 for t in times], values, color=COLOURS[number % len(COLOURS)], linewidth=1.2, label=one["name"]
        )
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: quantity(value, panel["unit"]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} min")
    axes.grid(axis="y", linewidth=0.4, color="#d8dbe0")
    if any(one["name"] for one in panel["series"]):
        axes.legend(fontsize=6.5, frameon=False, loc="upper left", ncols=2)
    if not any(one["points"] for one in panel["series"]):
        axes.text(0.5, 0.5, "No data", transform=axes.transAxes, ha="center", color="#6d7480")


def heatmap(axes: Any, panel: dict[str, Any]) -> None:
    """Draws buckets, which are cumulative, as Grafana does: each less the one below."""
    by_bound = {float(one["name"]): dict(one["points"]) for one in panel["series"] if one["name"] != "+Inf"}
    bounds = sorted(by_bound)
    times = sorted({t for points in by_bound.values() for t in points})
    cells = []
    below = dict.fromkeys(times, 0.0)
    for bound in bounds:
        points = by_bound[bound]
        cells.append([max(0.0, points.get(t, 0.0) - below[t]) for t in times])
        below = {t: points.get(t, below[t]) for t in times}
    if not cells or not times:
        return
    axes.pcolormesh([t / 60 for t in times], range(len(bounds)), cells, cmap="Blues", shading="nearest")
    step = max(1, len(bounds) // 6)
    axes.set_yticks(range(0, len(bounds), step), [quantity(bound, "s") for bound in bounds[::step]])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} min")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smbscope", default="target/release/smbscope")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/dashboard.png"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        panels, alerts = load(str(Path(arguments.smbscope).resolve()), Path(name))
    draw(panels, arguments.output)
    print(f"{arguments.output}; firing at the end: {', '.join(alerts) or 'none'}")


if __name__ == "__main__":
    main()
