"""The table the design names, and versions that only go forward, each one whole or not at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from journal import schema
from journal.errors import JournalUnreadable
from tests.journal.agent import World, opened, rows, steps_of

# (name, type, NOT NULL, place in the primary key), in the order of the design.
NINE_COLUMNS = [
    ("task_id", "TEXT", 1, 1),
    ("step_index", "INTEGER", 1, 2),
    ("tool_name", "TEXT", 1, 0),
    ("idempotency_key", "TEXT", 1, 0),
    ("arguments_json", "TEXT", 1, 0),
    ("status", "TEXT", 1, 0),
    ("output_json", "TEXT", 0, 0),
    ("created_at", "TEXT", 1, 0),
    ("updated_at", "TEXT", 1, 0),
]
FURTHER_COLUMNS = {
    "args_hash",
    "effect",
    "key_generation",
    "starts",
    "hold_reason",
    "next_attempt_at",
    "boot",
    "revision",
}
BROKEN = "CREATE TABLE later (a TEXT);\nCREATE TABLE agent_task (a TEXT);\n"
MENDED = "CREATE TABLE later (a TEXT);\nALTER TABLE agent_task ADD COLUMN later TEXT;\n"


def version(path: Path) -> int:
    return int(rows(path, "PRAGMA user_version")[0]["user_version"])


def migrating(monkeypatch: pytest.MonkeyPatch, second: str) -> None:
    """A later stepkeeper, whose second version is this."""
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS[:1], second))
    monkeypatch.setattr(schema, "CURRENT_VERSION", 2)


def test_a_journal_has_the_columns_of_the_design_in_their_order(path):
    opened(path, World()).close()
    columns = [
        (row["name"], row["type"], row["notnull"], row["pk"])
        for row in rows(path, "PRAGMA table_info(agent_step_journal)")
    ]
    assert columns[: len(NINE_COLUMNS)] == NINE_COLUMNS
    further = columns[len(NINE_COLUMNS) :]
    assert {name for name, *_ in further} >= FURTHER_COLUMNS
    assert [place for *_, place in further if place] == []


def test_every_table_has_rowids(path):
    opened(path, World()).close()
    tables = rows(path, "PRAGMA table_list")
    assert "agent_step_journal" in [table["name"] for table in tables]
    assert [table["name"] for table in tables if table["wr"]] == []


def test_a_writer_refuses_a_newer_journal_and_leaves_every_byte_of_it(path, world):
    with opened(path, world) as journal, journal.task("t") as task:
        task.run(world.read, 1)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(JournalUnreadable, match="newer than this version") as refused:
        opened(path, world)
    assert refused.value.kind == "newer"
    assert path.read_bytes() == before
    # The refused writer has let go of it.
    with pytest.raises(JournalUnreadable, match="newer than this version"):
        opened(path, world)


def test_a_version_that_fails_midway_leaves_the_one_before_it_whole(path, world, monkeypatch):
    with opened(path, world) as journal, journal.task("t") as task:
        task.run(world.read, 1)
    before = rows(path, "SELECT * FROM sqlite_schema")
    with monkeypatch.context() as later:
        migrating(later, BROKEN)
        with pytest.raises(JournalUnreadable, match="agent_task already exists"):
            opened(path, world)
        assert version(path) == 1
        assert rows(path, "SELECT * FROM sqlite_schema") == before
        migrating(later, MENDED)
        with opened(path, world) as journal, journal.task("t") as task:
            task.run(world.read, 1)
        assert version(path) == 2
        assert rows(path, "SELECT later FROM agent_task") == [{"later": None}]
    assert world.names() == ["read"]
    assert steps_of(path, "t")[0]["status"] == "committed"
    # There is no way back: the version before does not open what the later one has written.
    with pytest.raises(JournalUnreadable, match="Journal schema 2"):
        opened(path, world)


def test_a_new_journal_whose_second_version_fails_is_a_journal_of_the_first(path, world, monkeypatch):
    with monkeypatch.context() as later:
        migrating(later, BROKEN)
        with pytest.raises(JournalUnreadable):
            opened(path, world)
    assert version(path) == 1
    with opened(path, world) as journal, journal.task("t") as task:
        task.run(world.read, 1)
    assert world.names() == ["read"]
