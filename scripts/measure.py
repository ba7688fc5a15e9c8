"""Runs a program and measures wall time, CPU time and peak memory.

There are two memory figures. The resident set (`VmHWM`) includes mapped pages of the capture, which the kernel can
reclaim at any time; anonymous memory (`RssAnon`) is what the program really needs. Both are sampled from
/proc/PID/status in a separate run, so that timed runs are not disturbed. The kernel's own peak for a child
(`ru_maxrss`) is unusable, because it starts at the resident set of the forking process.
"""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.001
# Longer runs are sampled less often, because each sample takes CPU time.
SAMPLE_SHARE = 0.005


@dataclass(slots=True)
class Run:
    """One run, or the median of several."""

    wall: float
    cpu: float
    rss: int | None = None
    """Peak resident set in bytes. None without sampling."""
    anonymous: int | None = None
    """Peak anonymous memory in bytes."""
    rounds: tuple[float, ...] = ()
    """CPU time of each run that contributes to the median."""


def measure(command: Sequence[str], *, sample: bool = False) -> Run:
    """Runs a command once and discards its output. Raises SystemExit if it fails."""
    rss = anonymous = 0
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        if sample:
            status = Path(f"/proc/{child.pid}/status")
            name = Path(f"/proc/{child.pid}/exe")
            python = name_of(Path("/proc/self/exe"))
            while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                # Between fork and exec, the process is still this script.
                if name_of(name) != python:
                    peak, now = memory(status)
                    rss, anonymous = max(rss, peak), max(anonymous, now)
                time.sleep(max(SAMPLE_SECONDS, (time.perf_counter() - begin) * SAMPLE_SHARE))
        _, code, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(code)
        if child.returncode:
            errors.seek(0)
            message = errors.read().decode(errors="replace").strip()
            raise SystemExit(f"bench: {' '.join(command)} failed: {message}")
    cpu = usage.ru_utime + usage.ru_stime
    return Run(wall, cpu, rss, anonymous) if sample else Run(wall, cpu)


def name_of(link: Path) -> str | None:
    """Returns the path of a process's program, or None after its end."""
    try:
        return str(link.readlink())
    except OSError:
        return None


def memory(status: Path) -> tuple[int, int]:
    """Returns peak resident and current anonymous memory of a process in bytes, or zeros after its end."""
    found = {"VmHWM": 0, "RssAnon": 0}
    try:
        for line in status.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key in found:
                found[key] = int(value.split()[0]) * 1024
    except (OSError, IndexError):
        pass
    return found["VmHWM"], found["RssAnon"]


def median(timed: Sequence[Run], sampled: Run) -> Run:
    """Combines the median times of some runs with the memory of another."""
    wall = statistics.median(run.wall for run in timed)
    rounds = tuple(run.cpu for run in timed)
    return Run(wall, statistics.median(rounds), sampled.rss, sampled.anonymous, rounds)


def by_thread(command: Sequence[str]) -> list[float]:
    """Runs a command once and returns the CPU time of each thread in seconds, the first thread's first."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tasks = Path(f"/proc/{child.pid}/task")
    seen: dict[int, float] = {}
    while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        for task in sorted(tasks.glob("*")):
            try:
                seen[int(task.name)] = int((task / "schedstat").read_text(encoding="ascii").split()[0]) / 1e9
            except (OSError, IndexError):
                continue
        time.sleep(SAMPLE_SECONDS)
    _, code, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(code)
    if child.returncode:
        raise SystemExit(f"bench: {' '.join(command)} failed")
    others = [seconds for thread, seconds in sorted(seen.items()) if thread != child.pid]
    # The first thread still works after the others have ended, which sampling may miss.
    return [usage.ru_utime + usage.ru_stime - sum(others), *others]


def interleaved(commands: dict[str, Sequence[str]], *, rounds: int, once: frozenset[str]) -> dict[str, Run]:
    """Measures the commands in turns, round by round, so that disturbances affect all of them.

    Slow commands in `once` run a single time, with sampling, after the first half of the rounds.
    """
    results: dict[str, Run] = {}
    fast = {name: command for name, command in commands.items() if name not in once}
    timed: dict[str, list[Run]] = {name: [] for name in fast}
    for number in range(rounds):
        if number == rounds // 2:
            results |= {name: measure(commands[name], sample=True) for name in commands if name in once}
        for name, command in fast.items():
            timed[name].append(measure(command))
    for name, command in fast.items():
        results[name] = median(timed[name], measure(command, sample=True))
    return {name: results[name] for name in commands}
