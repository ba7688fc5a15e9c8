#!/usr/bin/env python3
"""Compares smbscope with tshark on undamaged captures, and with the undamaged originals on damaged ones.

    scripts/accuracy.py --captures DIR --smbscope target/release/smbscope -o docs/accuracy.md

Layout of DIR (all parts are optional):

    own/X.pcap[.zst]         undamaged captures. X.pcap.pdu.tsv[.zst] is tshark's reference: one row per response with
    public/*/X               frame, proto, mid, response_to (the request's frame), time, status. If it is missing, the
                             installed tshark produces it.
    damaged/X__WHAT.pcap[ng].zst
                             variants of own/X.pcap. X__WHAT.map.tsv[.zst] maps their packets to the parent's. Without
                             a map, they contain the same packets as their parent.
    formats/X.*              the first packets of own/X.pcap in other file formats

Captures in DIR itself are also undamaged. `--write-references` saves tshark's references next to the captures.

Part A: smbscope must match every response that tshark times to the same request with the same time. A difference
needs one of the reasons below, proved by the data itself. Any other difference is UNEXPLAINED.
Part B: smbscope's exchanges of the parent (checked in part A) are the truth for the damaged variants. A request paired
with a wrong response is FALSE. A pair that smbscope lacks although the surviving packets allow it is MISSING.

Part C: with `--damage`, the tool of that name damages the undamaged captures at random (independent losses, bursts,
one direction, data segments, neighbours, a late start; each also with duplicates, reordering and snap lengths). It
compares each copy with smbscope's own exchanges of the undamaged capture, with the terms of part B. The tool's option
`--sealed` also damages encrypted twins of readable captures and compares them with the readable ones.

Exit status 1 if anything is unexplained or false, or if recall in part B is below 99%.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import accuracy_page
import truth
from exchanges import Analysis, Exchange, analyze
from reference import Reply, ask_tshark, read_replies, write_replies

STATUS_PENDING = 0x0000_0103
RECALL = 0.99
# Formats that smbscope rejects with an error message.
UNSUPPORTED = re.compile(r"\.(netmon2|ngsniffer)\b")
CAPTURE_NAME = re.compile(r"\.(pcap|pcapng|cap|snoop)(\.(gz|zst|xz|lz4))?$")


# --- Part A: undamaged captures ---------------------------------------------------------------------------------


@dataclass
class PartA:
    """Comparison of one undamaged capture."""

    name: str
    origin: str
    timed: int = 0
    equal: int = 0
    untimed: int = 0
    untimed_matched: int = 0
    complete: int = 0
    only_ours: Counter[str] = field(default_factory=Counter)
    different: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)
    note: str = ""

    def title(self) -> str:
        return f"{self.origin}/{self.name}" if self.origin else self.name


def part_a(name: str, origin: str, replies: list[Reply], analysis: Analysis, capture: Path) -> PartA:
    result = PartA(name, origin)
    if analysis.error:
        result.note = analysis.error
    by_end: dict[tuple[str, int | None, int | None], list[Exchange]] = defaultdict(list)
    by_id: dict[tuple[str, int | None], list[Exchange]] = defaultdict(list)
    for exchange in analysis.exchanges:
        by_end[exchange.protocol, exchange.message_id, exchange.response_last].append(exchange)
        by_id[exchange.protocol, exchange.message_id].append(exchange)
        result.complete += exchange.outcome == "complete"
    seen: set[int] = set()
    for reply in replies:
        candidates = by_end[reply.protocol, reply.message_id, reply.frame]
        if reply.time_ns is None:
            result.untimed += 1
            # Also search SMB1: an SMB1 negotiate may be answered in SMB2.
            either = candidates + by_end["SMB1", reply.message_id, reply.frame]
            result.untimed_matched += any(exchange.paired() for exchange in either)
            continue
        result.timed += 1
        same = [e for e in candidates if e.request_last == reply.response_to and e.srt() == reply.time_ns]
        if same:
            result.equal += 1
            seen.update(id(exchange) for exchange in same)
            continue
        reason = explain(reply, candidates, by_id[reply.protocol, reply.message_id], analysis, capture)
        if reason:
            result.different[reason] += 1
            seen.update(id(exchange) for exchange in candidates)
        else:
            ours = candidates or [e for e in by_id[reply.protocol, reply.message_id] if nearby(e, reply)]
            said = "; ".join(exchange.describe() for exchange in ours[:3]) or "nothing"
            result.unexplained.append(f"tshark: {reply.describe()}. smbscope: {said}")
    for exchange in analysis.exchanges:
        if exchange.outcome == "complete" and id(exchange) not in seen:
            result.only_ours[exchange.command] += 1
    return result


def nearby(exchange: Exchange, reply: Reply) -> bool:
    return (
        reply.response_to in (exchange.request_first, exchange.request_last) or exchange.response_first == reply.frame
    )


def explain(
    reply: Reply, candidates: list[Exchange], same_id: list[Exchange], analysis: Analysis, capture: Path
) -> str | None:
    """Returns the first reason that the data proves, or None."""
    ours = [exchange for exchange in same_id if exchange.request_last == reply.response_to]
    if reply.status == STATUS_PENDING:
        for exchange in ours:
            ended_later = exchange.response_last is None or exchange.response_last > reply.frame
            if ended_later and exchange.interim_time() == reply.time_ns:
                return "interim"
    cancels = [e for e in analysis.exchanges if "CANCEL" in e.command and e.request_last == reply.response_to]
    if cancels and any(e.request_last is not None and e.request_last < (reply.response_to or 0) for e in candidates):
        return "cancel"
    if reply.protocol == "SMB1" and reply.command in (0x1A, 0x1D, 0x20):
        if sent_by_server(reply, capture):
            return "raw_interim"
        if any("RAW" in e.command or "WRITE_COMPLETE" in e.command for e in same_id):
            return "raw_final"
    if reply.protocol == "SMB1" and reply.command == 0x2B:
        for exchange in ours:
            first, last = exchange.response_first, exchange.response_last
            if first is not None and last is not None and first <= reply.frame < last and "ECHO" in exchange.command:
                return "echo"
    for exchange in ours:
        first, last = exchange.response_first, exchange.response_last
        if reply.protocol == "SMB1" and first is not None and last is not None and first <= reply.frame < last:
            return "parts"
    if any(is_later_copy(reply, exchange, capture) for exchange in same_id):
        return "retransmission"
    return None


_truths: dict[Path, truth.Truth | None] = {}


def truth_of(capture: Path) -> truth.Truth | None:
    """Returns the result of the independent reader, or None if it can't read the capture."""
    if capture not in _truths:
        try:
            _truths[capture] = truth.read(capture)
        except (KeyError, IndexError, StopIteration, ValueError, subprocess.CalledProcessError):
            _truths[capture] = None
    return _truths[capture]


