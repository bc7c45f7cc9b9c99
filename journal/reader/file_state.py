"""The state of a journal file: readable, or the one word, sentence and hint that its card shows."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass

from journal.errors import JournalUnreadable
from journal.models import TaskRow
from journal.reader import dialects
from journal.reader.header import REVISED, read_header, require_readable
from journal.reader.open import BUDGET, read_journal
from journal.reader.rows import columns_of
from journal.reader.stat import JournalPath, check_path

# Every word that `JournalState.kind` and `JournalUnreadable.kind` can be; docs/reference/journals.md explains each.
# The last two tell of a question, not of the file.
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
    "hung",
    "log_unreadable",
    "network_fs",
    "damaged",
    "too_slow",
    "too_big",
)

_META = "SELECT key, value FROM journal_meta WHERE key IN ('uuid', 'agent', 'doubt', 'doubt_boot')"


@dataclass(frozen=True, slots=True)
class JournalState:
    """A file in one word and one sentence; a readable journal has a dialect."""

    path: str
    kind: str  # "ok" or the reason in one word, see docs/reference/journals.md
    sentence: str
    hint: str = ""
    dialect: str | None = None  # "stepkeeper", "minimal", "hash_only"
    uuid: str | None = None
    agent: str | None = None
    user_version: int | None = None
    journal_mode: str | None = None
    doubt: str = ""  # why nothing is sent from a restored or copied file; empty for any other file
    doubt_boot: int = 0  # the boot that noticed it
    highest_revision: int = 0
    highest_boot: int = 0
    sqlite_version: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def readable(self) -> bool:
        return self.kind == "ok"


def inspect(path: str | os.PathLike[str], *, root_is_owner: bool | None = None, budget: float = BUDGET) -> JournalState:
    """The state of the file at a path; never raises for a bad file, and leaves no trace beside a good one.

    `kind` is `ok` or a word of docs/reference/journals.md. Root owns every file unless `root_is_owner` is False.
    """
    name = os.fspath(path)
    try:
        checked = check_path(name, root_is_owner=root_is_owner)
        return read_journal(checked.path, lambda connection: _describe(connection, name, checked), budget=budget)
    except JournalUnreadable as error:
        return JournalState(
            path=name,
            kind=error.kind,
            sentence=error.message,
            hint=error.hint,
            sqlite_version=sqlite3.sqlite_version,
        )


def _describe(connection: sqlite3.Connection, name: str, checked: JournalPath) -> JournalState:
    header = read_header(connection, name)
    foreign, version = require_readable(header, name), header.user_version
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
            warnings=checked.warnings,
        )
    # Every list asks for these columns: a file without them is refused here already, in the words of the list.
    connection.execute(f"SELECT {columns_of(TaskRow)} FROM agent_task LIMIT 0")
    meta = {str(key): str(value) for key, value in connection.execute(_META)}
    newest = [connection.execute(f"SELECT max(revision) FROM {table}").fetchone()[0] for table in REVISED]
    boot = connection.execute("SELECT max(boot) FROM agent_boot").fetchone()[0]
    return JournalState(
        path=name,
        kind="ok",
        sentence=f"A journal of {meta.get('agent') or 'an unnamed agent'}.",
        dialect=dialects.OURS,
        uuid=meta.get("uuid"),
        agent=meta.get("agent"),
        doubt=meta.get("doubt", ""),
        doubt_boot=int(meta["doubt_boot"]) if meta.get("doubt_boot", "").isdecimal() else 0,
        user_version=version,
        # Read as an immutable file a journal cannot say its mode; ours has one.
        journal_mode="wal",
        highest_revision=max((value for value in newest if isinstance(value, int)), default=0),
        highest_boot=boot if isinstance(boot, int) else 0,
        sqlite_version=sqlite3.sqlite_version,
        warnings=checked.warnings,
    )
