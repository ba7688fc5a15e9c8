#!/usr/bin/env python3
"""Runs the program for Windows under Wine and compares it with the one for Linux.

    scripts/check_windows.py --exe smbscope.exe --smbscope target/release/smbscope --scratch FOLDER

Documents of the bundled captures must be the same byte for byte. `bench` measures a Samba on the loopback interface
with the program's own client, and a folder with Windows' calls. A pseudo-terminal is the console of a double click, a
dropped capture and Ctrl-C. Wine maps `\\\\server\\share` to a folder: the paths are tested, Windows' own client is not.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import select
import shutil
import subprocess
import sys
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WINE = Path("/usr/lib/wine/wine64")
COMPILER = "x86_64-w64-mingw32-gcc"
# Wine 8 lacks this library, which Rust's standard library takes random numbers from.
BCRYPTPRIMITIVES = """
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length)
{
    return SystemFunction036(data, (ULONG)length);
}
"""
# The command line's examples and outputs of every kind.
OUTPUTS: list[list[str]] = [
    ["analyze", "--format", "json"],
    ["analyze", "--full", "--color", "never"],
    ["analyze", "--classic"],
    ["analyze", "--by", "share", "--filter", "status != ok", "--format", "json"],
    ["analyze", "--format", "csv"],
    ["analyze", "--format", "html"],
]
# The same about the bundled captures that are examples.
OTHERS = [["predict", "--if", "rtt=20ms", "--if", "server=0.5x", "--format", "json"], ["watch", "--format", "json"]]
# The same exit status as on Linux.
STATUSES = [
    (["--version"], 0),
    (["analyze", "missing.pcap"], 1),
    (["analyze", "README.md"], 1),
    (["analyze", "--no-such-option"], 2),
    (["analyze", "-o", "report.pdf", "tests/data/demo-slow-server.pcap.zst"], 2),
    (["analyze", "--fail-if", "answer.culprit == server", "tests/data/demo-slow-server.pcap.zst"], 3),
]
CAPTURE = ROOT / "tests/data/demo-slow-server.pcap.zst"
# The program that Wine opens pages with.
BROWSER = """#!/bin/sh
printf '%s\\n' "$1" >>"$OPENED_PAGES"
"""
# Wine sometimes ends before it starts a program, with status 1 and no message. Our errors have one.
ATTEMPTS = 3
CTRL_C, ENTER = b"\x03", b"\r"
WAITS = b"Press Enter to close this window."


class Windows:
    """A program under Wine, with a configuration of its own."""

    def __init__(self, program: Path, scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        folder = scratch / "program"
        folder.mkdir(exist_ok=True)
        self.program = folder / "smbscope.exe"
        self.program.write_bytes(program.read_bytes())
        source = folder / "bcryptprimitives.c"
        source.write_text(BCRYPTPRIMITIVES)
        library = folder / "bcryptprimitives.dll"
        subprocess.run([COMPILER, "-shared", "-O1", "-o", library, source, "-ladvapi32"], check=True)
        self.opened = scratch.resolve() / "opened"
        self.opened.unlink(missing_ok=True)
        browser = scratch / "bin" / "xdg-open"
        browser.parent.mkdir(exist_ok=True)
        browser.write_text(BROWSER)
        browser.chmod(0o755)
        self.environment = {
            **os.environ,
            "WINEPREFIX": str(scratch.resolve() / "wine"),
            "WINEDEBUG": "-all",
            "OPENED_PAGES": str(self.opened),
            "PATH": f"{browser.parent.resolve()}:{os.environ['PATH']}",
        }
        # The first start creates the configuration.
        self.run("--version")

    def run(self, *arguments: str, by: tuple[str, ...] = (), status: int = 0) -> subprocess.CompletedProcess[bytes]:
        command = [*by, str(WINE), str(self.program), *arguments]
        for _attempt in range(ATTEMPTS):
            done = subprocess.run(
                command, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=300
            )
            if done.returncode == status or done.stdout or done.stderr:
                break
        if done.returncode != status:
            raise SystemExit(f"{' '.join(arguments)}: status {done.returncode}: {done.stderr.decode(errors='replace')}")
        return done

    def in_window(self, *arguments: str, awaited: bytes = b"", key: bytes = b"", after: float = 0) -> tuple[int, bytes]:
        """Runs the program in a console of its own. Sends a key `after` so many seconds from the awaited text. Enter is
        repeated, because Wine can miss a key while it prepares to read."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [str(WINE), str(self.program), *arguments],
            cwd=ROOT,
            env=self.environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # The end of a controlling terminal's first process would end the page's as well.
            preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if key == CTRL_C else None,
        )
        os.close(theirs)
        text, due, pressed, end = b"", None, False, time.monotonic() + 120
        while process.poll() is None and time.monotonic() < end:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    text += os.read(ours, 1 << 16)
                except OSError:
                    break
            if key and awaited in text and due is None:
                due = time.monotonic() + after
            if due is not None and time.monotonic() >= due:
                os.write(ours, key)
                pressed = True
                due = time.monotonic() + 2 if key == ENTER else float("inf")
        try:
            status = process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            raise SystemExit(f"{' '.join(arguments)}: does not end; it printed {text!r}") from None
        finally:
            os.close(ours)
        if key and not pressed:
            raise SystemExit(f"{' '.join(arguments)}: ended with status {status} before the key; it printed {text!r}")
        return status, text


