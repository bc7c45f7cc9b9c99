"""A gateway gives up on the replay, a provider is away for hours: the status decides, and nobody loses their place."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.crash.looking import attempts, is_in_flight, rows, step, task_status, until
from tests.crash.moments import killed_with_a_pull_in_flight

pytestmark = [pytest.mark.crash, pytest.mark.accept]


def wait_for_a_try(scene, *, more_than):
    """Wait until the step has more attempts than that, none of them under way."""

    def tried():
        return len(attempts(scene.journal, "t", 1)) > more_than and not is_in_flight(scene.journal, "t", 1)

    until(tried, "another try")


def asked(scene):
    return [one.path for one in scene.forge.requests("GET")]


def evidence(scene):
    return [row["answer"] for row in rows(scene.journal, "SELECT answer FROM agent_evidence ORDER BY id")]


def test_a_replay_answered_by_504_is_committed_with_what_the_status_says(scene):
    killed_with_a_pull_in_flight(scene)
    scene.forge.next(status_after_apply=504)
    scene.start()
    scene.completed("t")
    [replay] = scene.forge.requests()
    assert asked(scene) == [f"/operations/{replay.key}"]
    assert evidence(scene) == ["exists"]
    stored = step(scene.journal, "t", 1)
    assert stored["idempotency_key"] == replay.key
    assert json.loads(stored["output_json"])["number"] == 1
    assert [one["kind"] for one in attempts(scene.journal, "t", 1)] == [None, "gateway"]
    assert len(scene.forge.effects()) == 1
    assert len(scene.model.calls()) == 2


def test_a_replay_answered_by_504_goes_out_again_byte_for_byte_where_the_status_finds_nothing(scene):
    killed_with_a_pull_in_flight(scene)
    scene.forge.next(status_without_apply=504)
    scene.start()
    scene.completed("t")
    replay, again = scene.forge.requests()
    assert replay.raw == again.raw
    assert asked(scene) == [f"/operations/{replay.key}"]
    assert evidence(scene) == ["absent"]
    assert [effect.key for effect in scene.forge.effects()] == [replay.key]
    assert len(scene.model.calls()) == 2


def test_a_first_request_answered_by_504_after_it_was_applied_is_adopted(scene):
    scene.forge.next(status_after_apply=504)
    scene.submit("once", "t", tool="pull")
    scene.start()
    scene.completed("t")
    assert len(scene.forge.requests()) == 1
    assert evidence(scene) == ["exists"]
    assert len(scene.forge.effects()) == 1


@pytest.mark.parametrize("killed_first", [False, True])
def test_a_provider_away_for_hours_costs_no_attempt_and_the_task_ends_by_itself(scene, killed_first):
    if killed_first:
        killed_with_a_pull_in_flight(scene)
    scene.forge_gate.refuse()
    if not killed_first:
        scene.submit("once", "t", tool="pull")
    agent = scene.start()
    lost = 1 if killed_first else 0
    wait_for_a_try(scene, more_than=lost)
    for _ in range(6):
        # Counted before the clock moves: what the move makes due may happen at once.
        seen = len(attempts(scene.journal, "t", 1))
        scene.move_clock(timedelta(hours=1))
        wait_for_a_try(scene, more_than=seen)
    tried = [one["verdict"] for one in attempts(scene.journal, "t", 1)][lost:]
    assert len(tried) >= 6
    assert set(tried) == {"not_sent"}
    assert scene.forge.requests() == []
    assert len(scene.model.calls()) == 1
    assert task_status(scene.journal, "t") in ("running", "waiting")

    scene.forge_gate.open()
    scene.move_clock(timedelta(minutes=6))
    scene.completed("t")
    assert agent.is_alive
    [received] = scene.forge.requests()
    assert received.key == step(scene.journal, "t", 1)["idempotency_key"]
    assert len(scene.forge.effects()) == 1
    assert len(scene.model.calls()) == 2


def test_an_agent_killed_while_its_provider_is_away_keeps_its_place(scene):
    scene.forge_gate.refuse()
    scene.submit("once", "t", tool="pull")
    for number in range(2):
        agent = scene.start()
        wait_for_a_try(scene, more_than=number)
        agent.kill()
        scene.move_clock(timedelta(hours=2))
    scene.forge_gate.open()
    scene.start()
    scene.completed("t")
    assert len(scene.forge.requests()) == 1
    assert len(scene.forge.effects()) == 1
    assert len(scene.model.calls()) == 2
