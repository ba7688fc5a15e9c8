"""`smbscope cluster analyze|bench|study`: the verbs of the command line on a Ray cluster."""

from __future__ import annotations

import argparse
import sys
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_USAGE = """\
Usage: smbscope cluster analyze FILE... [OPTIONS]
       smbscope cluster bench [TARGET] [OPTIONS]
       smbscope cluster study FILE [OPTIONS]

Analyse captures, or load a server, on a Ray cluster: the one that runs (--cluster auto), unless --cluster ADDRESS names
another, or `local` for this machine. bench and study take their own options.
"""


def translated(arguments: Sequence[str]) -> list[str]:
    """The arguments of bench or study on a cluster; analyze is done here, and ends the process."""
    verb, *given = [*arguments, ""][: max(len(arguments), 1)]
    if verb in ("-h", "--help"):
        print(_USAGE, end="")
        sys.exit(0)
    if verb in ("bench", "study"):
        named = any(argument == "--cluster" or argument.startswith("--cluster=") for argument in given)
        return [verb, *([] if named else ["--cluster", "auto"]), *given]
    if verb == "analyze":
        _analyze(given)
    said = f"smbscope: cluster has analyze, bench and study, and not {verb!r}" if verb else _USAGE.rstrip()
    print(said, file=sys.stderr)
    sys.exit(2)


def _clean(text: str) -> str:
    """Replace what steers a terminal or is not seen: an error may quote the name of a file."""
    steering = {"Cc", "Cf", "Zl", "Zp"}
    return "".join("\ufffd" if unicodedata.category(c) in steering else c for c in text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="smbscope cluster analyze", description="Analyse captures on a Ray cluster.", allow_abbrev=False
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="path, URI or pattern of a capture")
    add("--cluster", dest="address", default="auto", metavar="ADDRESS", help="address of the cluster, or local")
    add("--parts", type=int, metavar="N", help="divide the pairs of hosts into N parts [default: 16]")
    add("--scratch", metavar="URI", help="keep pieces in this folder or URI, which all hosts see")
    add("--exchanges", metavar="URI", help="write the exchange table to this folder or URI")
    add("--format", choices=["text", "json", "html"], default="text", help="print the report in this format")
    add("-o", "--output", metavar="FILE", help="write the report to this file: .txt, .md, .json or .html")
    for option in ("filter", "interval", "slow", "thresholds", "beside", "title"):
        add(f"--{option}", help="as in smbscope analyze")
    add("--port", action="append", type=int, default=[], help="as in smbscope analyze")
    add("--memory", type=int, metavar="MIB", help="as in smbscope analyze, for each part")
    add("--no-findings", action="store_true", help="as in smbscope analyze")
    return parser


def _analyze(given: list[str]) -> NoReturn:
    options = vars(_parser().parse_args(given))
    files, output, how = (options.pop(name) for name in ("files", "output", "format"))
    if options["address"] == "local":
        options["address"] = None
    if options["parts"] is None:
        del options["parts"]
    from smbscope._smbscope import ArgumentError, SmbscopeError

    try:
        from smbscope import cluster

        analysis = cluster.analyze(files, **options)
        if output:
            analysis.save(output)
        else:
            printed = {"text": analysis.to_text, "json": analysis.to_json, "html": analysis.to_html}[how]()
            sys.stdout.write(printed if printed.endswith("\n") else printed + "\n")
    except (SmbscopeError, ImportError) as error:
        print(f"smbscope: {_clean(str(error))}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ArgumentError) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)
