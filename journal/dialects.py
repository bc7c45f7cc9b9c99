"""Journals that others made: per dialect, which column stands for which field of a step.

A dialect is one dataclass: each field named like a field of `models.Step` holds the SQL expression that yields it.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from journal import schema

STEP_TABLE = "agent_step_journal"
OURS = "stepkeeper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How to read a step table that is not ours. `needs` are the columns that tell it."""

    name: str
    needs: frozenset[str]
    replayable: bool = True
    reason: str = ""
    task_id: str = "task_id"
    step_index: str = "step_index"
    tool_name: str = "tool_name"
    status: str = "status"
    idempotency_key: str = "NULL"
    arguments_json: str = "NULL"
    args_hash: str = "NULL"
    output_json: str = "NULL"
    created_at: str = "NULL"
    updated_at: str = "NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimal(Dialect):
    """The nine columns of the design's table and nothing else."""

    name: str = "minimal"
    needs: frozenset[str] = frozenset(
        {
            "task_id",
            "step_index",
            "tool_name",
            "idempotency_key",
            "arguments_json",
            "status",
            "output_json",
            "created_at",
            "updated_at",
        }
    )
    idempotency_key: str = "idempotency_key"
    arguments_json: str = "arguments_json"
    output_json: str = "output_json"
    created_at: str = "created_at"
    updated_at: str = "updated_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class HashOnly(Dialect):
    """A hash of the arguments instead of the arguments: shown, never replayable."""

    name: str = "hash_only"
    needs: frozenset[str] = frozenset(
        {"task_id", "step_index", "tool_name", "args_hash", "status", "output", "created_at"}
    )
    replayable: bool = False
    reason: str = "the payload was never stored, only its hash"
    args_hash: str = "args_hash"
    output_json: str = "output"
    created_at: str = "created_at"


# The first whose columns are all there.
FOREIGN: tuple[Dialect, ...] = (Minimal(), HashOnly())
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
            columns_match(self.columns, _ONLY_OURS) and "agent_task" in self.tables
        )

    @property
    def is_newer(self) -> bool:
        return self.is_ours and self.user_version > schema.CURRENT_VERSION

    @property
    def foreign(self) -> Dialect | None:
        """The dialect of somebody else's table; None where no dialect fits or the table is ours."""
        if self.is_ours:
            return None
        return next((dialect for dialect in FOREIGN if columns_match(self.columns, dialect.needs)), None)


def columns_match(present: frozenset[str], needed: frozenset[str]) -> bool:
    """Whether all needed columns are present."""
    return needed <= present


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
