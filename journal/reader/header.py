"""What a database says about itself before any of its rows is read."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from journal import schema
from journal.reader import dialects
from journal.reader.dialects import STEP_TABLE, Dialect

_ONLY_OURS = frozenset({"effect", "payload_sha256", "revision", "boot"})


@dataclass(frozen=True, slots=True)
class Header:
    """What a database says about itself before any of its rows is read."""

    application_id: int
    user_version: int
    columns: frozenset[str]  # of agent_step_journal; empty where there is no such table
    tables: frozenset[str]

    @property
    def is_ours(self) -> bool:
        """Whether stepkeeper made the file, whatever its version."""
        return self.application_id == schema.APPLICATION_ID or (
            self.columns >= _ONLY_OURS and "agent_task" in self.tables
        )

    @property
    def is_newer(self) -> bool:
        return self.is_ours and self.user_version > schema.CURRENT_VERSION

    @property
    def foreign(self) -> Dialect | None:
        """The dialect of somebody else's table; None where no dialect fits or the table is ours."""
        if self.is_ours:
            return None
        return dialects.of(self.columns)


def header(connection: sqlite3.Connection) -> Header:
    """Read a database's header, the names of its tables and of the step table's columns."""
    return Header(
        application_id=int(connection.execute("PRAGMA application_id").fetchone()[0]),
        user_version=int(connection.execute("PRAGMA user_version").fetchone()[0]),
        columns=frozenset(
            str(row[0]) for row in connection.execute("SELECT name FROM pragma_table_xinfo(?)", (STEP_TABLE,))
        ),
        tables=frozenset(
            str(row[0]) for row in connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
        ),
    )
