#!/usr/bin/env python3
"""Runs the program for Windows under Wine and compares it with the one for Linux.

    scripts/check_windows.py --exe smbscope.exe --smbscope target/release/smbscope --scratch FOLDER

Documents of the bundled captures must be the same byte for byte. `bench` measures a Samba on the loopback interface
with the program's own client, and a folder with Windows' calls.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
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
ANALYSES: list[list[str]] = [
    ["--format", "json"],
    ["--full", "--color", "never"],
    ["--classic"],
    ["--by", "share", "--filter", "status != ok", "--format", "json"],
    ["--format", "csv"],
    ["--format", "html"],
]


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
        self.environment = {**os.environ, "WINEPREFIX": str(scratch.resolve() / "wine"), "WINEDEBUG": "-all"}
        # The first start creates the configuration.
        self.run("--version")

    def run(self, *arguments: str, by: tuple[str, ...] = (), status: int = 0) -> subprocess.CompletedProcess[bytes]:
        command = [*by, str(WINE), str(self.program), *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=300
        )
        if done.returncode != status:
            raise SystemExit(f"{' '.join(arguments)}: status {done.returncode}: {done.stderr.decode(errors='replace')}")
        return done


def captures() -> list[Path]:
    found = sorted(path.relative_to(ROOT) for path in (ROOT / "tests/data").rglob("*.pcap*"))
    return [path for path in found if ".tsv" not in path.suffixes]


def check_analyses(windows: Windows, linux: Path) -> int:
    count = 0
    for index, capture in enumerate(captures()):
        # All outputs of the demo captures; of the others one each, to save time.
        chosen = ANALYSES if capture.name.startswith("demo-") else [ANALYSES[0], ANALYSES[1 + index % 5]]
        for options in chosen:
            line = ["analyze", *options, str(capture)]
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exe", type=Path, required=True)
    parser.add_argument("--smbscope", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    given = parser.parse_args()
    windows, linux = Windows(given.exe, given.scratch), given.smbscope.resolve()
    check_refusals(windows)
    print(f"{check_analyses(windows, linux)} outputs of analyze: the same as on Linux")
    folder = given.scratch.resolve() / "measured"
    folder.mkdir(exist_ok=True)
    local = "file:Z:" + str(folder).replace("/", "\\")
    print(f"bench on a folder: {check_bench(windows, [local])} operations")
    # `lab run` passes the password in the environment.
    shell = ("sh", "-c", 'exec "$@" "$SMBSCOPE_LAB_URL"', "sh")
    by = (str(linux), "lab", "run", "--", *shell)
    print(f"bench on Samba: {check_bench(windows, [], by)} operations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
