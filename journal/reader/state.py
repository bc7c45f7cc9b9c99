"""What a journal file is: readable, or the one word, sentence and hint that its card shows."""

from __future__ import annotations

import os
import sqlite3

from journal import schema
from journal.errors import JournalUnreadable
from journal.journal_state import JournalState
from journal.reader import connect, dialects, faults, rows
from journal.reader.files import Looked, look
from journal.reader.header import Header, header

# Every table that readers tail. Each has an index on its revision or, as agent_boot, few rows.
REVISED = (
    "agent_task",
    "agent_step_journal",
    "agent_task_run",
    "agent_step_attempt",
    "agent_evidence",
    "agent_model_call",
    "agent_decision",
    "agent_boot",
)

# Every value of `JournalState.kind` and `JournalUnreadable.kind`; docs/reference/journals.md has a heading for each.
# The last two are a question's fault, not the file's.
KINDS = (
    "ok",
    "missing",
    "empty",
    "truncated",
    "not_a_database",
    "folder",
    "not_a_file",
    "unreadable",
    "other_owner",
    "newer",
    "foreign_tables",
    "busy",
    "log_unreadable",
    "network_fs",
    "damaged",
    "too_slow",
    "too_big",
)
_STEP_COLUMNS = frozenset(rows.STEP.split(", "))


def inspect(
    path: str | os.PathLike[str], *, root_is_owner: bool | None = None, budget: float = connect.BUDGET
) -> JournalState:
    """Say what a path holds; never raises for a bad file, and leaves no trace beside a good one.

    `kind` is a heading of docs/reference/journals.md. Root owns every file unless `root_is_owner` is False.
    """
    name = os.fspath(path)
    try:
        looked = look(name, root_is_owner=root_is_owner)
        return connect.read(looked.path, lambda connection: _describe(connection, name, looked), budget=budget)
    except JournalUnreadable as error:
        return JournalState(
            path=name,
            kind=error.kind,
            sentence=error.message,
            hint=error.hint,
            sqlite_version=sqlite3.sqlite_version,
        )


def require(found: Header, name: str) -> dialects.Dialect | None:
    """The foreign dialect of an open database, None for ours. Raises JournalUnreadable where neither fits."""
    shown = faults.shown(name)
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


def header_of(connection: sqlite3.Connection, name: str) -> Header:
    """The header of an open database. Raises JournalUnreadable(kind="truncated") for a file shorter than it says."""
    try:
        # The first statement: SQLite compares the file's length with its header before it reads anything else.
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.DatabaseError as error:
        if faults.primary(error) == sqlite3.SQLITE_CORRUPT:
            raise JournalUnreadable(
                f"Journal {faults.shown(name)}: the file is shorter than its own header says.",
                kind="truncated",
                hint="Restore it from a backup; what is left of it cannot be read safely.",
            ) from error
        raise
    return header(connection)


def _describe(connection: sqlite3.Connection, name: str, looked: Looked) -> JournalState:
    foreign = require(header_of(connection, name), name)
    version = schema.read_version(connection)
    mode = str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    if foreign is not None:
        return JournalState(
            path=name,
            kind="ok",
            sentence=f"A journal of another maker, dialect {foreign.name}.",
            hint="" if foreign.replayable else f"Its steps can never be replayed: {foreign.reason}.",
            dialect=foreign.name,
            user_version=version,
            journal_mode=mode,
            sqlite_version=sqlite3.sqlite_version,
            warnings=looked.warnings,
        )
    # What every list asks for: a file without it is refused here already, in the words the list would have.
    connection.execute(f"SELECT {rows.TASK} FROM agent_task LIMIT 0")
    meta = {str(key): str(value) for key, value in connection.execute("SELECT key, value FROM journal_meta LIMIT 50")}
    newest = [connection.execute(f"SELECT max(revision) FROM {table}").fetchone()[0] for table in REVISED]
    boot = connection.execute("SELECT max(boot) FROM agent_boot").fetchone()[0]
    return JournalState(
        path=name,
        kind="ok",
        sentence=f"A journal of {meta.get('agent') or 'an unnamed agent'}.",
        dialect=dialects.OURS,
        uuid=meta.get("uuid"),
        agent=meta.get("agent"),
        user_version=version,
        # Read as an immutable file a journal cannot say its mode; ours has one.
        journal_mode="wal",
        highest_revision=max((value for value in newest if isinstance(value, int)), default=0),
        highest_boot=boot if isinstance(boot, int) else 0,
        sqlite_version=sqlite3.sqlite_version,
        warnings=looked.warnings,
    )
