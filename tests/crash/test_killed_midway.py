"""Kill -9 in the middle of a task: what was done is not done again, what was begun is completed."""

from __future__ import annotations

import json

import pytest

from journal.cli import main
from tests.crash.looking import attempts, is_in_flight, rows, step, steps, until

pytestmark = [pytest.mark.crash, pytest.mark.accept]


@pytest.mark.parametrize("moment", ["hold_before_apply", "hold_after_apply"])
def test_a_task_killed_in_step_four_of_eight_resumes_there_and_does_nothing_twice(scene, moment):
    scene.submit("eight_steps", "door-7", number=7)
    scene.forge.next(match="follow-up of", **{moment: True})
    agent = scene.start()
    assert scene.forge.script.wait_held()
    agent.kill()

    assert main(["check", str(scene.journal)]) == 0, "what a killed agent leaves is sound"
    calls_before, reads_before = len(scene.model.calls()), (scene.folder / "reads").read_text()
    stored = steps(scene.journal, "door-7")
    assert [one["status"] for one in stored] == ["committed"] * 3 + ["pending"]
    assert (calls_before, reads_before) == (1, "7\n")
    scene.forge.script.release()
    until(lambda: len(scene.forge.effects()) == 2, "the held request's effect")

    scene.start()
    scene.completed("door-7")
    first, fourth, again, last = scene.forge.requests()
    assert first.key == stored[2]["idempotency_key"]
    assert fourth.key == again.key == stored[3]["idempotency_key"]
    assert fourth.raw == again.raw
    assert last.key not in (first.key, fourth.key)
    assert len(scene.forge.effects()) == 3
    assert {effect.key for effect in scene.forge.effects()} == {first.key, fourth.key, last.key}
    assert len(scene.model.calls()) == calls_before + 2
    assert (scene.folder / "reads").read_text() == "7\n8\n"
    ended = steps(scene.journal, "door-7")
    assert [one["status"] for one in ended] == ["committed"] * 8
    assert json.loads(ended[3]["output_json"])["number"] == 2
    runs = rows(scene.journal, "SELECT served_through FROM agent_task_run WHERE task_id = 'door-7' ORDER BY run")
    assert [run["served_through"] for run in runs] == [-1, 3]
    assert main(["check", str(scene.journal)]) == 0, "every key and hash is what its payload makes"


def test_each_of_eight_rounds_survives_its_own_kill(scene):
    scene.submit("eight_rounds", "long", subject="doors")
    for number in range(1, 9):
        scene.forge.next(match=f"round {number}:", hold_after_apply=True)
    for number in range(1, 9):
        agent = scene.start()
        assert scene.forge.script.wait_held()
        assert is_in_flight(scene.journal, "long", 2 * number - 1)
        agent.kill()
        scene.forge.script.release()
    scene.start()
    scene.completed("long")
    assert len(scene.forge.effects()) == 8
    assert len(scene.model.calls()) == 8
    assert len(scene.forge.requests()) == 16
    assert [len(attempts(scene.journal, "long", 2 * number - 1)) for number in range(1, 9)] == [2] * 8
    assert step(scene.journal, "long", 15)["status"] == "committed"
