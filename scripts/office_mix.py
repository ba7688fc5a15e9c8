#!/usr/bin/env python3
"""Simulates one user of an SMB 3.1.1 share: opens, reads, listings, saves, locks, change notification.

Used by make_demo_captures.sh, once per user and role. The only script that needs the `smbprotocol` package.
If the server allows it, nothing is signed or encrypted, so that the capture is readable.
"""

import argparse
import os
import random
import time
import uuid
from collections.abc import Callable
from typing import Any

from smbprotocol.change_notify import CompletionFilter, FileSystemWatcher
from smbprotocol.connection import Connection, Dialects
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.file_info import (
    FileAttributes,
    FileEndOfFileInformation,
    FileInformationClass,
    FileRenameInformation,
    InfoType,
)
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    DirectoryAccessMask,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    LockFlags,
    Open,
    QueryDirectoryFlags,
    ShareAccess,
    SMB2LockElement,
    SMB2QueryInfoRequest,
    SMB2SetInfoRequest,
)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

READ = FilePipePrinterAccessMask.GENERIC_READ
WRITE = FilePipePrinterAccessMask.GENERIC_WRITE
DELETE = FilePipePrinterAccessMask.DELETE
LIST = DirectoryAccessMask.FILE_LIST_DIRECTORY | DirectoryAccessMask.FILE_READ_ATTRIBUTES
SHARE_ALL = ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE
BLOCK = 65_536


