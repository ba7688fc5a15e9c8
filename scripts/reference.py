"""Responses with their requests and times according to tshark, from a file or from a run of tshark."""

import io
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import truth
from exchanges import number

# Replaces everything except printable ASCII with question marks.
PRINTABLE = bytes(byte if 32 <= byte < 127 or byte in b"\t\n\r" else ord("?") for byte in range(256))


@dataclass(slots=True)
class Reply:
    """A response according to tshark."""

    frame: int
    stream: str
    protocol: str
    command: int
    message_id: int | None
    response_to: int | None
    time_ns: int | None
    status: int | None

    def describe(self) -> str:
        time = "untimed" if self.time_ns is None else f"{self.time_ns} ns"
        return f"response {self.frame} to {self.response_to}, command 0x{self.command:02x} id {self.message_id}, {time}"


def seconds_to_ns(text: str) -> int | None:
    """Converts exactly, without floating point."""
    if not text:
        return None
    sign = -1 if text.startswith("-") else 1
    whole, _, fraction = text.lstrip("-").partition(".")
    return sign * (int(whole) * 1_000_000_000 + int((fraction + "0" * 9)[:9]))


def read_replies(path: Path) -> list[Reply]:
    return [
        Reply(
            frame=int(row["frame"]),
            stream=row["tcp_stream"],
            protocol="SMB1" if row["proto"] == "smb" else "SMB2",
            command=int(row["cmd"], 0) if row["cmd"] else 0,
            message_id=number(row["mid"]),
            response_to=number(row["response_to"]),
            time_ns=seconds_to_ns(row["time"]),
            status=number(row["status"]),
        )
        for row in truth.table(path)
    ]


def write_replies(path: Path, replies: list[Reply]) -> None:
    """Writes the format of read_replies, compressed."""
    lines = ["frame\ttcp_stream\tproto\tcmd\tmid\tresponse_to\ttime\tstatus\tasync"]
    for reply in replies:
        smb1 = reply.protocol == "SMB1"
        cells = [
            reply.frame,
            reply.stream,
            "smb" if smb1 else "smb2",
            f"0x{reply.command:02x}" if smb1 else reply.command,
            "" if reply.message_id is None else reply.message_id,
            reply.response_to or "",
            "" if reply.time_ns is None else f"{reply.time_ns // 10**9}.{reply.time_ns % 10**9:09}",
            "" if reply.status is None else f"0x{reply.status:08x}",
            "",
        ]
        lines.append("\t".join(str(cell) for cell in cells))
    text = "\n".join(lines) + "\n"
    subprocess.run(["zstd", "-19", "-q", "-f", "-o", str(path)], input=text.encode(), check=True)


class PlainText(io.RawIOBase):
    """Makes tshark's output valid XML: tshark copies packet bytes into PDML unescaped."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def read(self, size: int = -1) -> bytes:
        return self.stream.read(size).translate(PRINTABLE)


def ask_tshark(capture: Path) -> list[Reply]:
    """Runs tshark and returns the replies message by message (PDML keeps the members of compounds apart)."""
    replies = []
    with tempfile.TemporaryDirectory() as directory:
        plain = Path(directory) / "capture"
        plain.write_bytes(truth.contents(capture))
        command = ["tshark", "-r", str(plain), "-Y", "smb.flags.response == 1 or smb2.flags.response == 1"]
        command += ["-T", "pdml", "-J", "frame tcp smb smb2"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout
        for _, element in ElementTree.iterparse(PlainText(process.stdout)):
            if element.tag != "packet":
                continue
            frame = int(shown(element, "frame.number") or 0)
            stream = shown(element, "tcp.stream")
            for proto in element.iter("proto"):
                name = proto.get("name")
                if name not in ("smb", "smb2") or not any(True for _ in proto.iter("field")):
                    continue
                # SMB2 compounds have several protos, or several headers in one proto. Both become one proto per
                # message.
                replies += reply_of(proto, name, frame, stream)
            element.clear()
        process.wait()
    return replies


def shown(element: ElementTree.Element, name: str) -> str:
    found = element.find(f".//field[@name='{name}']")
    return "" if found is None else found.get("show", "")


def reply_of(proto: ElementTree.Element, name: str, frame: int, stream: str) -> list[Reply]:
    message_id = "smb2.msg_id" if name == "smb2" else "smb.mid"
    headers = [f for f in proto.iter("field") if f.find(f"field[@name='{message_id}']") is not None]
    return [
        Reply(
            frame=frame,
            stream=stream,
            protocol="SMB1" if name == "smb" else "SMB2",
            command=int(shown(header, f"{name}.cmd") or "0", 0),
            message_id=number(shown(header, message_id)),
            response_to=number(shown(header, f"{name}.response_to")),
            time_ns=seconds_to_ns(shown(header, f"{name}.time")),
            status=number(shown(header, f"{name}.nt_status")),
        )
        for header in headers
    ]