def sent_by_server(reply: Reply, capture: Path) -> bool:
    """Returns True if tshark's request was sent in the same direction as the response."""
    known = truth_of(capture)
    if known is None or reply.response_to is None:
        return False
    request, response = known.packets.get(reply.response_to), known.packets.get(reply.frame)
    return request is not None and response is not None and request.source == response.source


def is_later_copy(reply: Reply, exchange: Exchange, capture: Path) -> bool:
    """Returns True if tshark's packets are later copies (same sequence numbers) of smbscope's packets."""
    known = truth_of(capture)
    if known is None:
        return False

    def copy(theirs: int | None, ours: int | None) -> bool:
        if theirs == ours:
            return True
        a, b = known.packets.get(theirs or 0), known.packets.get(ours or 0)
        return a is not None and b is not None and a.source == b.source and a.seq == b.seq and a.number > b.number

    return copy(reply.frame, exchange.response_last) and copy(reply.response_to, exchange.request_last)


# --- Part B: damaged captures -----------------------------------------------------------------------------------


@dataclass
class PartB:
    """Comparison of one damaged capture with its parent."""

    name: str
    what: str
    exchanges: int = 0
    allowed: int = 0
    right: int = 0
    missing: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    mistimed: list[str] = field(default_factory=list)
    untimed: int = 0
    dropped: tuple[int, int] | None = None
    dropped_bytes: tuple[int, int] | None = None
    retransmitted: tuple[int, int] | None = None
    seen_once: tuple[int, int] | None = None
    duplicates: tuple[int, int] | None = None
    error: str = ""
    told: "Told | None" = None