class User:
    """A connection with session and tree, and the operations of an office user."""

    def __init__(self, server: str, name: str, password: str, share: str, rng: random.Random) -> None:
        self.rng = rng
        self.connection = Connection(uuid.UUID(int=rng.getrandbits(128)), server, 445, require_signing=False)
        self.connection.connect(Dialects.SMB_3_1_1)
        self.session = Session(self.connection, name, password, require_encryption=False, auth_protocol="ntlm")
        self.session.connect()
        self.tree = TreeConnect(self.session, rf"\\{server}\{share}")
        # SMB 3.1.1 requires this request to be signed (MS-SMB2 3.3.5.7); the others stay unsigned.
        self.session.signing_required = True
        self.tree.connect(require_secure_negotiate=False)
        self.session.signing_required = False

    def leave(self) -> None:
        self.tree.disconnect()
        self.connection.disconnect(True)

    def pause(self, mean: float) -> None:
        time.sleep(min(self.rng.expovariate(1 / mean), 4 * mean))

    def create(self, handle: Any, access: int, disposition: int, options: int, *, send: bool = True) -> Any:
        return handle.create(
            ImpersonationLevel.Impersonation,
            access,
            FileAttributes.FILE_ATTRIBUTE_NORMAL,
            SHARE_ALL,
            disposition,
            options,
            send=send,
        )

    def open(
        self,
        path: str,
        access: int = READ,
        disposition: int = CreateDisposition.FILE_OPEN,
        options: int = CreateOptions.FILE_NON_DIRECTORY_FILE,
    ) -> Any:
        handle = Open(self.tree, path)
        self.create(handle, access, disposition, options)
        return handle

    def query_message(self, handle: Any, info_class: int, info_type: int, size: int) -> Any:
        query = SMB2QueryInfoRequest()
        query["info_type"] = info_type
        query["file_info_class"] = info_class
        query["output_buffer_length"] = size
        query["file_id"] = handle.file_id
        return query

    def send(self, message: Any) -> None:
        request = self.connection.send(message, self.session.session_id, self.tree.tree_connect_id)
        self.connection.receive(request)

    def stat(self, path: str) -> None:
        """Sends create, query and close as one related compound, like Explorer."""
        handle = Open(self.tree, path)
        access = FilePipePrinterAccessMask.FILE_READ_ATTRIBUTES
        create = self.create(handle, access, CreateDisposition.FILE_OPEN, 0, send=False)
        handle.file_id = b"\xff" * 16
        query = self.query_message(
            handle, FileInformationClass.FILE_NETWORK_OPEN_INFORMATION, InfoType.SMB2_0_INFO_FILE, 56
        )
        close = handle.close(send=False)
        requests = self.connection.send_compound(
            [create[0], query, close[0]],
            self.session.session_id,
            self.tree.tree_connect_id,
            related=True,
        )
        for request in requests:
            try:
                self.connection.receive(request)
            except SMBResponseException:
                pass  # the file does not exist, as usual when a program checks before a save

    def list(self, path: str) -> None:
        handle = self.open(path, LIST, options=CreateOptions.FILE_DIRECTORY_FILE)
        flags = QueryDirectoryFlags.SMB2_RESTART_SCANS
        while True:
            try:
                handle.query_directory(
                    "*", FileInformationClass.FILE_ID_BOTH_DIRECTORY_INFORMATION, flags, max_output=BLOCK
                )
            except SMBResponseException:
                break  # STATUS_NO_MORE_FILES
            flags = 0
        handle.close()

    def read(self, path: str, block: int = BLOCK) -> None:
        handle = self.open(path)
        for offset in range(0, max(1, handle.end_of_file), block):
            handle.read(offset, min(block, max(1, handle.end_of_file - offset)))
        handle.close()

    def write(self, path: str, size: int, block: int = BLOCK) -> None:
        handle = self.open(path, READ | WRITE | DELETE, CreateDisposition.FILE_OVERWRITE_IF)
        text = (f"{path} ".encode() * (block // 4))[:block]
        for offset in range(0, size, block):
            handle.write(text[: min(block, size - offset)], offset)
        handle.flush()
        end = FileEndOfFileInformation()
        end["end_of_file"] = size
        self.set_info(handle, end)
        handle.close(True)

    def set_info(self, handle: Any, information: Any) -> None:
        message = SMB2SetInfoRequest()
        message["info_type"] = information.INFO_TYPE
        message["file_info_class"] = information.INFO_CLASS
        message["file_id"] = handle.file_id
        message["buffer"] = information
        self.send(message)

    def rename(self, old: str, new: str) -> None:
        handle = self.open(old, DELETE | READ)
        target = FileRenameInformation()
        target["replace_if_exists"] = True
        target["file_name"] = new.encode("utf-16-le")
        self.set_info(handle, target)
        handle.close()

    def delete(self, path: str) -> None:
        options = CreateOptions.FILE_NON_DIRECTORY_FILE | CreateOptions.FILE_DELETE_ON_CLOSE
        self.open(path, DELETE, options=options).close()

    def absent(self, path: str) -> None:
        try:
            self.open(path).close()
        except SMBResponseException:
            pass

    def lock(self, handle: Any, offset: int, length: int, flags: int) -> None:
        element = SMB2LockElement()
        element["offset"] = offset
        element["length"] = length
        element["flags"] = flags
        handle.lock([element])


def author(user: User, number: int) -> None:
    """Word processor: opens a document, saves it to a temporary file and renames that over the original."""
    folder = rf"reports\{user.rng.choice(('spring', 'summer', 'autumn'))}"
    document = rf"{folder}\report{user.rng.randrange(4)}.docx"
    user.list(folder)
    user.stat(document)
    user.read(document)
    user.absent(rf"{folder}\~$report.docx")
    user.write(rf"{folder}\~$owner{number}.docx", 162)
    user.pause(0.4)
    temporary = rf"{folder}\~wrd{number:04d}.tmp"
    user.stat(temporary)
    user.write(temporary, user.rng.randrange(20_000, 150_000))
    user.rename(temporary, document)
    user.delete(rf"{folder}\~$owner{number}.docx")
    user.pause(0.5)


def clerk(user: User, number: int) -> None:
    """Shared table: reads and writes records under byte-range locks."""
    handle = user.open(r"accounts\ledger.mdb", READ | WRITE)
    for _ in range(user.rng.randrange(4, 10)):
        record = user.rng.randrange(64) * 4096
        user.lock(
            handle, record, 4096, LockFlags.SMB2_LOCKFLAG_EXCLUSIVE_LOCK | LockFlags.SMB2_LOCKFLAG_FAIL_IMMEDIATELY
        )
        handle.read(record, 4096)
        if user.rng.random() < 0.5:
            handle.write(f"entry {number} ".encode() * 40, record)
        user.lock(handle, record, 4096, LockFlags.SMB2_LOCKFLAG_UNLOCK)
        user.pause(0.05)
    handle.close()
    user.pause(0.4)


def browser(user: User, number: int) -> None:
    """File manager: watches a folder, lists it, queries each file and reads the beginning of some."""
    folder = rf"reports\{('spring', 'summer', 'autumn')[number % 3]}"
    directory = user.open(folder, LIST, options=CreateOptions.FILE_DIRECTORY_FILE)
    watcher = FileSystemWatcher(directory)
    watcher.start(CompletionFilter.FILE_NOTIFY_CHANGE_FILE_NAME | CompletionFilter.FILE_NOTIFY_CHANGE_LAST_WRITE)
    user.list("")
    user.list(folder)
    for index in range(4):
        user.stat(rf"{folder}\report{index}.docx")
    user.absent(rf"{folder}\desktop.ini")
    user.read(rf"pictures\photo{user.rng.randrange(6)}.jpg")
    user.send(user.query_message(directory, 7, InfoType.SMB2_0_INFO_FILESYSTEM, 32))
    # Wait up to 2 s for another user's save, then leave the folder.
    watcher.response_event.wait(2.0)
    if not watcher.result:
        watcher.cancel()
        watcher.wait()
    directory.close()
    user.pause(0.3)


ROLES: dict[str, Callable[[User, int], None]] = {"author": author, "clerk": clerk, "browser": browser}


def prepare(user: User) -> None:
    """Creates the folders and files that all users share."""
    for folder in (
        "reports",
        "accounts",
        "pictures",
        *(rf"reports\{season}" for season in ("spring", "summer", "autumn")),
    ):
        options = CreateOptions.FILE_DIRECTORY_FILE
        user.open(folder, LIST, CreateDisposition.FILE_OPEN_IF, options).close()
    for season in ("spring", "summer", "autumn"):
        for index in range(4):
            user.write(rf"reports\{season}\report{index}.docx", user.rng.randrange(20_000, 120_000))
    for index in range(6):
        user.write(rf"pictures\photo{index}.jpg", user.rng.randrange(60_000, 250_000))
    user.write(r"accounts\ledger.mdb", 64 * 4096)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--server", required=True)
    parser.add_argument("--share", default="office")
    parser.add_argument("--user", required=True, help="its password is taken from SMB_PASSWORD")
    parser.add_argument("--role", choices=[*ROLES, "prepare"], required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--duration", type=float, default=20.0, help="seconds")
    options = parser.parse_args()

    rng = random.Random(f"{options.seed} {options.user}")
    user = User(options.server, options.user, os.environ["SMB_PASSWORD"], options.share, rng)
    if options.role == "prepare":
        prepare(user)
    else:
        end = time.monotonic() + options.duration
        number = 0
        while time.monotonic() < end:
            number += 1
            ROLES[options.role](user, number)
    user.leave()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
