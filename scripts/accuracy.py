#!/usr/bin/env python3
"""Checks smbscope against tshark on undamaged captures, and against the undamaged truth on damaged ones.

    scripts/accuracy.py --captures DIR --smbscope target/release/smbscope -o docs/accuracy.md

DIR is laid out so (each part may be missing):

    own/X.pcap[.zst]         undamaged captures; X.pcap.pdu.tsv[.zst] beside it is what tshark says: a row for
    public/*/X               each response with frame, proto, mid, response_to (the request's frame), time, status.
                             Where it is missing, it is made with the tshark of this machine.
    damaged/X__WHAT.pcap[ng].zst
                             variants of own/X.pcap; X__WHAT.map.tsv[.zst] maps their packets to those of the parent.
                             Without a map they hold the same packets as their parent.
    formats/X.*              the first packets of own/X.pcap in other file formats

Captures in DIR itself are undamaged ones too. `--write-references` keeps what tshark says beside the captures.

Part A: every response that tshark times must be matched by smbscope to the same request with the same time. What
differs must have one of the reasons below, each proved by the data itself; anything else is UNEXPLAINED.
Part B: smbscope's exchanges of the parent (checked in part A) are the truth for the damaged variants. A pairing of a
request with another response is FALSE; a pairing that the surviving packets allow and smbscope lacks is MISSING.

Part C: with `--damage`, the tool of that name damages the undamaged captures at random (independent losses, bursts,
one direction, data segments, neighbours, a late start; each also with duplicates, reordering and snap lengths) and
judges each copy by smbscope's own exchanges of the undamaged capture, in the terms of part B.

Exit status 1 when anything is unexplained or false, or recall in part B is below 99 %.
"""

import argparse
import datetime
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import truth
from exchanges import Analysis, Exchange, analyze
from reference import Reply, ask_tshark, read_replies, write_replies

STATUS_PENDING = 0x0000_0103
RECALL = 0.99
# Formats of other programs that smbscope does not read, and says so.
UNSUPPORTED = re.compile(r"\.(netmon2|ngsniffer)\b")
CAPTURE_NAME = re.compile(r"\.(pcap|pcapng|cap|snoop)(\.(gz|zst|xz|lz4))?$")


# --- Part A: undamaged captures ---------------------------------------------------------------------------------

REASONS = {
    "interim": "an interim response (STATUS_PENDING, seen in the row itself) never ends an exchange; "
    "smbscope holds the request under the same message id with this very interim time",
    "cancel": "tshark takes the CANCEL for the request: the packet it names holds a CANCEL, "
    "and smbscope times the same message id from the earlier request that was cancelled",
    "raw_interim": "Write_Raw: tshark takes the server's go-ahead (which Samba sends without the reply bit) for the "
    "request: the packet it names was sent by the server",
    "raw_final": "Write_Raw or Read_Raw: an answer without SMB header or with another command's code",
    "echo": "an Echo with several replies: tshark times the first, smbscope's exchange ends with the last",
    "parts": "a response of several messages: tshark times each, smbscope's exchange ends with the last",
    "retransmission": "tshark names a retransmitted copy; smbscope keeps the first copy that the capture holds",
    "no_request": "the request is not in the capture: tshark names none either",
}


@dataclass
class PartA:
    """The comparison of one undamaged capture."""

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
            # In either protocol: an SMB1 negotiate may be answered in SMB2.
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
    """The first reason that the data proves, if any."""
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
    """The second opinion, where the little reader can give one."""
    if capture not in _truths:
        try:
            _truths[capture] = truth.read(capture)
        except (KeyError, IndexError, StopIteration, ValueError, subprocess.CalledProcessError):
            _truths[capture] = None
    return _truths[capture]


def sent_by_server(reply: Reply, capture: Path) -> bool:
    """Whether the packet that tshark calls the request went the same way as the response."""
    known = truth_of(capture)
    if known is None or reply.response_to is None:
        return False
    request, response = known.packets.get(reply.response_to), known.packets.get(reply.frame)
    return request is not None and response is not None and request.source == response.source


