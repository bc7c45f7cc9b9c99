"""Journals of other makers are shown as they are: nine columns, or a hash instead of the arguments."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from journal.models import Step
from journal.reader import Reader, inspect
from journal.reader.dialects import FOREIGN
from tests.journal.rows import hash_only_table, insert, minimal_table, writer

TEN = "2026-11-01 10:00:00"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "foreign.db"


@pytest.fixture
def maker(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(writer(path, mode="delete")) as connection:
        yield connection


def _nine(connection: sqlite3.Connection, task_id: object, index: object, **cells: object) -> None:
    row: dict[str, object] = {
        "task_id": task_id, "step_index": index, "tool_name": "send", "idempotency_key": "k", "status": "committed",
        "arguments_json": '{"a": 1}', "output_json": '"sent"', "created_at": TEN, "updated_at": TEN,
    }  # fmt: skip
    insert(connection, "agent_step_journal", **{**row, **cells})


def _hashed(connection: sqlite3.Connection, task_id: object, index: object, **cells: object) -> None:
    row: dict[str, object] = {
        "task_id": task_id, "step_index": index, "tool_name": "send", "args_hash": "abc", "status": "committed",
        "output": '"sent"', "created_at": TEN,
    }  # fmt: skip
    insert(connection, "agent_step_journal", **{**row, **cells})


def test_nine_columns_made_by_hand_show_their_tasks_and_payloads(path: Path, maker: sqlite3.Connection):
    minimal_table(maker)
    _nine(maker, "a/b?c#d", 0)
    _nine(maker, "a/b?c#d", 1, status="pending", output_json=None, updated_at="2026-11-01 10:00:05")
    state, reader = inspect(path), Reader(path)
    assert (state.kind, state.dialect) == ("ok", "minimal")
    task = reader.tasks().items[0]
    assert (task.task_id, task.steps, task.pending, task.status, task.derived) == ("a/b?c#d", 2, 1, "running", True)
    assert task.created_at == datetime(2026, 11, 1, 10, tzinfo=UTC)
    assert [step.step_index for step in reader.steps("a/b?c#d")] == [0, 1]
    step = reader.step("a/b?c#d", 0)
    assert step is not None
    assert (step.arguments_json, step.output_json, step.idempotency_key) == ('{"a": 1}', '"sent"', "k")
    assert (step.replayable, step.odd) == (True, ())
    assert [step.step_index for step in reader.pending()] == [1]


def test_a_hash_instead_of_arguments_is_shown_and_never_replayable(path: Path, maker: sqlite3.Connection):
    hash_only_table(maker)
    _hashed(maker, "t", 0)
    _hashed(maker, "t", 1, status="done")
    state, reader = inspect(path), Reader(path)
    assert (state.kind, state.dialect) == ("ok", "hash_only")
    assert "never" in state.hint
    step = reader.step("t", 0)
    assert step is not None
    assert (step.arguments_json, step.args_hash, step.output_json, step.idempotency_key) == (
        None,
        "abc",
        '"sent"',
        None,
    )
    assert (step.replayable, step.replayable_reason) == (False, "the payload was never stored, only its hash")
    assert (step.created_at, step.updated_at) == (datetime(2026, 11, 1, 10, tzinfo=UTC), None)
    assert [(step.status, step.odd) for step in reader.steps("t")] == [("committed", ()), ("done", ())]


def test_what_a_foreign_journal_does_not_have_is_empty(path: Path, maker: sqlite3.Connection):
    minimal_table(maker)
    _nine(maker, "t", 0)
    reader = Reader(path)
    assert (reader.attempts("t"), reader.runs("t"), reader.boots(), reader.children("t")) == ([], [], [], [])
    assert (reader.evidence("t"), reader.decisions("t"), reader.model_calls("t")) == ([], [], [])
    assert (reader.request("t", 0), reader.profile_json("t", 0), reader.by_decision("m")) == (None, None, None)
    assert (reader.task("x"), reader.step("t", 1)) == (None, None)
    assert reader.counts() == {"tasks": 1, "steps": 1, "pending": 0}
    changes = reader.changes(0)
    assert (len(changes.tasks), len(changes.steps), changes.highest_revision, changes.more) == (1, 1, 0, False)


def test_rows_without_a_key_and_rows_that_share_one_are_single_odd_rows(path: Path, maker: sqlite3.Connection):
    hash_only_table(maker)
    for _ in range(2):
        _hashed(maker, None, None)
    _hashed(maker, "t", "six")
    _hashed(maker, "t", 6.5)
    _hashed(maker, "t", None)
    _hashed(maker, "t", 7, tool_name=None, status=None, created_at="soon")
    reader = Reader(path)
    assert sorted((task.task_id, task.steps, task.odd) for task in reader.tasks().items) == [
        ("", 2, ("task_id",)),
        ("t", 4, ("updated_at",)),
    ]
    assert [step.odd for step in reader.steps("")] == [("task_id", "step_index")] * 2
    steps = reader.steps("t")
    assert [(step.step_index, step.odd) for step in steps] == [
        (-1, ("step_index",)),
        (-1, ("step_index",)),
        (-1, ("step_index",)),
        (7, ("tool_name", "status", "created_at")),
    ]
    assert [step.step_index for step in reader.steps("t", after=0)] == [7]


def test_tasks_of_mixed_times_are_sorted_sensibly_and_paged_without_loss(path: Path, maker: sqlite3.Connection):
    minimal_table(maker)
    times: list[object] = [
        "2026-11-01T10:00:01Z", 1793527202, "2026-11-01 10:00:03", 1793527204000, "2026-11-01T15:00:05+05:00",
        1793527206000000, "", None,
    ]  # fmt: skip
    for number, when in enumerate(times):
        _nine(maker, f"t{number}", 0, created_at=when, updated_at=when)
    reader, seen = Reader(path), list[str]()
    page = reader.tasks(limit=3)
    seen += [task.task_id for task in page.items]
    while page.next_cursor is not None:
        page = reader.tasks(limit=3, after=page.next_cursor)
        seen += [task.task_id for task in page.items]
    assert seen == ["t5", "t4", "t3", "t2", "t1", "t0", "t7", "t6"]
    assert [task.task_id for task in reader.tasks(text="T3").items] == ["t3"]
    assert reader.tasks(status="failed").items == ()


def test_a_table_without_row_ids_is_read_too(path: Path, maker: sqlite3.Connection):
    maker.execute(
        "CREATE TABLE agent_step_journal (task_id TEXT, step_index INTEGER, tool_name TEXT, args_hash TEXT, "
        "status TEXT, output TEXT, created_at TEXT, PRIMARY KEY (task_id, step_index)) WITHOUT ROWID"
    )
    _hashed(maker, "t", 0)
    assert _output(path) == ('"sent"', (), ())
    maker.execute("UPDATE agent_step_journal SET output = ?", ("x" * 3_000_000,))
    assert _output(path) == (None, ("output_json",), ("output_json",))


def _output(path: Path) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    step = Reader(path).step("t", 0)
    assert step is not None
    return step.output_json, step.odd, step.previewed


def test_a_table_with_more_columns_than_its_dialect_is_read_by_the_ones_it_knows(path: Path, maker: sqlite3.Connection):
    minimal_table(maker)
    maker.execute("ALTER TABLE agent_step_journal ADD COLUMN mood TEXT")
    maker.execute("PRAGMA user_version = 77")
    _nine(maker, "t", 0)
    assert inspect(path).dialect == "minimal"
    assert len(Reader(path).steps("t")) == 1


def test_a_dialect_speaks_of_fields_a_step_has():
    fields = set(Step.__dataclass_fields__)
    for dialect in FOREIGN:
        named = set(dialect.__dataclass_fields__) - {"name", "needs", "replayable", "reason"}
        assert named <= fields
