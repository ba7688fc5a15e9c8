"""Options as arguments of the command line, and runs of it as a child process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from smbscope._smbscope import ArgumentError, LimitError, RunError

# As in typing, whose import takes longer than that of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable
    from typing import TypeAlias

    Path: TypeAlias = str | os.PathLike[str]

# How long an interrupted run may take to write what it has measured.
_GRACE_SECONDS = 60.0
# The status of an interrupted run: its own, or that of SIGINT where it came too early.
_INTERRUPTED = (130, -2)


def paths(given: Path | Iterable[Path]) -> list[str]:
    """One path or several, as arguments."""
    several = [given] if isinstance(given, str | os.PathLike) else list(given)
    return [os.fspath(path) for path in several]


def options(parameters: Mapping[str, object], *others: str) -> dict[str, object]:
    """Return the parameters of a function that are options of the command line."""
    return {name: value for name, value in parameters.items() if name not in others}


def given(options: Mapping[str, object]) -> dict[str, list[str]]:
    """Return the values of options as text; what is None, False or empty is not given."""
    texts = {name: _texts(value) for name, value in options.items()}
    return {name: values for name, values in texts.items() if values}


def _texts(value: object) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return ["true"]
    if isinstance(value, Mapping):
        return [f"{name}={_text(item)}" for name, item in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [_text(item) for item in value]
    return [_text(value)]


def arguments(options: Mapping[str, object]) -> list[str]:
    """Return options by their Python names as arguments of a process."""
    words: list[str] = []
    for name, values in given(options).items():
        # A keyword that Python reserves has an underscore: if_.
        option = "--" + name.rstrip("_").replace("_", "-")
        words.extend([option] if options[name] is True else (f"{option}={value}" for value in values))
    return words


def _text(value: object) -> str:
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def run(verb: str, given: list[str], *, password: str | None = None) -> str:
    """Run a verb of the command line to its end, and return what it prints.

    A password is handed over in the environment, where other users can't read it.
    """
    import subprocess

    environment = dict(os.environ)
    if password is not None:
        environment["SMBSCOPE_PASSWORD"] = password
    # In a session of its own it asks nobody for a password, and Ctrl-C reaches it once: through this process.
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "smbscope", verb, *given],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        printed, said = child.communicate()
    except BaseException:
        _end(child)
        raise
    if child.returncode == 0:
        _log(said)
        return printed
    raise _failure(child.returncode, said)


def _end(child: subprocess.Popen[str]) -> None:
    """Interrupt a run, and wait until it has written what it has."""
    import signal
    import subprocess

    child.send_signal(signal.SIGINT)
    try:
        child.communicate(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()


def _log(said: str) -> None:
    if said:
        import logging

        for line in said.splitlines():
            logging.getLogger("smbscope").warning(line.removeprefix("smbscope: ").removeprefix("warning: "))


def _failure(status: int, said: str) -> BaseException:
    """What a run ended with, as an exception with its one line."""
    if status in _INTERRUPTED:
        return KeyboardInterrupt()
    lines = [line.removeprefix("smbscope: ").strip() for line in said.splitlines()]
    if status == 2:
        return ArgumentError(_of_arguments(lines))
    text = lines[-1] if lines else f"it ended with status {status}"
    return LimitError(text) if status == 3 else RunError(text)


def _of_arguments(lines: list[str]) -> str:
    """What is wrong with the arguments, without the usage of the command line."""
    said: list[str] = []
    for line in lines:
        if line.startswith(("Usage:", "For more")):
            break
        if line:
            said.append(line)
    return "; ".join(said).removeprefix("error: ")
