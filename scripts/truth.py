"""Reads the true contents of a capture without smbscope, as an independent check for accuracy.py.

Reads ordinary pcap files of undamaged TCP/SMB traffic, reassembles the streams and records which packets hold the
header and the end of every SMB message. Also reads the maps that describe the damage to a variant. The code is meant to
be short and plain; it needs neither speed nor robustness, because it only sees undamaged captures.
"""

import csv
import io
import shutil
import struct
import subprocess
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SMB1_MAGIC = b"\xffSMB"
SMB2_MAGIC = b"\xfeSMB"
# Bytes from the start of an SMB header to the end of its message id (MS-CIFS 2.2.3.1, MS-SMB2 2.2.1).
ID_END = {"SMB1": 32, "SMB2": 32}
NBSS_HEADER = 4
ETHERNET_IP_TCP = 14 + 20 + 20


def contents(path: Path) -> bytes:
    """Returns the bytes of a file, decompressed if it is a .zst file."""
    if path.suffix != ".zst":
        return path.read_bytes()
    if not shutil.which("zstd"):
        raise SystemExit("accuracy: the program zstd is needed (Debian: apt-get install zstd)")
    return subprocess.run(["zstd", "-dc", "--long=27", str(path)], check=True, capture_output=True).stdout


def table(path: Path) -> Iterator[dict[str, str]]:
    """Yields the rows of a tab-separated file with a header line."""
    return csv.DictReader(io.StringIO(contents(path).decode()), delimiter="\t")


@dataclass(slots=True)
class Packet:
    """A TCP packet of the capture."""

    number: int
    time_ns: int
    source: tuple[bytes, int]
    target: tuple[bytes, int]
    seq: int
    flags: int
    payload: bytes
    headers: int
    """Bytes before the payload."""


@dataclass(slots=True)
class Message:
    """Packets that hold an SMB message."""

    protocol: str
    message_id: int
    command: int
    is_response: bool
    ports: tuple[int, int]
    """Source and target."""
    first: int
    """Packet with the first byte of its frame."""
    last: int
    """Packet with the last byte of its frame."""
    packets: frozenset[int]
    header: tuple[tuple[int, int], ...]
    """Packets needed to read the message id, with the payload bytes needed from each."""


@dataclass(slots=True)
class Truth:
    """Contents of an undamaged capture."""

    packets: dict[int, Packet]
    records: int
    messages: list[Message] = field(default_factory=list)

    def data_packets(self) -> list[Packet]:
        return [packet for packet in self.packets.values() if packet.payload]


