#!/usr/bin/env python3
"""Runs the examples of README.md and docs/*.md, so that they keep working.

An example is a line that begins with `smbscope ` in a block fenced as ```sh (and no more words after `sh`); a
backslash at the end continues it. It runs in a scratch directory in which tests/data holds the bundled captures,
with smbscope on the PATH, and must exit with 0. Blocks with another word, such as ```console, are not run.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_SECONDS = 300


def examples(page: Path) -> Iterator[tuple[int, str]]:
    """Line number and command of each example."""
    inside = runs = False
    pending = ""
    start = 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
            runs = inside and line.strip() == "```sh"
            pending = ""
            continue
        if not (inside and runs):
            continue
        text = line.strip()
        if not pending:
            start = number
        pending += text.removesuffix("\\").strip() + " "
        if text.endswith("\\"):
            continue
        if pending.startswith("smbscope "):
            yield start, pending.strip()
        pending = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smbscope", type=Path, required=True)
    parser.add_argument("-v", "--verbose", action="store_true", help="show what the examples print")
    options = parser.parse_args()

    smbscope: Path = options.smbscope.resolve()
    if not smbscope.is_file():
        print(f"check_readme: {options.smbscope} does not exist; build it first", file=sys.stderr)
        return 1
    environment = dict(os.environ, PATH=f"{smbscope.parent}{os.pathsep}{os.environ['PATH']}", NO_COLOR="1")
    pages = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if page.exists()]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="smbscope-examples-") as directory:
        data = Path(directory) / "tests" / "data"
        data.mkdir(parents=True)
        for capture in sorted((ROOT / "tests" / "data").glob("demo-*")):
            shutil.copy(capture, data)
        for page in pages:
            for number, command in examples(page):
                where = f"{page.relative_to(ROOT)}:{number}"
                try:
                    run = subprocess.run(
                        ["bash", "-c", f"set -o pipefail; {command}"],
                        cwd=directory,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                        errors="replace",
                        timeout=TIMEOUT_SECONDS,
                    )
                    status, output = f"exit {run.returncode}", run.stdout
                    good = run.returncode == 0
                except subprocess.TimeoutExpired:
                    status, output, good = f"not done after {TIMEOUT_SECONDS} s", "", False
                passed += good
                failed += not good
                print(f"check_readme: {'ok' if good else 'FAILED'} {where}: {command}")
                if options.verbose or not good:
                    print(f"{output.rstrip()}\n({status})")
    print(f"check_readme: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