def on_drive(path: Path) -> str:
    """Returns the name that a file of this machine has under Wine."""
    return "Z:" + str(path.resolve()).replace("/", "\\")


def captures() -> list[Path]:
    found = sorted(path.relative_to(ROOT) for path in (ROOT / "tests/data").rglob("*.pcap*"))
    return [path for path in found if ".tsv" not in path.suffixes]


def check_outputs(windows: Windows, linux: Path) -> int:
    count = 0
    for index, capture in enumerate(captures()):
        # All outputs of the demo captures; of the others one each, to save time.
        chosen = [*OUTPUTS, *OTHERS] if capture.name.startswith("demo-") else [OUTPUTS[0], OUTPUTS[1 + index % 5]]
        for options in chosen:
            line = [*options, str(capture)]
            expected = subprocess.run([linux, *line], cwd=ROOT, capture_output=True)
            found = windows.run(*line, status=expected.returncode)
            if found.stdout != expected.stdout:
                raise SystemExit(f"{' '.join(line)}: another output than on Linux")
            count += 1
    return count


def check_bench(windows: Windows, target: list[str], by: tuple[str, ...] = ()) -> int:
    said = windows.run(
        "bench", "--users", "1,2", "--duration", "2s", "--warmup", "1s", "--format", "json", *target, by=by
    )
    runs = json.loads(said.stdout)["runs"]
    for run in runs:
        # Names that do not exist yet are errors that a workload expects.
        if run["operations"] == 0 or run["failures"]:
            raise SystemExit(f"bench: {run['operations']} operations, failures: {run['failures']}")
    return sum(run["operations"] for run in runs)


def check_refusals(windows: Windows) -> None:
    for command in (["lab", "status"], ["launch", "--", "true"], ["bench"]):
        said = windows.run(*command, status=1).stderr.decode()
        if "Linux" not in said or "WSL" not in said or len(said.strip().splitlines()) != 1:
            raise SystemExit(f"{' '.join(command)}: {said}")


def check_statuses(windows: Windows, linux: Path) -> int:
    for line, status in STATUSES:
        found = subprocess.run([linux, *line], cwd=ROOT, capture_output=True).returncode
        if found != status:
            raise SystemExit(f"{' '.join(line)}: status {found} on Linux instead of {status}")
        windows.run(*line, status=status)
    return len(STATUSES)


def check_explorer(windows: Windows, scratch: Path) -> None:
    """Double-clicks the program, and drops files on it."""
    status, text = windows.in_window(awaited=WAITS, key=ENTER)
    if status != 0 or b"smbscope help" not in text or b"Drop a capture" not in text:
        raise SystemExit(f"double click: status {status}, {text!r}")
    folder = scratch / "dropped here"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    capture, bad = folder / CAPTURE.name, folder / "notes.txt"
    shutil.copy(CAPTURE, capture)
    bad.write_text("not a capture")
    # Nobody has to press a key if the page opens.
    status, text = windows.in_window(on_drive(capture))
    page = capture.with_name(capture.name + ".html")
    if status != 0 or not page.exists() or CAPTURE.name.encode() not in page.read_bytes():
        raise SystemExit(f"dropped capture: status {status}, {text!r}, files: {sorted(folder.iterdir())}")
    end = time.monotonic() + 20
    while not windows.opened.exists() and time.monotonic() < end:
        time.sleep(0.2)
    opened = windows.opened.read_text() if windows.opened.exists() else ""
    if opened != page.resolve().as_uri() + "\n":
        raise SystemExit(f"dropped capture: opened {opened!r} instead of {page.resolve().as_uri()}")
    status, text = windows.in_window(on_drive(bad), awaited=WAITS, key=ENTER)
    if status != 1 or b"not a capture" not in text or bad.with_name("notes.txt.html").exists():
        raise SystemExit(f"dropped text file: status {status}, {text!r}, files: {sorted(folder.iterdir())}")


