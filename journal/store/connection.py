"""The writer's SQLite connection: it sets the pragmas that durability needs and checks each one."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from journal import schema, writer_lock
from journal.errors import JournalFailed, JournalUnreadable

NORMAL, FULL = 1, 2
_PRAGMAS: dict[str, str | int] = {
    "journal_mode": "wal",
    "wal_autocheckpoint": 500,
    "journal_size_limit": 4 * 1024 * 1024,
    "synchronous": FULL,
}
# A commit takes the log up in passing, but only while nobody reads. Past this length it waits for the readers, each of
# which may take half a second; where one takes longer, it lets the log grow by a step before it waits again.
LONGEST_LOG = 6 * 1024 * 1024
_LOG_STEP = 1024 * 1024
_BUSY_SECONDS = 10.0
# SQLite's errors for a full or read-only volume, a missing permission or memory. Other errors are the file's fault.
_PASSING = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
)
# These I/O errors mean that the file cannot be read.
_UNREAD = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)
_READERS_MILLISECONDS = 1000


def refuse_network(path: Path) -> None:
    """Raise JournalUnreadable where the journal would stand on a file system whose locks cannot be trusted."""
    kind = writer_lock.find_filesystem(os.path.realpath(path.parent))
    if writer_lock.is_network_filesystem(kind):
        raise JournalUnreadable(
            f"Journal {path.name}: it would stand on {kind}, where SQLite's locks cannot be trusted.",
            kind="network_fs",
            hint="Give the journal a path on a local disk.",
        )


def connect_writer(path: Path, *, may_create: bool) -> sqlite3.Connection:
    """Open the journal for writing, synchronous=FULL; with `may_create` an empty one is made, private from the start.

    Raises JournalUnreadable for a file that is missing or not ours, which is left as it was, JournalFailed where the
    file system cannot keep a pragma's promise, sqlite3.DatabaseError.
    """
    size = _size(path)
    # The file is empty or missing: its agent has not written, or was killed before the first byte.
    fresh = not size
    if fresh and not may_create:
        what, kind = ("there is no such file", "missing") if size is None else ("it is empty", "empty")
        raise JournalUnreadable(f"Journal {path.name}: {what}.", kind=kind, hint="Its agent makes it.")
    if size is None:
        # No connection has the file open yet, so closing this descriptor drops no lock.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    try:
        if fresh:
            connection.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")
        # Before any PRAGMA that would change somebody else's database.
        schema.check_schema(connection)
        _set_pragmas(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def find_inode(path: Path) -> int | None:
    """Which file the path names now; None where there is none."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def explain_refusal(path: Path, error: sqlite3.Error | OSError) -> JournalUnreadable:
    """Why a writer could not open or write the journal: damage, or a state of the volume that passes."""
    if _is_damage(error):
        return JournalUnreadable(
            f"Journal {path.name}: {error}.", kind="damaged", hint="Run `python -m journal check` on it."
        )
    cause = error.strerror if isinstance(error, OSError) else error
    return JournalUnreadable(
        f"Journal {path.name}: it cannot be written: {cause}.",
        kind="unwritable",
        hint="Free disk space, or let this user write the file and its folder, then start again: nothing was lost.",
    )


def _is_damage(error: sqlite3.Error | OSError) -> bool:
    if isinstance(error, OSError):
        return False
    code = int(getattr(error, "sqlite_errorcode", 0))
    return code in _UNREAD or code & 0xFF not in _PASSING


def require_same(path: Path, expected: int | None) -> None:
    """Raise JournalFailed where the path names no file any more, or another one than `expected`."""
    found = find_inode(path)
    if found != expected:
        what = "was removed" if found is None else "was replaced by another file"
        raise JournalFailed(
            f"Journal {path.name}: the file {what} while this process wrote to it.",
            hint="Put it back, or start the agent again with a journal it may trust.",
        )


def shorten_log(connection: sqlite3.Connection, path: Path, *, limit: int) -> int:
    """After a commit: empty a log longer than `limit`, waiting for its readers. Returns the limit for the next time."""
    try:
        size = os.stat(f"{path}-wal").st_size
    except OSError:
        return limit
    if size <= limit:
        return limit
    # The commit has happened. An error here will meet the next commit.
    with contextlib.suppress(sqlite3.Error):
        connection.execute(f"PRAGMA busy_timeout = {_READERS_MILLISECONDS}")
        try:
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000:.0f}")
        if not busy:
            return LONGEST_LOG
    return size + _LOG_STEP


def _set_pragmas(connection: sqlite3.Connection, path: Path) -> None:
    for name, value in _PRAGMAS.items():
        connection.execute(f"PRAGMA {name} = {value}").fetchall()
        found = connection.execute(f"PRAGMA {name}").fetchone()[0]
        if found != value:
            raise JournalFailed(
                f"Journal {path.name}: PRAGMA {name} is {found!r}, not {value!r}.",
                hint="The journal needs a local file system with shared memory (WAL).",
            )