def records(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yields the complete records of a pcap file: number, time, bytes."""
    order, ticks = {
        b"\xd4\xc3\xb2\xa1": ("<", 1000),
        b"\xa1\xb2\xc3\xd4": (">", 1000),
        b"\x4d\x3c\xb2\xa1": ("<", 1),
        b"\xa1\xb2\x3c\x4d": (">", 1),
    }[data[:4]]
    header = struct.Struct(order + "IIII")
    offset, number = 24, 0
    while offset + 16 <= len(data):
        seconds, fraction, captured, _ = header.unpack_from(data, offset)
        offset += 16
        if offset + captured > len(data):
            return
        number += 1
        yield number, seconds * 1_000_000_000 + fraction * ticks, data[offset : offset + captured]
        offset += captured


def tcp_packet(number: int, time_ns: int, frame: bytes) -> Packet | None:
    """Parses an Ethernet frame with IPv4 or IPv6 and TCP. Returns None for anything else."""
    ether_type = int.from_bytes(frame[12:14])
    ip = 14
    if ether_type == 0x0800 and frame[ip + 9] == 6:
        tcp = ip + (frame[ip] & 15) * 4
        end = ip + int.from_bytes(frame[ip + 2 : ip + 4])
        source, target = frame[ip + 12 : ip + 16], frame[ip + 16 : ip + 20]
    elif ether_type == 0x86DD and frame[ip + 6] == 6:
        tcp = ip + 40
        end = tcp + int.from_bytes(frame[ip + 4 : ip + 6])
        source, target = frame[ip + 8 : ip + 24], frame[ip + 24 : ip + 40]
    else:
        return None
    source_port, target_port, seq = struct.unpack_from(">HHI", frame, tcp)
    data = tcp + (frame[tcp + 12] >> 4) * 4
    return Packet(
        number,
        time_ns,
        (source, source_port),
        (target, target_port),
        seq,
        frame[tcp + 13],
        frame[data:end] if end > data else b"",
        data,
    )


def read(path: Path) -> Truth:
    """Reads all SMB messages of an undamaged pcap file."""
    packets: dict[int, Packet] = {}
    number = 0
    for number, time_ns, frame in records(contents(path)):
        packet = tcp_packet(number, time_ns, frame)
        if packet:
            packets[number] = packet
    truth = Truth(packets, number)
    directions: dict[tuple[tuple[bytes, int], tuple[bytes, int]], list[Packet]] = {}
    for packet in packets.values():
        directions.setdefault((packet.source, packet.target), []).append(packet)
    for stream in directions.values():
        # A SYN begins a new stream on the same ports.
        begin = 0
        for index in range(1, len(stream) + 1):
            if index == len(stream) or (stream[index].flags & 2 and stream[index].seq != stream[begin].seq):
                truth.messages += stream_messages(stream[begin:index])
                begin = index
    truth.messages.sort(key=lambda message: (message.last, message.first))
    return truth


def stream_messages(stream: list[Packet]) -> Iterator[Message]:
    """Yields the SMB messages of one direction of a TCP connection up to the first gap."""
    first = stream[0]
    base = (first.seq + 1) if first.flags & 2 else first.seq
    pieces: list[tuple[int, Packet]] = []
    for packet in stream:
        if packet.payload:
            offset = (packet.seq - base + 0x8000_0000) % 0x1_0000_0000 - 0x8000_0000
            pieces.append((offset, packet))
    pieces.sort(key=lambda piece: (piece[0], piece[1].number))
    data = bytearray()
    starts: list[int] = []
    owners: list[Packet] = []
    for offset, packet in pieces:
        if offset > len(data):
            break
        fresh = packet.payload[len(data) - offset :] if offset >= 0 else b""
        if fresh:
            starts.append(len(data))
            owners.append(packet)
            data += fresh

    def owner(position: int) -> int:
        return bisect_right(starts, position) - 1

    def needed(begin: int, end: int) -> tuple[tuple[int, int], ...]:
        parts = []
        for index in range(owner(begin), owner(end - 1) + 1):
            packet = owners[index]
            piece_end = starts[index + 1] if index + 1 < len(starts) else len(data)
            # The new bytes are the tail of the packet's payload.
            parts.append((packet.number, len(packet.payload) - (piece_end - min(end, piece_end))))
        return tuple(parts)

    position = 0
    while position + NBSS_HEADER <= len(data):
        kind = data[position]
        length = int.from_bytes(data[position + 1 : position + 4])
        body, end = position + NBSS_HEADER, position + NBSS_HEADER + length
        if end > len(data):
            return
        if kind == 0 and length:
            held = range(owner(position), owner(end - 1) + 1)
            numbers = frozenset(owners[index].number for index in held)
            header: tuple[tuple[int, int], ...] = needed(position, body)
            member = body
            while True:
                magic = bytes(data[member : member + 4])
                if magic == SMB1_MAGIC:
                    protocol, command = "SMB1", data[member + 4]
                    message_id = int.from_bytes(data[member + 30 : member + 32], "little")
                    is_response = bool(data[member + 9] & 0x80)
                    following = 0
                elif magic == SMB2_MAGIC:
                    protocol = "SMB2"
                    command, following = struct.unpack_from("<H", data, member + 12)[0], 0
                    following = int.from_bytes(data[member + 20 : member + 24], "little")
                    message_id = int.from_bytes(data[member + 24 : member + 32], "little")
                    is_response = bool(data[member + 16] & 1)
                else:
                    break
                header += needed(member, member + ID_END[protocol])
                yield Message(
                    protocol,
                    message_id,
                    command,
                    is_response,
                    (first.source[1], first.target[1]),
                    owners[held[0]].number,
                    owners[held[-1]].number,
                    numbers,
                    header,
                )
                if not following or member + following >= end:
                    break
                member += following
        position = end


@dataclass(slots=True)
class Variant:
    """Fate of each packet of an undamaged parent."""

    new_to_old: dict[int, int]
    tags: dict[int, str]
    """Tag of each packet of the variant: dup, retx, delayed, shift, split0 …"""
    held: dict[int, int]
    """Payload bytes that the variant holds, by packet number in the parent."""
    arrival: dict[int, int]
    """First position of a parent's packet in the variant."""
    same_times: bool
    times: dict[int, int] = field(default_factory=dict)
    """Capture times of the variant's packets, where they were changed."""

    def goes_back(self, first: int, second: int) -> bool:
        """Returns True if the variant has the second packet of the parent before the first."""
        a, b = self.times.get(self.arrival[first]), self.times.get(self.arrival[second])
        return a is not None and b is not None and b < a

    def survives(self, old: int) -> bool:
        return old in self.held

    def has_header(self, message: Message) -> bool:
        return all(self.held.get(packet, -1) >= need for packet, need in message.header)


def variant(parent: Truth, map_path: Path | None, *, snap: int | None, last: int | None, halves: bool) -> Variant:
    """Reads a map file. Without one, keeps packets and order, except for `snap`, `last` and `halves`."""
    new_to_old: dict[int, int] = {}
    tags: dict[int, str] = {}
    if map_path:
        for row in table(map_path):
            new = int(row["new_frame"])
            new_to_old[new] = int(row["orig_frame"])
            if row["what"]:
                tags[new] = row["what"]
    else:
        order = range(1, parent.records + 1)
        if halves:
            # All packets of the client, then all packets of the server. The client opens the connection.
            client = next(packet.source[0] for packet in parent.packets.values() if packet.flags & 0x12 == 2)
            sent = [n for n in order if n in parent.packets and parent.packets[n].source[0] == client]
            order_list = sent + [n for n in order if n not in set(sent)]
        else:
            order_list = list(order)
        new_to_old = {new: old for new, old in enumerate(order_list, 1) if last is None or new <= last}
    held: dict[int, int] = {}
    arrival: dict[int, int] = {}
    for new, old in new_to_old.items():
        arrival.setdefault(old, new)
        packet = parent.packets.get(old)
        length = len(packet.payload) if packet else 0
        if packet and snap is not None:
            length = min(length, max(0, snap - packet.headers))
        held[old] = length
    return Variant(new_to_old, tags, held, arrival, map_path is None)
