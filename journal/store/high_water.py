"""The high-water mark beside a journal: which file its last writer wrote, and how far.

A journal that does not fit its mark was restored or copied.

The mark is one block of `<journal>.mark`. It is written after each commit and never synced, so that it costs no fsync:
it may lag behind the journal, but it never runs ahead of what the same start of the machine has committed.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from journal import clock
from journal.models import JournalDoubt

# One sector of a disk: a power cut leaves the mark before or the mark after.
_BYTES = 512
# Of statx(2): the current folder as a start, "give me the time it was made", and where in the answer that time stands.
_AT_FDCWD, _STATX_BTIME, _BTIME_OFFSET = -100, 0x800, 80


@dataclass(frozen=True, slots=True)
class HighWater:
    """How far a journal was written. `synced` is the highest revision that a power cut cannot take back."""

    uuid: str
    file: str
    revision: int
    synced: int
    os_boot_id: str


def mark_path(journal: Path) -> Path:
    """The path of the journal's mark."""
    return journal.with_name(journal.name + ".mark")


def read_mark(journal: Path) -> HighWater | None:
    """The mark beside the journal; None where there is none, or none that can be read."""
    try:
        stored = json.loads(mark_path(journal).read_bytes()[:_BYTES])
        return HighWater(
            str(stored["uuid"]),
            str(stored["file"]),
            int(stored["revision"]),
            int(stored["synced"]),
            str(stored["os_boot_id"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_doubt(
    mark: HighWater | None, *, uuid: str, file: str, known_as: str, revision: int, os_boot_id: str
) -> JournalDoubt | None:
    """Why the file at a journal's path is not the one its last writer left; None where it is. Pure.

    `file` identifies the file as it is now, `known_as` as its last writer knew it: empty before the first one.
    """
    if mark is not None and mark.uuid != uuid:
        return "replaced"
    if (known_as and known_as != file) or (mark is not None and mark.file != file):
        return "copied"
    if mark is None:
        # A file that was moved within its file system is the same file; only its mark stayed behind.
        return None
    # Before a start of the machine a power cut may have taken back what was not synced: that is no older file.
    same_start = bool(os_boot_id) and mark.os_boot_id == os_boot_id
    return "older" if revision < (mark.revision if same_start else mark.synced) else None


def identify_file(path: Path) -> str:
    """Which file the path names: its inode and, where the file system tells, the time it was made.

    The inode alone is not enough: a file system gives the inode of a removed file to the next one.
    """
    return f"{os.stat(path).st_ino}.{_read_birth(path)}"


def _read_birth(path: Path) -> str:
    """When the file was made, to the nanosecond; empty where the C library or the file system does not tell."""
    import ctypes

    answer = ctypes.create_string_buffer(256)
    try:
        failed = ctypes.CDLL(None).statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, answer)
    except AttributeError:
        return ""
    if failed or not struct.unpack_from("I", answer)[0] & _STATX_BTIME:
        return ""
    seconds, nanoseconds = struct.unpack_from("qI", answer, _BTIME_OFFSET)
    return f"{seconds}.{nanoseconds:09}"


class MarkWriter:
    """Keeps one journal's mark, from the first commit of a writer until it closes."""

    def __init__(self, journal: Path, *, uuid: str, file: str) -> None:
        """Make the mark's file, synced and private, where there is none. Raises OSError where that cannot be done."""
        path = mark_path(journal)
        self._fixed = json.dumps({"uuid": uuid, "file": file, "os_boot_id": clock.os_boot_id()})[:-1]
        self._synced = 0
        made = not path.exists()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if made:
            os.pwrite(self._descriptor, b" " * _BYTES, 0)
            os.fsync(self._descriptor)

    def note(self, revision: int, *, synced: bool) -> None:
        """Move the mark up to a committed revision. A kill before this leaves the mark behind the journal."""
        if synced:
            self._synced = revision
        text = f'{self._fixed}, "revision": {revision}, "synced": {self._synced}}}'
        with contextlib.suppress(OSError):
            os.pwrite(self._descriptor, text.encode().ljust(_BYTES), 0)

    def close(self) -> None:
        """Let go of the file; the mark stays."""
        os.close(self._descriptor)