def is_later_copy(reply: Reply, exchange: Exchange, capture: Path) -> bool:
    """Whether tshark's packets carry the same sequence numbers as smbscope's earlier ones."""
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
    """The comparison of one damaged capture with its parent."""

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
    """The share of commands without a time, in percent: what is true, and what the report says."""

    truth: float
    percent: float
    at_least: float
    at_most: float
    sentence: str

    def is_right(self) -> bool:
        """Within a tenth of the truth (or half of the last digit shown), or a range that holds it."""
        near = abs(self.percent - self.truth) <= max(0.1 * self.truth, 0.05)
        return near or self.at_least <= self.truth <= self.at_most


@dataclass(slots=True)
class Half:
    """Where the packets of a request or response may be."""

    packets: frozenset[int]
    messages: list[truth.Message]


@dataclass(slots=True)
class Parent:
    """An undamaged capture with smbscope's exchanges of it."""

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
            # Raw data without an SMB header: whatever this side of the flow sent between first and last.
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
    """Whether the variant still holds what an exchange of the parent needs to be measured."""
    request, response = parent.halves[id(exchange)]
    if exchange.outcome != "complete" or request is None or response is None:
        return False
    ends = (exchange.request_first, exchange.response_first, exchange.response_last)
    if not all(end is not None and variant.survives(end) for end in ends):
        return False
    # Where packets overtook each other and the response stands before a part of its request, there is no time to
    # measure: it is matched, and not timed.
    answered = exchange.response_first
    for asked in (exchange.request_first, exchange.request_last):
        if asked and answered and variant.survives(asked) and variant.goes_back(asked, answered):
            return False
    # The header of the first message of each half tells what it is.
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
        # Commands that the parent leaves without a time are none that the damage cost. The asynchronous portion of a
        # Write_Raw has a row of its own, but the command is one.
        commands = [e for e in parent.analysis.exchanges if e.outcome == "complete" and e.subcommand != "async portion"]
        measured = sum(id(e) in right for e in commands)
        result.told = told(100 * (1 - measured / len(commands)), analysis) if commands else None
    # A part of the parent shows a part of what the parent's counters hold.
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
    """What is wrong with the packets that the times were taken from; nothing when they are right."""
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
        # When packets overtook each other, the end that arrived last completes the message.
        arrived = [packet for packet in half.packets if packet in variant.arrival]
        latest = pick(arrived, key=lambda packet: variant.arrival[packet])
        if old[ours] not in (true, latest):
            return f"{name} is the parent's packet {old[ours]} instead of {true}"
    if variant.same_times:
        ours_ns, true_ns = exchange.response_time(), match.response_time()
        # Two nanoseconds are the rounding of a clock that ticks in 2^-30 s.
        if ours_ns is None or true_ns is None or abs(ours_ns - true_ns) > 2:
            return f"response time {ours_ns} ns instead of {true_ns} ns"
    return ""


def counters(result: PartB, parent: Parent, variant: truth.Variant, analysis: Analysis) -> None:
    """What was done to the packets, next to what smbscope reports (less what the parent had already)."""

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


# --- The page ---------------------------------------------------------------------------------------------------


def command_output(command: list[str]) -> str:
    try:
        run = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError:
        return "not installed"
    lines = run.stdout.strip().splitlines()
    return lines[0].rstrip(".") if lines else "unknown"


def pair(value: tuple[int, int] | None) -> str:
    if value is None:
        return "–"
    return "" if value == (0, 0) else f"{value[0]:,} / {value[1]:,}"


INTRODUCTION = """# Accuracy

Generated by `scripts/accuracy.py`; do not edit. To make it again, with captures laid out as the script says:

```
scripts/accuracy.py --captures DIR --smbscope target/release/smbscope -o docs/accuracy.md
```

Made on {date} with {smbscope}. The reference is what TShark 4.0.17 says
(it lies beside the captures); where none lies there, {tshark}.

Of these captures, {bundled} are in the repository: `make accuracy` makes this page from them alone, and `make test`
fails when anything in them is unexplained or false. The others in `own/`, `damaged/` and `formats/` were made in the
same way (`tests/data/README.md`) and are left out for their size; those in `public/` come from the test suites of Zeek
(`testing/btest/Traces`) and Arkime (`tests/pcap`), under their licences, and keep their names.

## Summary
"""

PART_A = """
## Undamaged captures: smbscope and tshark

- `timed`: responses that tshark gives a time.
- `equal`: smbscope has the same response packet, the same request packet and the same time (from the request's last
  packet to the response's last packet).
- `untimed`: responses that tshark shows without a time; in brackets, those that smbscope matched.
- `only ours`: exchanges that smbscope measures and tshark does not time.

| capture | timed | equal | different, by reason | unexplained | untimed | exchanges | only ours |
|---|---:|---:|---|---:|---:|---:|---|"""

