"""Between the mark and the first byte, and how soon an outcome must be on the platter."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from journal import StepHeld, tool
from journal.providers.parse import python_profile
from journal.settle.context import load_intent
from journal.settle.dispatch import Intent, stale
from journal.store.sql import attempts
from journal.store.writer import Store
from journal.writer_lock import lock_path
from tests.journal.agent import World, opened, rows, steps_of


def marked(store: Store, task_id: str = "t") -> attempts.Mark:
    return store.write(lambda tx: attempts.mark_dispatch(tx, task_id, 0, generation=0), sync=True)


def test_a_mark_older_than_five_seconds_is_not_acted_on(path, tmp_path, monkeypatch):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    with opened(path, World()) as journal:
        mark = marked(journal.store)
        assert stale(journal.store, mark) is None
        moved.write_text("4.5")
        assert stale(journal.store, mark) is None
        moved.write_text("5.5")
        assert re.fullmatch(r"[5-9]\.\d s passed between the mark and the first byte", str(stale(journal.store, mark)))


def test_a_mark_of_a_writer_that_was_replaced_is_not_acted_on(path):
    with opened(path, World()) as journal:
        mark = marked(journal.store)
        lock_path(path).unlink()
        Store(path, agent="triage", role="agent").close()
        assert stale(journal.store, mark) == "another writer has taken over"


def test_an_attempt_has_one_verdict_and_what_comes_late_is_kept_as_evidence(path):
    world = World()

    @tool(effect="mutating")
    def slow(call: Any, name: str) -> str:
        # Somebody with the right to settles the attempt while it is out.
        journal.store.write(
            lambda tx: attempts.settle_unknown_as_no_effect(tx, call.task_id, call.step_index, "settled"), sync=False
        )
        raise TimeoutError("late")

    with opened(path, world) as journal:
        task = journal.task("t")
        with pytest.raises(StepHeld, match="not_applied"):
            task.run(slow, "x")
    (attempt,) = rows(path, "SELECT verdict, kind FROM agent_step_attempt")
    assert attempt == {"verdict": "no_effect", "kind": "settled"}
    (found,) = rows(path, "SELECT source, answer, detail FROM agent_evidence")
    assert (found["source"], found["answer"]) == ("late", "unknown")
    assert "after the attempt was settled" in found["detail"]


@pytest.mark.parametrize(
    ("keyed", "asks", "synced"),
    [
        (None, False, True),
        (timedelta(minutes=59), False, True),
        (timedelta(hours=2), False, False),
        (None, True, False),
        (timedelta(minutes=1), True, False),
    ],
)
def test_a_commit_is_synced_where_nothing_else_would_settle_it(path, keyed, asks, synced):
    world = World()
    with opened(path, world) as journal:
        with journal.task("t") as task:
            task.run(world.blind, "x")
        step = journal.store.read(lambda tx: load_intent(tx, "t", 0)).step
    assert Intent(step=step, profile=python_profile(keyed, asks, None), request=None).synced_commit is synced
    assert steps_of(path, "t")[0]["status"] == "committed"
