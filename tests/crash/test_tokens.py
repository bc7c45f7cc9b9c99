"""What a kill costs in tokens, counted at the model server."""

from __future__ import annotations

import pytest

from tests.crash.looking import attempts, hold_reason, is_in_flight, rows, step, until

pytestmark = [pytest.mark.crash, pytest.mark.accept]


def recovery_calls(scene):
    return [boot["recovery_model_calls"] for boot in rows(scene.journal, "SELECT * FROM agent_boot")]


def test_recovering_spends_no_token_and_settles_what_a_key_protects(scene):
    for tool, server in (("pull", scene.forge), ("message", scene.hook)):
        server.next(hold_after_apply=True)
        scene.submit("once", tool, tool=tool)
    agent = scene.start()
    assert scene.forge.script.wait_held()
    assert scene.hook.script.wait_held()
    agent.kill()
    for server in (scene.forge, scene.hook):
        server.script.release()
    spent = scene.model.tokens()

    assert scene.start("recover_once").wait() == 0
    assert "report [1, 1, 0, 0]" in scene.log.read_text()
    assert step(scene.journal, "pull", 1)["status"] == "committed"
    assert hold_reason(scene.journal, "message", 1) == "no_key_no_status"
    assert scene.model.tokens() == spent
    assert len(scene.model.calls()) == 2
    assert recovery_calls(scene) == [0, 0]


@pytest.mark.parametrize("tool", ["message", "findable_message"])
def test_a_task_with_an_unresolved_intent_asks_no_model(scene, tool):
    scene.hook_gate.stall()
    scene.submit("once", "t", tool=tool)
    agent = scene.start()
    until(lambda: is_in_flight(scene.journal, "t", 1), "the intent")
    agent.kill()
    scene.hook_gate.open()
    for number in range(2):
        agent = scene.start()
        # Another task that is run to its end after the recovery: the one that waits had its turn too.
        scene.submit("once", f"other-{number}", tool="pull")
        scene.completed(f"other-{number}")
        agent.stop()
    assert step(scene.journal, "t", 1)["status"] == "pending"
    assert len(attempts(scene.journal, "t", 1)) == 1
    assert len(rows(scene.journal, "SELECT 1 FROM agent_model_call WHERE task_id = 't'")) == 1
    assert len(scene.model.calls()) == 1 + 4
    assert recovery_calls(scene) == [0, 0, 0]


def test_a_model_call_killed_midway_is_asked_again_and_the_lost_one_is_not_counted_as_free(scene):
    scene.model.next(hold_after_apply=True)
    scene.submit("once", "t", tool="pull")
    agent = scene.start()
    assert scene.model.script.wait_held()
    agent.kill()
    scene.model.script.release()
    scene.start()
    scene.completed("t")
    lost, again, _ = rows(scene.journal, "SELECT * FROM agent_model_call ORDER BY id")
    assert (lost["step_index"], lost["in_uncached"]) == (0, None)
    assert lost["state"] in ("open", "unknown")
    assert (again["step_index"], again["state"]) == (0, "exact")
    assert len(scene.model.calls()) == 3
    assert len(scene.forge.effects()) == 1


def test_a_resume_costs_a_fraction_of_a_restart(scene, capsys):
    agent = scene.start()
    scene.submit("eight_rounds", "whole", subject="doors")
    scene.completed("whole")
    restart = scene.model.tokens()

    ratios = {}
    for number in range(1, 9):
        task_id = f"killed-in-{number}"
        scene.forge.next(match=f"round {number}:", hold_after_apply=True)
        scene.submit("eight_rounds", task_id, subject="doors")
        assert scene.forge.script.wait_held()
        agent.kill()
        scene.forge.script.release()
        spent = scene.model.tokens()
        agent = scene.start()
        scene.completed(task_id)
        ratios[number] = (scene.model.tokens() - spent) / restart
    with capsys.disabled():
        print("\nresume tokens / restart tokens, killed in step 1 to 8 of 8:")
        print("  ".join(f"{number}: {ratio:.0%}" for number, ratio in ratios.items()))
    assert ratios[7] <= 0.30
    assert ratios[8] == 0
    assert list(ratios.values()) == sorted(ratios.values(), reverse=True)
    assert len(scene.forge.effects()) == 9 * 8
