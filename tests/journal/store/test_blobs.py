"""A body over 8 KB is written once: no row that is rewritten holds it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from journal import TaskConflict
from journal.reader import Reader
from journal.runtime.serve import run_task
from journal.store.sql import tasks
from tests.journal.agent import World, opened, rows, task_row

BIG = "x" * 500_000
KIB = 1024


def grown(journal: Any) -> int:
    """Bytes in the log since it was last emptied."""
    return int(journal.path.with_name("j.db-wal").stat().st_size)


def output(path) -> str | None:
    seen = Reader(path).task("t")
    assert seen is not None
    return seen.output_json


def run_to_its_end(journal: Any) -> None:
    row = journal.store.read(lambda tx: tasks.find_task(tx, "t"))
    assert row is not None
    run_task(journal.context, row)


def emptied(journal: Any) -> None:
    journal.store.read(lambda tx: tx.all("PRAGMA wal_checkpoint(TRUNCATE)"))


def test_a_tasks_big_input_and_output_are_written_once_and_read_whole(path):
    def echo(task: Any, text: str) -> str:
        return text[1:]

    with opened(path, World(), handlers={"echo": echo}) as journal:
        journal.submit("echo", task_id="t", text=BIG)
        for _ in range(3):
            emptied(journal)
            with pytest.raises(KeyboardInterrupt), journal.task("t"):
                raise KeyboardInterrupt
            assert 0 < grown(journal) < 200 * KIB
        run_to_its_end(journal)
    row = task_row(path, "t")
    assert row["status"] == "completed"
    assert max(len(row["input_json"]), len(row["output_json"])) < 200
    assert rows(path, "SELECT count(*) AS n FROM agent_body")[0]["n"] == 2
    seen = Reader(path).task("t")
    assert seen is not None
    assert json.loads(seen.input_json or "") == {"text": BIG}
    assert json.loads(seen.output_json or "") == BIG[1:]
    (changed,) = Reader(path).changes(0).tasks
    assert (changed.task_id, changed.status, changed.revision) == ("t", "completed", row["revision"])


def test_the_same_big_input_submitted_again_is_the_same_task(path):
    def echo(task: Any, text: str) -> None:
        pass

    with opened(path, World(), handlers={"echo": echo}) as journal:
        journal.submit("echo", task_id="t", text=BIG)
        assert journal.submit("echo", task_id="t", text=BIG).task_id == "t"
        with pytest.raises(TaskConflict):
            journal.submit("echo", task_id="t", text=BIG + "y")


def test_a_task_that_runs_again_does_not_keep_the_big_output_it_had(path):
    world = World()

    def work(task: Any) -> str:
        task.run(world.read, 0)
        return BIG

    with opened(path, world, handlers={"work": work}) as journal:
        journal.submit("work", task_id="t")
        run_to_its_end(journal)
        assert task_row(path, "t")["output_ref"] is not None
        task = journal.task("t")
        for number in range(2):
            task.run(world.read, number)
        assert output(path) is None
        task.leave(None, "small")
    assert output(path) == '"small"'
