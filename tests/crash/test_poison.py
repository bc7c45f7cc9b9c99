"""A step that kills its process is put aside alone; the rest of the agent's work goes on."""

from __future__ import annotations

import sys
from functools import partial

import pytest

from tests.crash.looking import hold_reason, rows, step, task_status, until

pytestmark = [pytest.mark.crash, pytest.mark.accept]


def supervised(scene):
    script = [sys.executable, "-m", "tests.crash.agents.poison"]
    return scene.run([sys.executable, "-m", "journal", "supervise", "--journal", str(scene.journal), "--", *script])


def deaths(scene):
    return (scene.folder / "deaths").read_text().splitlines()


@pytest.mark.parametrize("kind", ["read", "write", "model"])
def test_a_step_that_kills_its_process_three_times_is_quarantined_alone(scene, kind):
    scene.submit("deadly", "poison", step=kind)
    for _ in range(3):
        assert scene.start("poison").wait() == -9
    agent = scene.start("poison")
    until(lambda: hold_reason(scene.journal, "poison", 1) == "quarantined", "the quarantine")
    scene.submit("once", "healthy", tool="pull")
    scene.completed("healthy")
    assert agent.is_alive
    assert task_status(scene.journal, "poison") == "waiting"
    assert len(deaths(scene)) == 3
    assert len(scene.forge.effects()) == 1
    assert step(scene.journal, "poison", 0)["status"] == "committed"
    assert len(scene.model.calls()) == 2 + (3 if kind == "model" else 0)


def test_a_quarantined_step_stays_put_aside_through_restarts_until_a_person_replays_it(scene):
    scene.submit("deadly", "poison", step="read")
    for _ in range(3):
        assert scene.start("poison").wait() == -9
    for number in range(2):
        agent = scene.start("poison")
        scene.submit("once", f"healthy-{number}", tool="pull")
        scene.completed(f"healthy-{number}")
        agent.stop()
    assert hold_reason(scene.journal, "poison", 1) == "quarantined"
    assert len(deaths(scene)) == 3
    scene.decide("replay", "poison", 1)
    assert scene.start("poison").wait() == -9
    assert len(deaths(scene)) == 4


def test_a_supervised_agent_gets_past_its_poison_by_itself(scene):
    scene.submit("deadly", "poison", step="write")
    scene.submit("once", "healthy", tool="pull")
    supervisor = supervised(scene)
    scene.completed("healthy")
    until(lambda: hold_reason(scene.journal, "poison", 1) == "quarantined", "the quarantine")
    assert len(deaths(scene)) == 3
    assert supervisor.stop() == 0
    ended = [boot["ended"] for boot in rows(scene.journal, "SELECT ended FROM agent_boot WHERE role = 'agent'")]
    assert ended == ["SIGKILL"] * 3 + ["clean"]
    assert len(scene.forge.effects()) == 1


def test_a_request_that_was_only_under_way_at_three_deaths_is_not_blamed_for_them(scene):
    scene.submit("once", "healthy", tool="pull")
    scene.forge_gate.swallow()
    for number in range(1, 4):
        agent = scene.start()
        until(partial(_took_in, scene, number), "the request")
        agent.kill()
    scene.forge_gate.open()
    scene.start()
    scene.completed("healthy")
    swallowed, [arrived] = scene.forge_gate.swallowed, scene.forge.requests()
    assert len(set(swallowed)) == 1
    assert arrived.key.encode() in swallowed[0]
    assert len(scene.forge.effects()) == 1


def test_steps_that_were_only_under_way_at_two_deaths_are_not_quarantined_with_the_step_that_kills(scene):
    innocent = ["read", "write", "model"]
    scene.submit("beside", "poison")
    for step_kind in innocent:
        scene.submit("slow", step_kind, step=step_kind)
    for _ in range(3):
        assert scene.start("poison").wait() == -9
    scene.start("poison")
    for step_kind in innocent:
        scene.completed(step_kind)
    until(lambda: hold_reason(scene.journal, "poison", 0) == "quarantined", "the quarantine")
    assert len(deaths(scene)) == 3
    # They were under way at the first two deaths, and waited for their turn at the third.
    assert [step(scene.journal, kind, 0)["starts"] for kind in ("read", "model")] == [3, 3]


def _took_in(scene, number):
    return len(scene.forge_gate.swallowed) >= number
