"""Messages to a journal's writer from every other process.

One message is one file in `<journal>.inbox/` (0700): written, synced, renamed into place. The writer applies each
once, in a transaction with the message's id, then unlinks it: a kill between the two applies nothing twice.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from journal import clock
from journal.errors import StepkeeperError, UsageError

_log = logging.getLogger("journal")

KINDS = ("submit", "decision", "status", "evidence", "cancel")
# No sender of ours writes a larger message, so it is not read.
MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Message:
    """One message file. `body` is None where the file could not be read as a message; `problem` says why."""

    path: Path
    message_id: str
    kind: str
    body: dict[str, Any] | None
    problem: str = ""


def inbox_path(journal: Path) -> Path:
    """The folder of the journal's messages."""
    # Links are followed, so that two names of one journal have one inbox.
    real = Path(os.path.realpath(journal))
    return real.with_name(real.name + ".inbox")


def post_message(journal: Path | str, message: dict[str, Any]) -> str:
    """Leave a message for the writer; it is on disk when this returns. Returns its id.

    A message that brings its own `message_id` may be posted twice: it is applied once. Raises UsageError for what the
    writer would refuse unread, and StepkeeperError where the file cannot be written.
    """
    kind = message.get("kind")
    if kind not in KINDS:
        raise UsageError(f"Message kind {kind!r}: not one of {', '.join(KINDS)}.")
    message_id = str(message.get("message_id") or os.urandom(16).hex())
    if not message_id.replace("-", "").isalnum() or len(message_id) > 64:
        raise UsageError(f"Message id {message_id!r}: letters, digits and '-' only, at most 64.")
    body = {"created_at": clock.now_text(), **message, "message_id": message_id}
    data = json.dumps(body, sort_keys=True, allow_nan=False).encode()
    if len(data) > MAX_BYTES:
        raise UsageError(f"Message: {len(data)} bytes are more than the {MAX_BYTES} that its reader takes.")
    folder = inbox_path(Path(journal))
    # The time in front keeps the order of arrival. With the id behind it, a second posting has the same name.
    name = f"{body['created_at'].replace(':', '')}-{message_id}.json"
    try:
        _make(folder)
        _write_synced(folder, name, data)
    except OSError as error:
        raise StepkeeperError(
            f"Inbox {folder}: the message could not be written: {error.strerror}.",
            hint="Its path must name a folder, or nothing.",
        ) from error
    return message_id


def list_messages(journal: Path | str) -> list[Message]:
    """The messages that wait, oldest first. A file that is no message is returned with its problem, never raised.

    What cannot be opened now (no descriptor is free, a permission, the disk) stays where it is for the next look.
    """
    folder = inbox_path(Path(journal))
    try:
        names = sorted(name for name in _list_folder(folder) if name.endswith(".json"))
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        # Set aside like any other, it makes room for the folder. A link is no folder of this journal's.
        return [Message(folder, "", "", None, "is not a folder")]
    except OSError as error:
        _unread(folder, str(error.strerror))
        return []
    return [message for name in names if (message := _read(folder / name)) is not None]


def remove_message(message: Message) -> None:
    """Unlink an applied message; harmless when it is gone."""
    message.path.unlink(missing_ok=True)


def set_message_aside(message: Message) -> None:
    """Set a file aside that is no message, under a new name that no reader takes for a message."""
    aside = message.path.with_suffix(".refused")
    if os.path.lexists(aside):
        aside = message.path.with_suffix(f".{os.urandom(8).hex()}.refused")
    # A file that cannot be moved is refused again at the next look. No other message waits for it.
    with contextlib.suppress(OSError):
        message.path.rename(aside)


def _read(path: Path) -> Message | None:
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            return Message(path, "", "", None, "is not a file")
        if found.st_size > MAX_BYTES:
            return Message(path, "", "", None, f"is larger than {MAX_BYTES} bytes")
        # A pipe that takes the file's place now is not waited for, and a link is not followed.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            body = json.loads(file.read(MAX_BYTES + 1))
        if not isinstance(body["message_id"], str) or not body["message_id"]:
            return Message(path, "", "", None, "has no message id")
        return Message(path, body["message_id"], str(body["kind"]), body)
    except FileNotFoundError:
        return None
    except OSError as error:
        # The message could not be read. A refusal would lose a decision whose sender was told that it is on disk.
        _unread(path, str(error.strerror))
        return None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return Message(path, "", "", None, f"is not a message: {type(error).__name__}")


def _list_folder(folder: Path) -> list[str]:
    descriptor = _open_folder(folder)
    try:
        return os.listdir(descriptor)
    finally:
        os.close(descriptor)


def _open_folder(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)


@functools.lru_cache(maxsize=1000)
def _unread(path: Path, why: str) -> None:
    # One warning for each file: a writer looks twice a second.
    _log.warning("message %s: it cannot be read now: %s; it stays and is looked at again", path.name, why)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return
    _sync_folder(folder.parent)


def _write_synced(folder: Path, name: str, data: bytes) -> None:
    temporary = f".{name}.{os.urandom(8).hex()}"
    # Every step goes through the one folder that was opened: a link put in its place meanwhile leads nowhere.
    inside = _open_folder(folder)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=inside)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        # A kill before the rename leaves only a hidden file that no writer reads.
        os.rename(temporary, name, src_dir_fd=inside, dst_dir_fd=inside)
        os.fsync(inside)
    finally:
        os.close(inside)


def _sync_folder(folder: Path) -> None:
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
