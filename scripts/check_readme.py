#!/usr/bin/env python3
"""Runs the examples of README.md and docs/*.md, so that they keep working.

```sh                 lines that begin with `smbscope ` are run and must exit with 0; in tutorials, all lines
```console checked    each line after `$ ` is run and must print the lines below it. `…` matches anything within a line,
                      or any number of lines if alone on a line. The number of spaces between words is ignored

A backslash at the end of a line continues it. Other blocks, such as ```console, are not run. The examples of a page
run in order in a separate scratch directory with the layout of the repository after `make demo`: tests/data contains
the bundled captures, target/release/smbscope is the binary, which is also on the PATH. The folders of the package in
/usr/share/smbscope stand for those of the repository. A page's `cd` and `export` lines apply to all later lines.
With `--update`, shown output that differs is rewritten; the lines next to a lone `…` must still match.
With `--root DIR`, examples run with that directory as their root (chroot), where smbscope's package is installed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Folders of the package, and of the repository.
PACKAGED = {"/usr/share/smbscope/captures": "tests/data", "/usr/share/smbscope/studies": "studies"}
TIMEOUT_SECONDS = 300
# PATH within a root directory that contains nothing of this machine.
BARE = "/usr/sbin:/usr/bin:/sbin:/bin"
# Commands that start a private server.
WANT_SAMBA = ("smbscope bench", "smbscope lab", "smbscope study")


@dataclass
class Example:
    line: int
    command: str
    # Expected output, if the page shows it.
    shown: list[str] | None = None
    # Line number of the first line of expected output.
    shown_from: int = 0


@dataclass
class Outcome:
    good: bool
    output: str
    complaint: str


@dataclass
class Workplace:
    """Directory in which the examples of one page run."""

    directory: Path
    environment: dict[str, str]
    # Root directory of the examples (chroot), if smbscope is installed there from its package.
    root: Path | None = None
    # Previous `cd` and `export` lines.
    state: list[str] = field(default_factory=list)

    def run(self, example: Example) -> Outcome:
        place, prefix = self.directory, []
        if self.root is not None:
            place, prefix = Path("/") / self.directory.relative_to(self.root), ["chroot", str(self.root)]
        command = " && ".join([f"cd {place}", *self.state, example.command])
        folders = {} if self.root else {packaged: here for packaged, here in PACKAGED.items() if packaged in command}
        for packaged, here in folders.items():
            command = command.replace(packaged, here)
        try:
            run = subprocess.run(
                [*prefix, "bash", "-c", f"set -o pipefail; {command}"],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return Outcome(False, "", f"not done after {TIMEOUT_SECONDS} s")
        if re.match(r"(cd|export)\s", example.command):
            self.state.append(example.command)
        output = run.stdout
        for packaged, here in folders.items():
            output = output.replace(f"{here}/", f"{packaged}/")
        if run.returncode:
            return Outcome(False, output, f"exit {run.returncode}")
        if example.shown is not None and not prints(output, example.shown):
            return Outcome(False, output, "the page shows:\n" + "\n".join(example.shown))
        return Outcome(True, output, "")


def prints(output: str, shown: list[str]) -> bool:
    """Returns True if the output matches the shown lines, in which `…` is a wildcard."""
    pattern = ""
    for line in shown:
        words = line.split()
        if words == ["…"]:
            pattern += r"(?:[^\n]*\n)*?"
            continue
        pattern += r"[^\S\n]*" + r"[^\S\n]+".join(re.escape(word).replace("…", r"[^\n]*?") for word in words)
        pattern += r"[^\S\n]*\n"
    return re.fullmatch(pattern, output if output.endswith("\n") or not output else output + "\n") is not None


def updated(output: str, shown: list[str]) -> list[str] | None:
    """Returns the updated lines for a page, or None if the shown lines don't match the output."""
    lines = [line.rstrip() for line in output.splitlines()]
    elisions = [at for at, line in enumerate(shown) if line.strip() == "…"]
    result: list[str] = []
    begin = 0
    for first, last in zip([-1, *elisions], [*elisions, len(shown)], strict=True):
        segment = shown[first + 1 : last]
        if first >= 0:
            result.append("…")
        if not segment:
            continue

        def at(pattern: str, begin: int = begin) -> int | None:
            return next((at for at in range(begin, len(lines)) if prints(lines[at], [pattern])), None)

        start = begin if first < 0 else at(segment[0])
        end = len(lines) - 1 if last == len(shown) else at(segment[-1])
        if start is None or end is None or end < start:
            return None
        kept = {text: pattern for pattern in segment if "…" in pattern for text in lines if prints(text, [pattern])}
        result += [kept.get(line, line) for line in lines[start : end + 1]]
        begin = end + 1
    return result