def check_paths(windows: Windows, scratch: Path) -> int:
    """Reads and writes under names that only Windows has. Returns the number of names."""
    deep = scratch.resolve() / "long"
    for _ in range(3):
        deep = deep / ("long-" * 25)
    deep.mkdir(parents=True, exist_ok=True)
    shutil.copy(CAPTURE, deep)
    servers = scratch / "wine/dosdevices/unc/server"
    servers.mkdir(parents=True, exist_ok=True)
    share = servers / "share"
    share.unlink(missing_ok=True)
    share.symlink_to(deep)
    folders = ["\\\\server\\share", "\\\\?\\UNC\\server\\share", on_drive(deep), "\\\\?\\" + on_drive(deep)]
    written = deep / "exchanges.csv"
    usual = str(CAPTURE.relative_to(ROOT))
    expected = windows.run("analyze", "--format", "csv", usual).stdout
    for folder in folders:
        written.unlink(missing_ok=True)
        capture = f"{folder}\\{CAPTURE.name}"
        windows.run("analyze", "-o", f"{folder}\\exchanges.csv", capture)
        if written.read_bytes() != expected.replace(usual.encode(), capture.encode()):
            raise SystemExit(f"analyze in {folder}: another table")
    # One file under two names is still an input.
    windows.run("slim", "-o", f"{folders[0]}\\{CAPTURE.name}", f"{folders[2]}\\{CAPTURE.name}", status=1)
    if (deep / CAPTURE.name).read_bytes() != CAPTURE.read_bytes():
        raise SystemExit("slim overwrote its input")
    check_bench(windows, ["file:" + folders[0]])
    return len(folders)


def check_devices(windows: Windows, scratch: Path) -> None:
    """Reserved names stand for devices, whatever their ending and folder."""
    folder, capture = scratch / "devices", str(CAPTURE.relative_to(ROOT))
    folder.mkdir(exist_ok=True)
    for name in ["NUL", "nul.json", on_drive(folder) + "\\NUL", on_drive(folder) + "\\nul.txt"]:
        windows.run("analyze", "-o", name, capture)
    for name in ["NUL", "CON", "COM7"]:
        said = windows.run("analyze", name, status=1).stderr.decode()
        if len(said.splitlines()) != 1 or name not in said:
            raise SystemExit(f"analyze {name}: {said}")
    status, text = windows.in_window("analyze", "--format", "csv", "-o", "CON", capture)
    if status != 0 or b"command" not in text:
        raise SystemExit(f"analyze -o CON: status {status}, {text!r}")
    if files := [*folder.iterdir(), *ROOT.glob("[Nn][Uu][Ll]*"), *ROOT.glob("CON")]:
        raise SystemExit(f"reserved names became files: {files}")


def check_ctrl_c(windows: Windows, scratch: Path, target: str) -> None:
    """Ctrl-C ends a run, which keeps its results, with the dashboard and without it."""
    for options, awaited in [(["--quiet"], b""), ([], b"Commands/s")]:
        run = scratch / "interrupted"
        shutil.rmtree(run, ignore_errors=True)
        bench = ["bench", "--users", "1", "--duration", "300s", "--warmup", "1s", "-o", on_drive(run), *options, target]
        status, text = windows.in_window(*bench, awaited=awaited, key=CTRL_C, after=8)
        if status != 130 or json.loads((run / "run.json").read_text())["runs"][0]["operations"] == 0:
            raise SystemExit(f"Ctrl-C: status {status}, {text[-2000:]!r}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exe", type=Path, required=True)
    parser.add_argument("--smbscope", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    given = parser.parse_args()
    windows, linux = Windows(given.exe, given.scratch), given.smbscope.resolve()
    check_refusals(windows)
    print(f"{check_statuses(windows, linux)} exit statuses: the same as on Linux")
    check_explorer(windows, given.scratch)
    print("double click and dropped files: explained, written and opened")
    check_devices(windows, given.scratch)
    print(f"reserved names, and {check_paths(windows, given.scratch)} kinds of paths: read and written")
    print(f"{check_outputs(windows, linux)} outputs: the same as on Linux")
    folder = given.scratch.resolve() / "measured"
    folder.mkdir(exist_ok=True)
    local = "file:" + on_drive(folder)
    print(f"bench on a folder: {check_bench(windows, [local])} operations")
    check_ctrl_c(windows, given.scratch, local)
    print("Ctrl-C: ends a run and keeps its results")
    # `lab run` passes the password in the environment.
    shell = ("sh", "-c", 'exec "$@" "$SMBSCOPE_LAB_URL"', "sh")
    by = (str(linux), "lab", "run", "--", *shell)
    print(f"bench on Samba: {check_bench(windows, [], by)} operations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
