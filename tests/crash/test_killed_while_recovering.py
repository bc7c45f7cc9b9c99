"""Kills that hit recovery itself, and the moment between a decision and what it allows."""

from __future__ import annotations

import pytest

from tests.crash.looking import attempts, hold_reason, is_in_flight, rows, step, task_status, until
from tests.crash.moments import held_by_nobody, killed_with_a_pull_in_flight
from tests.crash.scene import SECRET
from tests.crash.test_decisions import assert_approved_once, decided

pytestmark = [pytest.mark.crash, pytest.mark.accept]


def test_a_kill_in_the_middle_of_the_recovering_replay_is_recovered_in_turn(scene):
    killed_with_a_pull_in_flight(scene)
    scene.forge.next(hold_after_apply=True)
    agent = scene.start("recover_once")
    assert scene.forge.script.wait_held()
    agent.kill()
    scene.forge.script.release()
    scene.start()
    scene.completed("t")
    replay, again = scene.forge.requests()
    assert replay.raw == again.raw
    assert len(scene.forge.effects()) == 1
    assert [one["verdict"] for one in attempts(scene.journal, "t", 1)] == [None, None, "applied"]
    assert len(scene.model.calls()) == 2


def test_a_kill_in_the_middle_of_the_status_query_asks_it_again(scene):
    killed_with_a_pull_in_flight(scene)
    scene.forge.next(status_after_apply=504)
    scene.forge.next(on="status", hold_before_apply=True)
    agent = scene.start("recover_once")
    assert scene.forge.script.wait_held()
    agent.kill()
    scene.forge.script.release()
    scene.start()
    scene.completed("t")
    assert len(scene.forge.requests()) == 1
    assert len(scene.forge.requests("GET")) == 2
    assert len(scene.forge.effects()) == 1
    assert len(scene.model.calls()) == 2


def test_a_kill_between_an_applied_approval_and_its_request_never_uses_it_twice(scene):
    held_by_nobody(scene)
    message_id = scene.decide("replay", "t", 1)
    scene.hook_gate.stall()
    agent = scene.start()
    until(lambda: len(attempts(scene.journal, "t", 1)) == 2 and is_in_flight(scene.journal, "t", 1), "the mark")
    agent.kill()
    scene.hook_gate.open()
    assert decided(scene, message_id)["consumed_attempt"] == 2

    # Nothing left the machine, but nobody can know that: it is held again, and only a new approval sends it.
    scene.start()
    until(lambda: task_status(scene.journal, "t") == "waiting", "the hold")
    assert hold_reason(scene.journal, "t", 1) == "no_key_no_status"
    assert scene.hook.requests() == []
    second = scene.decide("replay", "t", 1)
    scene.completed("t")
    assert decided(scene, second)["consumed_attempt"] == 3
    assert len(scene.hook.requests()) == 1


def test_a_kill_between_an_approval_and_the_question_before_it_keeps_the_approval(scene):
    killed_with_a_pull_in_flight(scene)
    scene.forge_gate.refuse()
    agent = scene.start()
    until(lambda: len(attempts(scene.journal, "t", 1)) > 1, "a try")
    agent.kill()
    scene.forge_gate.open()
    message_id = scene.decide("replay", "t", 1)
    scene.forge.next(on="status", hold_before_apply=True)
    agent = scene.start()
    assert scene.forge.script.wait_held()
    row = decided(scene, message_id)
    assert (row["outcome"], row["consumed_attempt"]) == ("applied", None)
    agent.kill()
    scene.forge.script.release()
    scene.start()
    scene.completed("t")
    assert len(scene.forge.effects()) == 1
    assert len(rows(scene.journal, "SELECT 1 FROM agent_decision")) == 1


def test_a_message_applied_by_a_process_that_died_before_unlinking_it_is_not_applied_again(scene):
    held_by_nobody(scene)
    message_id = scene.decide("replay", "t", 1)
    [message] = (scene.folder / "agent.db.inbox").glob("*.json")
    kept = message.read_bytes()
    agent = scene.start()
    assert_approved_once(scene, message_id)
    agent.stop()
    # As after a kill between the commit and the unlink.
    message.write_bytes(kept)
    agent = scene.start()
    until(lambda: not message.exists(), "the message's end")
    assert_approved_once(scene, message_id)
    assert step(scene.journal, "t", 1)["status"] == "committed"


def test_a_service_manager_stops_an_agent_whose_recovery_waits_for_a_provider(scene):
    killed_with_a_pull_in_flight(scene)
    scene.forge_gate.swallow()
    agent = scene.start()
    until(lambda: len(scene.forge_gate.swallowed) == 2, "the replay")
    # `stop` gives it 20 s; the request itself would be waited for 30 s.
    assert agent.stop() == 0
    assert task_status(scene.journal, "t") != "failed"
    scene.forge_gate.open()
    scene.start()
    scene.completed("t")
    swallowed = {raw.replace(SECRET.encode(), b"<secret>") for raw in scene.forge_gate.swallowed}
    assert {one.raw for one in scene.forge.requests()} == swallowed
    assert len(scene.forge.effects()) == 1