PART_B = """
## Damaged captures and other formats: smbscope and the truth

The truth is smbscope's own result for the undamaged parent (compared with tshark above) and the list of what was done
to each packet.

- `allowed`: exchanges of which the headers, the first packet of the request and the last of the response survived, and
  whose response does not stand before its request (a capture may hold packets that overtook each other).
- `missing`: allowed, but not paired. `false`: a request paired with another response.
- `timing`: right, but timed from another packet than the first copy of the right one.
- `untimed`: paired rightly, but not timed, because the response stands before its request.

The other columns read done / reported.

- `dropped`: data packets that the capture lost; *at least*, as nobody can know how many packets a gap held, or that a
  packet is missing which nobody acknowledges in the capture.
- `late copy only`: data of which the capture holds only the copy that was sent again. It shows only where later data
  came before it; when the connection waited for it, the capture holds an ordinary stream with a pause.

| capture | what was done | exchanges | allowed | right | missing | false | timing | untimed | {more}
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


LOSSES = """
## What reports say of lost commands

The sentence at the top of a report tells which share of the commands could not be timed. For each damaged capture that
lost packets: the truth (commands of the parent that the damaged capture does not time), the report's figure, its range,
and the sentence. A figure is right within a tenth of the truth; a range is right when it holds the truth.

| capture | truth | figure | range | right | sentence |
|---|---:|---:|---:|---|---|"""


def losses(parts_b: list[PartB]) -> list[str]:
    """The table of what reports say of lost commands."""
    rows = [LOSSES]
    for b in parts_b:
        if b.told:
            t = b.told
            between = f"{t.at_least:.1f} to {t.at_most:.1f} %"
            right = "yes" if t.is_right() else "**no**"
            rows.append(row(b.name, f"{t.truth:.1f} %", f"{t.percent:.1f} %", between, right, t.sentence))
    return rows if len(rows) > 1 else []


PART_C = """
## Random damage: smbscope and the undamaged capture

Every undamaged capture above is damaged again and again in memory by `damage` (an example program of
`smbscope-testkit`), each time with another seed. smbscope's own exchanges of the undamaged capture are the truth.
A share of 0.5 to 80 % of the packets is lost, small shares as often as great ones:

- `independent`: each packet by itself. `bursts`: 2 to 200 in a row. `one direction`: only packets of one direction of
  every flow. `data segments`: only packets with payload. `neighbours`: a packet and the one behind it. `late start`:
  the beginning of the capture, and 1 to 12 packets in a row later on.
- `duplicates`: up to 30 % of the packets are captured twice. `reordering`: up to 30 % are captured up to 5 places late.
  `snap length`: packets are cut to 110 to 256 bytes.

The columns count as above: `allowed` are exchanges of which the headers, the first packet of the request and the first
and last of the response survived, and whose response does not stand before its request; `false` is a request joined
with a response, or with one end of a response, that is not its own; `mistimed` a right pair timed from another packet
than the first copy of the right one. In encrypted captures nothing but sizes and times tells which response is whose.

