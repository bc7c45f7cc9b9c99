"""The journal's tables and their forward-only migrations, by `PRAGMA user_version`."""

from __future__ import annotations

import sqlite3
import uuid
from importlib import resources

from journal import clock
from journal.errors import JournalUnreadable

# PRAGMA application_id "Stpk": tells our files from other SQLite files of the same tables.
APPLICATION_ID = 0x5374706B
PAGE_SIZE = 8192

MIGRATIONS: tuple[str, ...] = (resources.files(__package__).joinpath("schema.sql").read_text("utf-8"),)
CURRENT_VERSION = len(MIGRATIONS)


def read_version(connection: sqlite3.Connection) -> int:
    """The schema version the file states."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate_schema(connection: sqlite3.Connection, *, agent: str | None) -> None:
    """Bring an empty or older journal to the current version, each version in one transaction.

    `agent` None is a visitor, who never makes the first version: that names the agent. Raises JournalUnreadable for
    a visitor's empty journal, for a newer one, and for a database that already holds somebody else's tables.
    """
    check_schema(connection)
    version = read_version(connection)
    if version == 0 and agent is None:
        raise JournalUnreadable("Journal: it has no tables yet.", kind="empty", hint="Its agent makes them.")
    for number in range(version, CURRENT_VERSION):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in MIGRATIONS[number].split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            if number == 0 and agent is not None:
                _describe(connection, agent)
            # A kill before this commit leaves the version before it, whole.
            connection.execute(f"PRAGMA user_version = {number + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def check_schema(connection: sqlite3.Connection) -> None:
    """Raise JournalUnreadable for a newer journal, an impossible version and somebody else's tables. Writes nothing."""
    version = read_version(connection)
    if version > CURRENT_VERSION:
        raise JournalUnreadable(
            f"Journal schema {version}: newer than this version of stepkeeper, which knows up to {CURRENT_VERSION}.",
            kind="newer",
            hint="Upgrade stepkeeper, then start again.",
        )
    if version < 0:
        raise JournalUnreadable(
            f"Journal schema {version}: no version of stepkeeper wrote that.",
            kind="damaged",
            hint="Put back a copy of the file, or give the agent a new one.",
        )
    if version == 0 and connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
        raise JournalUnreadable(
            "The file already holds tables that stepkeeper did not make.",
            kind="foreign",
            hint="Give the journal a file of its own.",
        )


def _describe(connection: sqlite3.Connection, agent: str) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.executemany(
        "INSERT INTO journal_meta (key, value) VALUES (?, ?)",
        [("uuid", str(uuid.uuid4())), ("format", "1"), ("agent", agent), ("created_at", clock.now_text())],
    )
