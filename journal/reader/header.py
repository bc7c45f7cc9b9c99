"""The header of a database: which maker and version its tables are of, before any of its rows is read."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from journal import schema
from journal.errors import JournalUnreadable
from journal.models import Step
from journal.reader import dialects, sqlite_errors
from journal.reader.dialects import STEP_TABLE, Dialect
from journal.reader.rows import columns_of

_ONLY_OURS = frozenset({"effect", "payload_sha256", "revision", "boot"})
_STEP_COLUMNS = frozenset(columns_of(Step).split(", "))
# Every table that readers tail. Each has an index on its revision or, as agent_boot, few rows.
REVISED = (
    "agent_task",
    STEP_TABLE,
    "agent_task_run",
    "agent_step_attempt",
    "agent_evidence",
    "agent_model_call",
    "agent_decision",
    "agent_boot",
)
_READ = (*REVISED, "agent_request", "agent_body", "journal_meta")

_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Header:
    """The maker, the version, and the names of tables and columns."""

    application_id: int
    user_version: int
    columns: frozenset[str]  # of agent_step_journal; empty where there is no such table
    tables: frozenset[str]
    computed: str = ""  # a table that holds no plain cells, and why; empty where all do

    @property
    def is_ours(self) -> bool:
        """Whether a version of Stepkeeper made the file."""
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


def read_header(connection: sqlite3.Connection, name: str) -> Header:
    """The header of an open database. Raises JournalUnreadable(kind="truncated") for a file shorter than it says."""
    try:
        # The first statement: SQLite compares the file's length with its header before it reads anything else.
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.DatabaseError as error:
        if sqlite_errors.primary_code(error) == sqlite3.SQLITE_CORRUPT:
            raise JournalUnreadable(
                f"Journal {sqlite_errors.printable(name)}: the file is shorter than its own header says.",
                kind="truncated",
                hint="Restore it from a backup; what is left of it cannot be read safely.",
            ) from error
        raise
    signs = ", ".join("?" * len(_READ))
    plain = "rootpage > 0 AND substr(sql, 1, 13) = 'CREATE TABLE '"
    named = f"type IN ('table', 'view') AND lower(name) IN ({signs})"
    found = connection.execute(f"SELECT lower(name), type, {plain} FROM sqlite_schema WHERE {named}", _READ)
    kinds = {str(name): (str(kind), bool(is_plain)) for name, kind, is_plain in found}
    # The cells of a view or a virtual table are whatever a function makes of other cells.
    made = [
        f"{name} is a {'view' if kind == 'view' else 'virtual table'}"
        for name, (kind, is_plain) in kinds.items()
        if not is_plain
    ]
    columns: dict[str, list[str]] = {}
    for name in () if made else kinds:
        for column, hidden in connection.execute("SELECT name, hidden FROM pragma_table_xinfo(?)", (name,)):
            columns.setdefault(name, []).append(str(column))
            if hidden:
                made.append(f"{name} has the generated column {sqlite_errors.printable(str(column))[:_LONGEST_NAME]}")
    return Header(
        application_id=int(connection.execute("PRAGMA application_id").fetchone()[0]),
        user_version=int(connection.execute("PRAGMA user_version").fetchone()[0]),
        columns=frozenset(columns.get(STEP_TABLE, ())),
        tables=frozenset(kinds),
        computed=made[0] if made else "",
    )


def require_readable(found: Header, name: str) -> dialects.Dialect | None:
    """The foreign dialect of an open database, None for ours. Raises JournalUnreadable where neither fits."""
    shown = sqlite_errors.printable(name)
    if found.computed:
        # One step of a function in the file may take longer than any budget, and cannot be interrupted.
        raise JournalUnreadable(
            f"Journal {shown}: {found.computed}, and only plain tables without generated columns are read.",
            kind="foreign_tables",
            hint="Copy the rows into a plain table of the same name.",
        )
    if found.is_newer:
        raise JournalUnreadable(
            f"Journal {shown}: schema {found.user_version} is newer than this version of stepkeeper, "
            f"which knows up to {schema.CURRENT_VERSION}.",
            kind="newer",
            hint="Upgrade stepkeeper here; its agent is not affected.",
        )
    # Our tables and their version come in one transaction: no agent opens a file that has them at version 0.
    if found.is_ours and (found.user_version < 0 or (found.user_version == 0 and found.columns)):
        raise JournalUnreadable(
            f"Journal {shown}: schema {found.user_version}, which no version of stepkeeper wrote.",
            kind="damaged",
            hint="Put back a copy of the file. One restored from a dump has lost its version: "
            f"`PRAGMA user_version = {schema.CURRENT_VERSION}` gives it back.",
        )
    if found.foreign is None and not (found.is_ours and found.columns >= _STEP_COLUMNS):
        cause = (
            "agent_step_journal lacks the columns of a journal."
            if found.columns
            else "it has no table agent_step_journal."
        )
        raise JournalUnreadable(
            f"Journal {shown}: {cause}",
            kind="foreign_tables",
            hint="See docs/reference/journals.md for the tables that can be read.",
        )
    return found.foreign