@dataclass
class Told:
    """Percentage of untimed commands: the true one, and the one in the report."""

    truth: float
    percent: float
    at_least: float
    at_most: float
    sentence: str

    def is_right(self) -> bool:
        """Returns True if the estimate is within 10% of the truth (or 0.05 percentage points), or its range contains
        the truth."""
        near = abs(self.percent - self.truth) <= max(0.1 * self.truth, 0.05)
        return near or self.at_least <= self.truth <= self.at_most


@dataclass(slots=True)
class Half:
    """Packets that a request or response may span."""

    packets: frozenset[int]
    messages: list[truth.Message]


@dataclass(slots=True)
class Parent:
    """An undamaged capture and smbscope's exchanges of it."""

    truth: truth.Truth
    analysis: Analysis
    halves: dict[int, tuple[Half | None, Half | None]]
    by_id: dict[tuple[int, str, int | None], list[Exchange]]


def parent_of(capture: Path, analysis: Analysis) -> Parent:
    known = truth.read(capture)
    by_key: dict[tuple[str, int, int], list[truth.Message]] = defaultdict(list)
    for message in known.messages:
        for port in message.ports:
            by_key[message.protocol, message.message_id, port].append(message)
    server_ports = {
        packet.target[1] for packet in known.packets.values() if packet.flags & 0x12 == 2
    }  # a SYN without ACK goes to a server
    data = [packet.number for packet in known.data_packets()]

    def half(exchange: Exchange, first: int | None, last: int | None, from_server: bool) -> Half | None:
        if first is None or last is None:
            return None
        messages = [
            message
            for message in by_key.get((exchange.protocol, exchange.message_id or 0, exchange.client_port), [])
            if (message.ports[0] in server_ports) == from_server and first <= message.first and message.last <= last
        ]
        if messages:
            packets = frozenset().union(*(message.packets for message in messages)) | {first, last}
        else:
            # Raw data without an SMB header: everything this side sent between first and last.
            packets = frozenset(
                n
                for n in data
                if first <= n <= last
                and exchange.client_port in (known.packets[n].source[1], known.packets[n].target[1])
                and (known.packets[n].source[1] in server_ports) == from_server
            ) | {first, last}
        return Half(packets, messages)

    halves = {}
    by_id: dict[tuple[int, str, int | None], list[Exchange]] = defaultdict(list)
    for exchange in analysis.exchanges:
        halves[id(exchange)] = (
            half(exchange, exchange.request_first, exchange.request_last, False),
            half(exchange, exchange.response_first, exchange.response_last, True),
        )
        by_id[exchange.client_port, exchange.protocol, exchange.message_id].append(exchange)
    return Parent(known, analysis, halves, by_id)


def allows(parent: Parent, exchange: Exchange, variant: truth.Variant) -> bool:
    """Returns True if the variant still contains what is needed to measure an exchange of the parent."""
    request, response = parent.halves[id(exchange)]
    if exchange.outcome != "complete" or request is None or response is None:
        return False
    ends = (exchange.request_first, exchange.response_first, exchange.response_last)
    if not all(end is not None and variant.survives(end) for end in ends):
        return False
    # If reordering put the response before a part of its request, the pair is matched but can't be timed.
    answered = exchange.response_first
    for asked in (exchange.request_first, exchange.request_last):
        if asked and answered and variant.survives(asked) and variant.goes_back(asked, answered):
            return False
    # Without the header of its first message, a request or response can't be identified.
    return all(variant.has_header(half.messages[0]) for half in (request, response) if half.messages)


