"""What a change to the journal works with: one open transaction."""

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


class Transaction:
    """One open write transaction: SQL, the boot it belongs to, and fresh revisions."""

    __slots__ = ("_connection", "_next", "boot", "newest", "now", "revised")

    def __init__(self, connection: sqlite3.Connection, *, boot: int, next_revision: Callable[[], int]) -> None:
        self._connection = connection
        self._next = next_revision
        self.boot = boot
        # The newest time the journal was written at before; later than `now` only when the clock went back (law 8).
        self.newest = ""
        self.now = clock.now_text()
        self.revised = 0

    def revision(self) -> int:
        """A revision no row of this journal ever had."""
        self.revised = self._next()
        return self.revised

    def execute(self, sql: str, parameters: tuple[Any, ...] | dict[str, Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, parameters)

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
