"""The one way into a journal: open read-only, run one short piece of work, close.

No connection outlives `read_journal`. An idle journal is read as an immutable file, which takes no lock and leaves no
file beside it. Equal stats before and after prove that it stayed idle.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from journal.errors import JournalUnreadable
from journal.reader import sqlite_errors
from journal.reader.untrusted_row import decode_text

T = TypeVar("T")
BUSY_TIMEOUT = 0.25
# A page waits for one query this long; the fleet's sweeps pass more.
BUDGET = 0.5
# Longer cells are refused by SQLite itself in every ordinary query and read piece by piece instead.
CELL_LIMIT = 1_000_000
_OPS_BETWEEN_LOOKS_AT_THE_CLOCK = 2_000
_PAUSES = (0.002, 0.01, 0.03)
# Kernels before 6.13 stamp files at clock ticks: two writes within one tick are told apart only after it has passed.
_TICK_NS = 10_000_000


def make_uri(path: str, *, immutable: bool) -> str:
    """The read-only URI of an absolute path; any name, any bytes."""
    name = quote(b"/" + os.fsencode(path).lstrip(b"/"))
    return f"file://{name}?mode=ro{'&immutable=1' if immutable else ''}"


Stamp = tuple[int, int, int, int] | None


# The files that SQLite opens beside a database.
_SIDECARS = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Sidecars:
    """The file and its two logs at one instant.

    `odd` is the ending of the name, the file's own or one beside it, under which something else than a file lies.
    """

    main: Stamp
    wal: Stamp
    rollback: Stamp
    odd: str | None = None

    @classmethod
    def of(cls, path: str) -> Sidecars:
        found = {end: _lstat(path + end) for end in ("", *_SIDECARS)}
        odd = (end for end, one in found.items() if one is not None and not stat.S_ISREG(one.st_mode))
        return cls(_stamp(found[""]), _stamp(found["-wal"]), _stamp(found["-journal"]), next(odd, None))

    @property
    def has_log(self) -> bool:
        return self.wal is not None and self.wal[2] > 0

    @property
    def idle(self) -> bool:
        if self.main is None or self.has_log or self.rollback is not None:
            return False
        return abs(time.time_ns() - self.main[3]) > _TICK_NS


def _lstat(path: str) -> os.stat_result | None:
    try:
        # A link beside a journal could lead anywhere: it is looked at itself.
        return os.lstat(path)
    except (OSError, ValueError):
        return None


def _stamp(found: os.stat_result | None) -> Stamp:
    """Device, inode, size and mtime of a file; None where there is none."""
    return None if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def read_journal(path: str, work: Callable[[sqlite3.Connection], T], *, budget: float = BUDGET) -> T:
    """Run `work` on a read-only connection to `path` (absolute, free of links) and close it.

    Raises JournalUnreadable, its `kind` naming the reason, for whatever SQLite reports.
    """
    deadline = time.monotonic() + budget
    for pause in (*_PAUSES, None):
        before = Sidecars.of(path)
        if pause is not None and not before.has_log and not before.idle:
            time.sleep(pause)
            before = Sidecars.of(path)
        if before.odd is not None:
            # Opening a named pipe waits for ever, and a link leads out of the folders that may be read.
            raise JournalUnreadable(
                f"Journal {sqlite_errors.printable(path)}: {sqlite_errors.printable(path + before.odd)} is not a "
                "regular file, so SQLite may not open it.",
                kind="not_a_file",
                hint="Stop the agent, find out who put it there, and move it away.",
            )
        immutable = not before.has_log and before.idle
        if not immutable and not before.has_log and pause is not None:
            continue
        try:
            result = _once(path, work, immutable=immutable, deadline=deadline)
        except sqlite3.Error as error:
            if _changed(before, path, immutable=immutable) and pause is not None:
                time.sleep(pause)
                continue
            raise sqlite_errors.explain_error(error, path, has_log=before.has_log) from error
        if not _changed(before, path, immutable=immutable):
            return result
        if pause is not None:
            time.sleep(pause)
    raise JournalUnreadable(
        f"Journal {sqlite_errors.printable(path)}: it changed each time it was read.",
        kind="busy",
        hint="Try again in a moment.",
    )


def _changed(before: Sidecars, path: str, *, immutable: bool) -> bool:
    after = Sidecars.of(path)
    if immutable:
        return after != before
    # A live journal grows while it is read; only another file under the same name spoils what was read.
    return before.main is None or after.main is None or after.main[:2] != before.main[:2]


def _once(path: str, work: Callable[[sqlite3.Connection], T], *, immutable: bool, deadline: float) -> T:
    connection = sqlite3.connect(
        make_uri(path, immutable=immutable), uri=True, timeout=BUSY_TIMEOUT, isolation_level=None, cached_statements=0
    )
    with closing(connection):
        connection.text_factory = decode_text
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, CELL_LIMIT)
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _OPS_BETWEEN_LOOKS_AT_THE_CLOCK)
        # One snapshot for all statements of the work; ended by close.
        connection.execute("BEGIN")
        return work(connection)