def part_b(name: str, what: str, parent: Parent, variant: truth.Variant, analysis: Analysis, cut: bool) -> PartB:
    result = PartB(name, what)
    if analysis.error:
        result.error = analysis.error
    unsupported = analysis.error and UNSUPPORTED.search(name)
    allowed = {id(e) for e in parent.analysis.exchanges if not unsupported and allows(parent, e, variant)}
    result.exchanges = sum(e.outcome == "complete" for e in parent.analysis.exchanges)
    result.allowed = len(allowed)
    found: set[int] = set()
    right: set[int] = set()
    old = variant.new_to_old
    for exchange in analysis.exchanges:
        if not exchange.paired():
            continue
        request = old.get(exchange.request_first or 0)
        response = old.get(exchange.response_last or 0)
        response_start = old.get(exchange.response_first or 0, response)
        rivals = parent.by_id.get((exchange.client_port, exchange.protocol, exchange.message_id), [])
        truths = [e for e in rivals if holds(parent.halves[id(e)][0], request)]
        match = next(
            (
                e
                for e in truths
                if id(e) not in found
                and e.command == exchange.command
                and holds(parent.halves[id(e)][1], response)
                and holds(parent.halves[id(e)][1], response_start)
            ),
            None,
        )
        if match is None:
            said = "; ".join(e.describe() for e in truths[:2]) or "no such request"
            result.false.append(
                f"{exchange.describe()} (in the parent: request {request}, response {response}); truth: {said}"
            )
            continue
        found.add(id(match))
        if exchange.outcome != "complete":
            result.untimed += exchange.outcome == "clock_step"
            continue
        right.add(id(match))
        wrong = timing(parent, match, exchange, variant)
        if wrong:
            result.mistimed.append(f"{exchange.describe()}: {wrong}")
    result.right = len(right & allowed)
    for exchange in parent.analysis.exchanges:
        if id(exchange) in allowed - right:
            how = " (paired, but not counted as complete)" if id(exchange) in found else ""
            result.missing.append(exchange.describe() + how)
    if "drop" in name.partition("__")[2]:
        # The damage did not cause commands that are also untimed in the parent. The asynchronous portion of a Write_Raw
        # has a separate row but belongs to the same command.
        commands = [e for e in parent.analysis.exchanges if e.outcome == "complete" and e.subcommand != "async portion"]
        measured = sum(id(e) in right for e in commands)
        result.told = told(100 * (1 - measured / len(commands)), analysis) if commands else None
    # The parent's counters cover the whole capture, so a truncated variant can't be compared with them.
    if not cut:
        counters(result, parent, variant, analysis)
    return result


def told(truth: float, analysis: Analysis) -> Told | None:
    share = analysis.not_timed
    if not share:
        return None
    return Told(truth, share["percent"], share["at_least"], share["at_most"], analysis.sentence)


def holds(half: Half | None, packet: int | None) -> bool:
    return half is not None and packet in half.packets


def timing(parent: Parent, match: Exchange, exchange: Exchange, variant: truth.Variant) -> str:
    """Returns the difference between the timed packets and the correct ones, or an empty string."""
    old = variant.new_to_old
    request, response = parent.halves[id(match)]
    assert request and response
    ends = (
        ("request_first", exchange.request_first, match.request_first, request, min),
        ("response_last", exchange.response_last, match.response_last, response, max),
    )
    for name, ours, true, half, pick in ends:
        if ours is None or true is None:
            return f"{name} is missing"
        tag = variant.tags.get(ours, "")
        if tag in ("dup", "retx") and variant.arrival[old[ours]] != ours:
            return f"{name} {ours} is a {tag} of {variant.arrival[old[ours]]}"
        # After reordering, the packet that arrived last completes the message.
        arrived = [packet for packet in half.packets if packet in variant.arrival]
        latest = pick(arrived, key=lambda packet: variant.arrival[packet])
        if old[ours] not in (true, latest):
            return f"{name} is the parent's packet {old[ours]} instead of {true}"
    if variant.same_times:
        ours_ns, true_ns = exchange.response_time(), match.response_time()
        # Clocks with a resolution of 2^-30 s round by up to 2 ns.
        if ours_ns is None or true_ns is None or abs(ours_ns - true_ns) > 2:
            return f"response time {ours_ns} ns instead of {true_ns} ns"
    return ""


