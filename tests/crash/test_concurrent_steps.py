"""Several intents of one task in flight at once, and all of them killed."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.crash.looking import rows, until

pytestmark = [pytest.mark.crash, pytest.mark.accept]

COUNT = 3


@pytest.mark.parametrize("handler", ["siblings", "async_branches", "thread_branches"])
@pytest.mark.parametrize("moment", ["hold_after_apply", "swallow"])
def test_everything_under_way_at_once_is_completed_once_each(scene, handler, moment):
    scene.submit(handler, "t", count=COUNT)
    if moment == "hold_after_apply":
        for _ in range(COUNT):
            scene.forge.next(hold_after_apply=True)
    else:
        scene.forge_gate.swallow()
    agent = scene.start("concurrent")
    until(lambda: scene.forge.script.held == COUNT or len(scene.forge_gate.swallowed) == COUNT, "all in flight")
    agent.kill()
    spent = len(scene.model.calls())
    scene.forge.script.release()
    scene.forge_gate.open()
    scene.start("concurrent")
    scene.completed("t")

    stored = rows(scene.journal, "SELECT * FROM agent_step_journal WHERE effect = 'mutating'")
    assert {one["status"] for one in stored} == {"committed"}
    assert Counter(one.key for one in scene.forge.effects()) == Counter(one["idempotency_key"] for one in stored)
    assert len(stored) == COUNT
    assert len(scene.model.calls()) == spent
    by_key: dict[str, set[bytes]] = {}
    for received in scene.forge.requests():
        by_key.setdefault(received.key, set()).add(received.raw)
    assert [len(variants) for variants in by_key.values()] == [1] * COUNT
    [task] = rows(scene.journal, "SELECT output_json FROM agent_task WHERE task_id = 't'")
    assert len({pull["number"] for pull in json.loads(task["output_json"])}) == COUNT


def test_a_held_branch_leaves_its_siblings_done_and_the_task_waiting(scene):
    scene.submit("thread_branches", "t", count=COUNT)
    scene.forge.next(status_without_apply=500)
    scene.start("concurrent")
    waiting = "SELECT status FROM agent_task WHERE task_id = 't' AND status = 'waiting'"
    until(lambda: rows(scene.journal, waiting), "the wait")
    stored = rows(scene.journal, "SELECT status FROM agent_step_journal WHERE effect = 'mutating' ORDER BY status")
    assert [one["status"] for one in stored] == ["committed"] * (COUNT - 1) + ["pending"]
    [held] = rows(scene.journal, "SELECT task_id, step_index FROM agent_step_journal WHERE status = 'pending'")
    scene.decide("replay", held["task_id"], held["step_index"])
    scene.completed("t")
    assert len(scene.forge.effects()) == COUNT
    assert len(scene.model.calls()) == COUNT
