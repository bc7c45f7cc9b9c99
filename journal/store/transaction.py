"""One open write transaction, and the newest time in the journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from journal import clock

_TABLES_WITH_REVISIONS = (
    "agent_step_journal",
    "agent_task",
    "agent_step_attempt",
    "agent_task_run",
    "agent_evidence",
    "agent_model_call",
    "agent_decision",
    "agent_boot",
)

_KEEP_TIME = "INSERT OR REPLACE INTO journal_meta (key, value) VALUES ('newest_time', ?)"


def highest_revision(connection: sqlite3.Connection) -> int:
    """The highest revision that stands in a row; 0 in a new journal."""
    tables = " UNION ALL ".join(f"SELECT max(revision) AS r FROM {table}" for table in _TABLES_WITH_REVISIONS)
    return int(connection.execute(f"SELECT coalesce(max(r), 0) FROM ({tables})").fetchone()[0])


class Transaction:
    """One open write transaction: SQL, the boot it belongs to, and fresh revisions."""

    __slots__ = ("_connection", "_given", "_next", "boot", "newest", "now", "revised")

    def __init__(self, connection: sqlite3.Connection, *, boot: int, next_revision: Callable[[], int]) -> None:
        self._connection = connection
        self._next = next_revision
        self.boot = boot
        # The newest stored time. It is later than `now` only if the clock went back (law 8).
        self.newest = ""
        self.now = clock.now_text()
        self._given = -1
        # The newest revision that stands in a row.
        self.revised = 0

    def revision(self) -> int:
        """A revision no row of this journal ever had."""
        self._given = self._next()
        return self._given

    def execute(self, sql: str, parameters: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        cursor = self._connection.execute(sql, parameters)
        if cursor.rowcount > 0 and self._given in parameters:
            # A revision that was given out for a change of no row is in no row.
            self.revised = self._given
        return cursor

    def highest_revision(self) -> int:
        return highest_revision(self._connection)

    def one(self, sql: str, parameters: tuple[Any, ...] = ()) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._connection.execute(sql, parameters).fetchone()
        return row

    def all(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[sqlite3.Row]:
        return self._connection.execute(sql, parameters).fetchall()

    def is_committed(self, connection: sqlite3.Connection) -> bool:
        """Whether what this transaction wrote last is in the journal that `connection` sees."""
        if not self.revised:
            return False
        return any(
            connection.execute(f"SELECT 1 FROM {table} WHERE revision = ?", (self.revised,)).fetchone()
            for table in _TABLES_WITH_REVISIONS
        )


class ClockHighWater:
    """The newest time in the journal, even if the clock went back (law 8).

    One writer's view: the time it found on disk, then the times it wrote itself.
    """

    __slots__ = ("_kept", "_time")

    def __init__(self) -> None:
        self._time: str | None = None
        self._kept = ""

    def time(self, tx: Transaction) -> str:
        """The newest time before this transaction; empty for a new journal."""
        if self._time is None:
            self._time = _read_newest(tx)
        return self._time

    def keep(self, tx: Transaction) -> None:
        """Store the newest time beside rows that this transaction writes under an earlier one."""
        if tx.now < tx.newest and tx.newest != self._kept:
            tx.execute(_KEEP_TIME, (tx.newest,))

    def committed(self, tx: Transaction) -> None:
        """Note the times that the committed transaction wrote."""
        self._time = max(tx.newest, tx.now)
        if tx.now < tx.newest:
            self._kept = tx.newest


def note_newest(tx: Transaction) -> None:
    """Keep the time of a change that does not touch its row's own time, which says when the step ended."""
    tx.execute(_KEEP_TIME, (max(tx.newest, tx.now),))


def _read_newest(tx: Transaction) -> str:
    # The rows written last carry the newest time. Where they were written under an earlier time, or keep a time of
    # their own, `keep` or `note_newest` stored it.
    row = tx.one(
        "SELECT max(t) AS newest FROM (SELECT max(started_at) AS t FROM agent_boot"
        " UNION ALL SELECT max(ended_at) FROM agent_boot"
        " UNION ALL SELECT value FROM journal_meta WHERE key = 'newest_time'"
        " UNION ALL SELECT * FROM (SELECT updated_at FROM agent_step_journal ORDER BY revision DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT coalesce(ended_at, started_at) FROM agent_step_attempt"
        " ORDER BY revision DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT asked_at FROM agent_evidence ORDER BY revision DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT updated_at FROM agent_task ORDER BY revision DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT coalesce(ended_at, started_at) FROM agent_task_run"
        " ORDER BY revision DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT coalesce(ended_at, started_at) FROM agent_model_call"
        " ORDER BY revision DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT applied_at FROM agent_decision ORDER BY revision DESC LIMIT 1))"
    )
    return "" if row is None or row["newest"] is None else str(row["newest"])