def update(page: Path, changes: list[tuple[Example, list[str]]]) -> None:
    """Inserts new output into a page, last example first."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for example, new in reversed(changes):
        begin = example.shown_from - 1
        lines[begin : begin + len(example.shown or [])] = new
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def is_tutorial(page: Path) -> bool:
    return page.name.startswith("tutorial")


def examples(page: Path) -> Iterator[Example]:
    """Yields the examples of a page, in order."""
    fence = None
    found: Example | None = None
    pending = ""
    start = 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            if found:
                yield found
            found, pending = None, ""
            fence = line.strip().removeprefix("```") if fence is None else None
            continue
        text = line.strip()
        if fence == "sh" or (fence == "console checked" and (pending or text.startswith("$ "))):
            if not pending:
                start = number
                text = text.removeprefix("$ ") if fence != "sh" else text
            pending += text.removesuffix("\\").strip() + " "
            if text.endswith("\\"):
                continue
            command, pending = pending.strip(), ""
            if found:
                yield found
            found = None
            if fence != "sh":
                found = Example(start, command, [])
            elif command.startswith("smbscope ") or (is_tutorial(page) and command and not command.startswith("#")):
                yield Example(start, command)
        elif fence == "console checked":
            if not found or found.shown is None:
                raise ValueError(f"{page.relative_to(ROOT)}:{number}: output without a command")
            found.shown_from = found.shown_from or number
            found.shown.append(line)


def prepare(smbscope: Path, directory: Path) -> Workplace:
    data = directory / "tests" / "data"
    data.mkdir(parents=True)
    for capture in sorted((ROOT / "tests" / "data").glob("demo-*")):
        shutil.copy(capture, data)
    shutil.copytree(ROOT / "studies", directory / "studies")
    binary = directory / "target" / "release" / "smbscope"
    binary.parent.mkdir(parents=True)
    binary.symlink_to(smbscope)
    return Workplace(directory, environment(os.pathsep.join([str(binary.parent), os.environ["PATH"]])))


def environment(path: str) -> dict[str, str]:
    return dict(os.environ, PATH=path, NO_COLOR="1", LC_ALL="C.UTF-8", TZ="UTC")


def which(tool: str) -> str | None:
    """Finds a program, including in the sbin directories that may not be on an ordinary user's PATH."""
    return shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--smbscope", type=Path, metavar="PROGRAM", help="the program of this clone")
    source.add_argument("--root", type=Path, metavar="DIR", help="a root in which its package is installed (chroot)")
    parser.add_argument("--update", action="store_true", help="rewrite shown output that differs")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what the examples print")
    parser.add_argument("pages", nargs="*", type=Path, help="these pages only")
    options = parser.parse_args()

    root: Path | None = options.root and options.root.resolve(strict=True)
    smbscope: Path | None = options.smbscope and options.smbscope.resolve()
    if smbscope and not smbscope.is_file():
        print(f"check_readme: {options.smbscope} does not exist; build it first", file=sys.stderr)
        return 1
    pages = [page.resolve() for page in options.pages] or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    passed = failed = 0
    for page in pages:
        scratch = root / "tmp" if root else None
        with tempfile.TemporaryDirectory(prefix="smbscope-examples-", dir=scratch) as name:
            directory = Path(name)
            workplace = prepare(smbscope, directory) if smbscope else Workplace(directory, environment(BARE), root)
            changes: list[tuple[Example, list[str]]] = []
            for example in examples(page):
                samba = smbscope and which("smbd")
                if example.command.startswith(WANT_SAMBA) and not samba:
                    print(f"check_readme: skipped, as there is no Samba: {example.command}")
                    if is_tutorial(page):
                        # The rest of the page builds on it.
                        break
                    continue
                outcome = workplace.run(example)
                if options.update and example.shown and outcome.complaint.startswith("the page shows"):
                    place = f"{workplace.directory / 'tests' / 'data'}/"
                    new = updated(outcome.output.replace(place, "…"), example.shown)
                    if new is not None:
                        changes.append((example, new))
                passed += outcome.good
                failed += not outcome.good
                where = f"{page.relative_to(ROOT)}:{example.line}"
                print(f"check_readme: {'ok' if outcome.good else 'FAILED'} {where}: {example.command}")
                if options.verbose or not outcome.good:
                    print(f"{outcome.output.rstrip()}\n({outcome.complaint or 'as it should be'})")
            update(page, changes)
    print(f"check_readme: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