def counters(result: PartB, parent: Parent, variant: truth.Variant, analysis: Analysis) -> None:
    """Compares the damage with smbscope's counters, less those of the parent."""

    def reported(name: str) -> int:
        return analysis.quality.get(name, 0) - parent.analysis.quality.get(name, 0)

    tags = Counter(variant.tags.values())
    if variant.tags or not variant.same_times:
        lost = [packet for packet in parent.truth.data_packets() if not variant.survives(packet.number)]
        if "midstart" not in result.name:
            result.dropped = (len(lost), reported("dropped_packets"))
            result.dropped_bytes = (sum(len(packet.payload) for packet in lost), reported("dropped_bytes"))
    result.retransmitted = (tags["retx"], reported("retransmitted_segments"))
    result.seen_once = (tags["delayed"], reported("retransmissions_seen_once"))
    result.duplicates = (tags["dup"], reported("duplicate_packets"))


# --- Part C: random damage --------------------------------------------------------------------------------------


def random_damage(program: Path, options: list[str], places: list[Path]) -> tuple[str, bool]:
    """Returns the section on random damage, and True if no pair was false."""
    run = subprocess.run([str(program), *options, *map(str, places)], stdout=subprocess.PIPE, text=True)
    if run.returncode not in (0, 1):
        raise SystemExit(f"accuracy: {program} ended with status {run.returncode}")
    section = accuracy_page.random_damage(" ".join(["damage", *options]), run.stdout)
    return section, run.returncode == 0


# --- Finding the captures ---------------------------------------------------------------------------------------


def beside(path: Path, ending: str) -> Path | None:
    for candidate in (path.with_name(path.name + ending), path.with_name(path.name + ending + ".zst")):
        if candidate.exists():
            return candidate
    return None


def captures_in(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if CAPTURE_NAME.search(path.name))