"""


def random_damage(program: Path, options: list[str], places: list[Path]) -> tuple[str, bool]:
    """What the damage tool says of captures, and whether it found nothing false."""
    run = subprocess.run([str(program), *options, *map(str, places)], stdout=subprocess.PIPE, text=True)
    if run.returncode not in (0, 1):
        raise SystemExit(f"accuracy: {program} ended with status {run.returncode}")
    asked = f"`damage {' '.join(options)}`:\n\n" if options else ""
    return f"{PART_C}{asked}{run.stdout}", run.returncode == 0


def row(*cells: object) -> str:
    """A table row; zero and nothing are left blank."""
    shown = (f"{cell:,}" if isinstance(cell, int) and cell else cell or "" for cell in cells)
    return f"| {' | '.join(str(cell) for cell in shown)} |"


def counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


def bundled(parts_a: list[PartA], parts_b: list[PartB]) -> int:
    """How many of the captures lie in the repository."""
    data = Path(__file__).resolve().parent.parent / "tests/data"
    undamaged = [data / "own" / f"{a.name}.zst" for a in parts_a if a.origin == "own"]
    undamaged += [data / f"{a.name}.zst" for a in parts_a if not a.origin]
    damaged = [data / "damaged" / f"{b.name}.zst" for b in parts_b]
    return sum(path.exists() for path in undamaged + damaged)


def page(smbscope: Path, parts_a: list[PartA], parts_b: list[PartB], part_c: str, skipped: list[str]) -> str:
    reasons = sum((part.different for part in parts_a), Counter[str]())
    out = [
        INTRODUCTION.format(
            date=datetime.date.today(),
            smbscope=command_output([str(smbscope), "--version"]),
            tshark=command_output(["tshark", "--version"]),
            bundled=bundled(parts_a, parts_b),
        ),
        *summary(parts_a, parts_b, reasons),
        PART_A,
    ]
    for a in parts_a:
        name = f"{a.title()}: {a.note}" if a.note else a.title()
        untimed = f"{a.untimed:,} ({a.untimed_matched:,})" if a.untimed else ""
        why, ours = counted(a.different), counted(a.only_ours)
        out.append(row(name, a.timed, a.equal, why, len(a.unexplained), untimed, a.complete, ours))
    out += ["", "Reasons, each checked row by row:", ""]
    out += [f"- **{name}** ({reasons[name]:,}): {text}." for name, text in REASONS.items() if reasons[name]]
    for a in parts_a:
        out += [f"- UNEXPLAINED in {a.title()}: {line}" for line in a.unexplained[:20]]
    if parts_b:
        out.append(PART_B.format(more="dropped | dropped bytes | retransmitted | late copy only | duplicates |"))
    for b in parts_b:
        if b.error:
            out.append(row(b.name, f"{b.what}: {b.error}", b.exchanges, b.allowed, *[""] * 10))
            continue
        wrong = (len(b.missing), len(b.false), len(b.mistimed), b.untimed)
        done = (pair(value) for value in (b.dropped, b.dropped_bytes, b.retransmitted, b.seen_once, b.duplicates))
        out.append(row(b.name, b.what, b.exchanges, b.allowed, b.right, *wrong, *done))
    out.append("")
    for b in parts_b:
        for title, lines in (("FALSE", b.false), ("TIMING", b.mistimed), ("MISSING", [] if b.error else b.missing)):
            out += [f"- {title} in {b.name}: {line}" for line in lines[:5]]
    out += losses(parts_b)
    if part_c:
        out.append(part_c)
    if skipped:
        out += ["", "## Not compared", "", *(f"- {line}" for line in skipped)]
    return "\n".join(out) + "\n"


def summary(parts_a: list[PartA], parts_b: list[PartB], reasons: Counter[str]) -> list[str]:
    rows: list[tuple[str, int | str]] = [
        ("undamaged captures", len(parts_a)),
        ("responses that tshark times", sum(part.timed for part in parts_a)),
        ("the same request and time, to the last digit that the capture holds", sum(part.equal for part in parts_a)),
        ("different, with a reason that the data proves", sum(reasons.values())),
        ("different and unexplained", sum(len(part.unexplained) for part in parts_a)),
    ]
    if parts_b:
        allowed, right = sum(part.allowed for part in parts_b), sum(part.right for part in parts_b)
        rows += [
            ("damaged captures and other formats", len(parts_b)),
            ("exchanges that their packets still allow to be measured", allowed),
            ("right", f"{right:,} ({percent(right, allowed)})"),
            ("missing", sum(len(part.missing) for part in parts_b)),
            ("false", sum(len(part.false) for part in parts_b)),
            ("right, but timed from another packet", sum(len(part.mistimed) for part in parts_b)),
            ("paired, but not timed: the response was captured before its request", sum(p.untimed for p in parts_b)),
        ]
    lines = [f"| {name} | {value:,} |" if isinstance(value, int) else f"| {name} | {value} |" for name, value in rows]
    return ["| | |", "|---|---:|", *lines]


def percent(part: int, whole: int) -> str:
    """Never rounded up to 100 %."""
    if whole == 0:
        return "–"
    return f"{int(10_000 * part / whole) / 100:.2f} %"


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
    """What was done, by variant (`drop1.pcap`), from the index files."""
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
    text = page(options.smbscope, parts_a, parts_b, part_c, skipped)
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
        f"recall {percent(right, allowed)}" + (f", below {RECALL:.0%} in: {', '.join(low)}" if low else ""),
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
