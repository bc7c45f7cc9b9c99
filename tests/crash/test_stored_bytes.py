"""What was decided before the kill is what happens after it, whatever the model or the code would say now."""

from __future__ import annotations

import json

import pytest

from tests.crash.looking import hold_reason, rows, step, steps, task_status, until

pytestmark = [pytest.mark.crash, pytest.mark.accept]


def test_the_replayed_payload_is_the_stored_one_though_the_model_never_says_a_thing_twice(scene):
    scene.forge.next(hold_after_apply=True)
    scene.submit("once", "t", tool="pull")
    agent = scene.start()
    assert scene.forge.script.wait_held()
    agent.kill()
    scene.forge.script.release()
    # Another task is planned meanwhile: the model says other words now, also to the same question.
    scene.submit("once", "a-later-one", tool="pull")
    scene.start()
    scene.completed("t")
    scene.completed("a-later-one")
    stored = json.loads(step(scene.journal, "t", 1)["arguments_json"])
    mine = [one for one in scene.forge.requests() if one.key == step(scene.journal, "t", 1)["idempotency_key"]]
    assert len(mine) == 2
    assert mine[0].raw == mine[1].raw
    assert json.loads(mine[1].body) == {"title": stored["title"], "head": stored["branch"]}
    plans = [json.loads(one["output_json"])["content"] for one in (step(scene.journal, "t", 0),)]
    assert stored == {"title": plans[0]["title"], "branch": plans[0]["branch"]}
    assert len(scene.forge.effects()) == 2
    assert len(scene.model.calls()) == 4


def test_changed_code_settles_the_pending_intent_from_its_bytes_and_then_diverges_without_an_effect(scene):
    scene.submit("eight_steps", "door-7", number=7)
    scene.forge.next(match="follow-up of", hold_after_apply=True)
    agent = scene.start()
    assert scene.forge.script.wait_held()
    agent.kill()
    scene.forge.script.release()

    agent = scene.start(VERSION="2")
    until(lambda: task_status(scene.journal, "door-7") == "waiting", "the divergence")
    stored = steps(scene.journal, "door-7")
    assert [one["status"] for one in stored] == ["committed"] * 4
    assert hold_reason(scene.journal, "door-7", 3) == "diverged"
    assert "title" in stored[3]["hold_detail"]
    first, killed, replay = scene.forge.requests()
    assert killed.raw == replay.raw
    assert [effect.key for effect in scene.forge.effects()] == [first.key, killed.key]
    assert len(scene.model.calls()) == 1
    agent.stop()

    # The code it began with goes on where it stopped.
    scene.start()
    scene.completed("door-7")
    assert len(scene.forge.effects()) == 3
    assert len(scene.forge.requests()) == 4
    assert len(scene.model.calls()) == 3


def test_changed_code_is_refused_also_at_a_step_long_committed(scene):
    scene.submit("eight_steps", "door-7", number=7)
    scene.model.next(match="Report 8", hold_before_apply=True)
    agent = scene.start()
    assert scene.model.script.wait_held()
    agent.kill()
    scene.model.script.release()
    until(lambda: len(scene.model.calls()) == 2, "the abandoned call's end")

    scene.start(VERSION="2")
    until(lambda: task_status(scene.journal, "door-7") == "waiting", "the divergence")
    assert len(scene.forge.requests()) == 2
    assert len(scene.model.calls()) == 2
    [task] = rows(scene.journal, "SELECT * FROM agent_task")
    assert task["wait_kind"] == "diverged"