def descriptions(directory: Path) -> dict[str, str]:
    """Returns the description of each variant (`drop1.pcap`) from the index files."""
    found: dict[str, str] = {}
    for index in sorted(directory.glob("index*.tsv*")):
        for line in truth.contents(index).decode().splitlines():
            name, _, rest = line.partition("\t")
            fields = rest.split("\t")
            if len(fields) > 1:
                found.setdefault(name.partition("__")[2], fields[1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--captures", type=Path, required=True, help="see the beginning of this file")
    parser.add_argument("--smbscope", type=Path, required=True, help="the program to check")
    parser.add_argument("-o", "--output", type=Path, help="default: standard output")
    parser.add_argument("--only", default="", help="only captures whose name contains this")
    parser.add_argument("--write-references", action="store_true", help="write X.pdu.tsv.zst where it is missing")
    parser.add_argument("--damage", type=Path, help="the damage tool, for random damage as well")
    parser.add_argument("--damage-options", default="", help="its options, such as --runs 100000 --seed 7")
    parser.add_argument("-q", "--quiet", action="store_true", help="no line for each capture")
    options = parser.parse_args()

    def wanted(path: Path) -> bool:
        return options.only in path.name

    root: Path = options.captures
    places = [("own", root / "own"), ("", root)]
    places += [(directory.name, directory) for directory in sorted(root.glob("public/*")) if directory.is_dir()]
    skipped: list[str] = []
    parts_a: list[PartA] = []
    parts_b: list[PartB] = []
    parents: dict[str, Parent] = {}

    def say(text: str) -> None:
        if not options.quiet:
            print(text, file=sys.stderr, flush=True)

    for origin, directory in places:
        for capture in captures_in(directory):
            if not wanted(capture):
                continue
            name = capture.name.removesuffix(".zst")
            reference = beside(capture.with_name(name), ".pdu.tsv")
            if reference is None and not shutil.which("tshark"):
                skipped.append(f"{name}: no reference lies beside it, and tshark is not installed")
                continue
            replies = read_replies(reference) if reference else ask_tshark(capture)
            if options.write_references and reference is None:
                write_replies(capture.with_name(name + ".pdu.tsv.zst"), replies)
            part = part_a(name, origin, replies, analyze(options.smbscope, capture), capture)
            parts_a.append(part)
            say(
                f"{part.title()}: {part.timed} timed, {part.equal} equal, {sum(part.different.values())} explained, "
                f"{len(part.unexplained)} unexplained {part.note}"
            )

    def parent(stem: str) -> Parent | None:
        if stem not in parents:
            capture = next((p for _, d in places for p in captures_in(d) if p.name.startswith(stem + ".pcap")), None)
            if capture is None:
                return None
            parents[stem] = parent_of(capture, analyze(options.smbscope, capture))
        return parents[stem]

    what = descriptions(root / "damaged")
    for capture in captures_in(root / "damaged"):
        if not wanted(capture):
            continue
        name = capture.name.removesuffix(".zst")
        stem, change = name.split("__", 1)
        whole = parent(stem)
        if whole is None:
            skipped.append(f"damaged/{name}: its parent own/{stem}.pcap is not there")
            continue
        map_path = beside(capture.with_name(f"{stem}__{change.rsplit('.', 1)[0]}"), ".map.tsv")
        snap = re.match(r"snap(\d+)", change)
        cut = sum(1 for _ in truth.records(truth.contents(capture))) if change.startswith("trunc") else None
        variant = truth.variant(
            whole.truth,
            map_path,
            snap=int(snap[1]) if snap else None,
            last=cut,
            halves=change.startswith("twoif_unsorted"),
        )
        if map_path and ".pcapng" not in name:
            variant.times = {n: time_ns for n, time_ns, _ in truth.records(truth.contents(capture))}
        analysis = analyze(options.smbscope, capture)
        part_of_b = part_b(name, what.get(change, ""), whole, variant, analysis, cut is not None)
        parts_b.append(part_of_b)
        report_b(part_of_b, say)
    for capture in sorted(root.glob("formats/*")):
        if not wanted(capture) or not capture.is_file() or capture.name == "README.md":
            continue
        stem = capture.name.split(".")[0]
        whole = parent(stem)
        if whole is None:
            skipped.append(f"formats/{capture.name}: its parent own/{stem}.pcap is not there")
            continue
        plain = capture.with_name(f"{stem}.pcap.zst")
        last = sum(1 for _ in truth.records(truth.contents(plain))) if plain.exists() else None
        variant = truth.variant(whole.truth, None, snap=None, last=last, halves=False)
        what_is_it = "the first packets in another format" if last else "another format"
        analysis = analyze(options.smbscope, capture)
        part_of_b = part_b(capture.name, what_is_it, whole, variant, analysis, last is not None)
        parts_b.append(part_of_b)
        report_b(part_of_b, say)

    part_c, nothing_false = "", True
    if options.damage:
        directories = [directory for _, directory in places if captures_in(directory)]
        part_c, nothing_false = random_damage(options.damage, options.damage_options.split(), directories)
    text = accuracy_page.page(options.smbscope, parts_a, parts_b, part_c, skipped)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text)
    unexplained = sum(len(part.unexplained) for part in parts_a)
    false = sum(len(part.false) for part in parts_b)
    allowed, right = sum(p.allowed for p in parts_b), sum(p.right for p in parts_b)
    wrong_share = [part.name for part in parts_b if part.told and not part.told.is_right()]
    low = [part.name for part in parts_b if part.right < RECALL * part.allowed]
    print(
        f"accuracy: {unexplained} unexplained, {false} false, {sum(len(p.mistimed) for p in parts_b)} mistimed, "
        f"recall {accuracy_page.percent(right, allowed)}"
        + (f", below {RECALL:.0%} in: {', '.join(low)}" if low else ""),
        file=sys.stderr,
    )
    if wrong_share:
        print(f"accuracy: wrong share of lost commands in: {', '.join(wrong_share)}", file=sys.stderr)
    wrong = unexplained or false or low or wrong_share or not nothing_false
    return 1 if wrong or not parts_a else 0


def report_b(part: PartB, say: Callable[[str], None]) -> None:
    say(
        f"{part.name}: allowed {part.allowed}, right {part.right}, missing {len(part.missing)}, "
        f"false {len(part.false)}, mistimed {len(part.mistimed)} {part.error}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
