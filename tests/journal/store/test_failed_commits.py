"""A COMMIT that fails says nothing: what became of it is read from the file before anybody is told."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Any

import pytest

from journal.errors import StepUnwritten
from journal.store.transaction import _TABLES_WITH_REVISIONS
from tests.journal.agent import World, opened, rows, steps_of, task_row


class Volume(sqlite3.Connection):
    """A real connection on a volume that fails at the COMMIT of the named step: before or after what it does."""

    fails: str | None = None
    after = False
    made = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        Volume.made += 1
        self._wrote: list[str] = []

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql != "COMMIT":
            self._wrote = [] if sql.startswith("BEGIN") else [*self._wrote, sql]
            return super().execute(sql, *parameters)
        if Volume.fails is None or not any(one.lstrip().startswith(Volume.fails) for one in self._wrote):
            return super().execute(sql)
        Volume.fails = None
        if Volume.after:
            super().execute(sql)
        raise sqlite3.OperationalError("disk I/O error")


INTENT = "INSERT INTO agent_step_journal"
OUTCOME = "UPDATE agent_step_attempt"


@pytest.fixture
def volume(monkeypatch):
    monkeypatch.setattr("journal.store.connection.sqlite3.connect", partial(sqlite3.connect, factory=Volume))
    monkeypatch.setattr(Volume, "fails", None)
    monkeypatch.setattr(Volume, "made", 0)
    return Volume


@pytest.mark.parametrize("name", ["write", "once", "blind"])
@pytest.mark.parametrize(
    ("which", "after"),
    [(INTENT, True), (OUTCOME, True), (OUTCOME, False)],
    ids=["intent kept", "outcome kept", "outcome lost"],
)
def test_an_effect_is_had_once_and_its_output_returned_whatever_the_commit_said(
    path, world, volume, name, which, after
):
    with opened(path, world) as journal, journal.task("t") as task:
        volume.fails, volume.after, volume.made = which, after, 0
        output = task.run(getattr(world, name), "x")
        assert (volume.fails, volume.made) == (None, 1)  # it failed, and a new connection looked
        task.run(world.read, 1)
    assert output
    assert world.calls == [(name, "x"), ("read", 1)]
    assert [step["status"] for step in steps_of(path, "t")] == ["committed", "committed"]
    assert task_row(path, "t")["status"] == "completed"
    assert [row["verdict"] for row in rows(path, "SELECT verdict FROM agent_step_attempt")] == ["applied"]
    # What was committed at the first try is not recorded a second time, as a late outcome.
    assert rows(path, "SELECT * FROM agent_evidence") == []


def test_a_tool_is_not_called_when_the_commit_of_its_intent_failed(path, world, volume):
    with opened(path, world) as journal:
        volume.fails, volume.after = INTENT, False
        with pytest.raises(StepUnwritten), journal.task("t") as task:
            task.run(world.write, "x")
        assert world.calls == []
        assert steps_of(path, "t") == []
    with opened(path, world) as journal, journal.task("t") as task:
        task.run(world.write, "x")
    assert world.names() == ["write"]


def test_every_table_whose_rows_have_a_revision_is_looked_in(path):
    opened(path, World()).close()
    tables = [row["name"] for row in rows(path, "SELECT name FROM sqlite_schema WHERE type = 'table'")]
    with_revisions = {
        name
        for name in tables
        if any(column["name"] == "revision" for column in rows(path, f"PRAGMA table_info({name})"))
    }
    assert with_revisions == set(_TABLES_WITH_REVISIONS)
