"""A person decides a held intent: applied once, to the bytes that were shown, by whoever may write the journal."""

from __future__ import annotations

import json
import sys
import uuid
from datetime import timedelta

import pytest

from journal.inbox import mailbox
from journal.settle.visit import reconcile_file
from tests.crash.looking import attempts, hold_reason, is_in_flight, rows, step, task_status, until
from tests.crash.moments import held_by_a_living_agent, held_by_nobody

pytestmark = [pytest.mark.crash, pytest.mark.accept]


def decided(scene, message_id):
    """The decision's row, once a writer has applied the message."""

    def look():
        return rows(scene.journal, "SELECT * FROM agent_decision WHERE message_id = ?", message_id)

    return until(look, "the decision")[0]


def assert_approved_once(scene, message_id):
    """One effect, the task done, and the journal says who approved, when, and which attempt used it."""
    scene.completed("t")
    assert len(scene.hook.effects()) == 1
    assert len(scene.hook.requests()) == 1
    row = decided(scene, message_id)
    assert (row["actor"], row["kind"], row["outcome"]) == ("ada", "replay", "applied")
    assert row["reason"] == "the receiver says it got nothing"
    assert row["applied_at"] >= row["created_at"]
    first, second = attempts(scene.journal, "t", 1)
    assert row["consumed_attempt"] == second["attempt"] == 2
    assert (first["decision_id"], second["decision_id"]) == (None, message_id)
    assert len(scene.model.calls()) == 2


def test_a_living_agent_carries_out_an_approved_replay_and_goes_on(scene):
    agent = held_by_a_living_agent(scene)
    message_id = scene.decide("replay", "t", 1)
    assert_approved_once(scene, message_id)
    assert agent.is_alive
    assert mailbox.list_messages(scene.journal) == []


def test_supervise_starts_a_waiting_script_upon_the_message(scene):
    script = [sys.executable, "-m", "tests.crash.agents.one_shot"]
    supervise = [sys.executable, "-m", "journal", "supervise", "--journal", str(scene.journal), "--", *script]
    scene.hook_gate.stall()
    killed = scene.run(script, TOOL="message")
    until(lambda: is_in_flight(scene.journal, "t", 1), "the intent")
    killed.kill()
    scene.hook_gate.open()
    supervisor = scene.run(supervise, TOOL="message")
    until(lambda: "waits for a person" in scene.log.read_text(), "the wait")
    assert hold_reason(scene.journal, "t", 1) == "no_key_no_status"
    message_id = scene.decide("replay", "t", 1)
    assert_approved_once(scene, message_id)
    assert supervisor.wait() == 0
    roles = [boot["role"] for boot in rows(scene.journal, "SELECT role FROM agent_boot ORDER BY boot")]
    assert roles == ["agent"] * 3


def test_a_worker_carries_it_out_where_the_agent_is_stopped_and_the_agent_goes_on(scene, monkeypatch):
    held_by_nobody(scene)
    monkeypatch.setenv("HOOK_URL", scene.environment["HOOK_URL"])
    message_id = scene.decide("replay", "t", 1)
    report = reconcile_file(scene.journal, role="worker")
    assert report.settled == 1
    assert step(scene.journal, "t", 1)["status"] == "committed"
    scene.start()
    assert_approved_once(scene, message_id)


def test_a_worker_without_the_secret_leaves_it_to_the_agent(scene, monkeypatch):
    held_by_nobody(scene)
    monkeypatch.delenv("HOOK_URL", raising=False)
    message_id = scene.decide("replay", "t", 1)
    report = reconcile_file(scene.journal, role="worker")
    assert (report.settled, report.left) == (0, 1)
    assert scene.hook.requests() == []
    scene.start()
    assert_approved_once(scene, message_id)


def test_one_message_posted_again_and_again_is_one_effect(scene):
    held_by_a_living_agent(scene)
    message = scene.decision("replay", "t", 1, message_id=uuid.uuid4().hex)
    message_id = mailbox.post_message(scene.journal, message)
    mailbox.post_message(scene.journal, message)
    scene.completed("t")
    mailbox.post_message(scene.journal, message)
    until(lambda: mailbox.list_messages(scene.journal) == [], "the repeated message's end")
    assert_approved_once(scene, message_id)
    assert len(rows(scene.journal, "SELECT 1 FROM agent_decision")) == 1


def test_two_approvals_of_one_dispatch_are_one_effect(scene):
    held_by_a_living_agent(scene)
    both = [scene.decision("replay", "t", 1), scene.decision("replay", "t", 1, actor="bob")]
    first, second = (mailbox.post_message(scene.journal, one) for one in both)
    scene.completed("t")
    outcomes = sorted(decided(scene, one)["outcome"].partition(":")[0] for one in (first, second))
    assert outcomes == ["applied", "refused"]
    assert len(scene.hook.requests()) == 1


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"payload_sha256": "0" * 64}, "the payload is not the one that was shown"),
        ({"key": "0" * 64}, "the key is not the one that was shown"),
        ({"dispatches": 0}, "it was dispatched again meanwhile"),
        ({"expires_at": "2026-01-01T00:00:00.000000Z"}, "its time was over"),
    ],
)
def test_a_decision_bound_to_anything_else_is_refused(scene, wrong, why):
    held_by_a_living_agent(scene)
    message_id = scene.decide("replay", "t", 1, **wrong)
    assert why in decided(scene, message_id)["outcome_detail"]
    assert hold_reason(scene.journal, "t", 1) == "no_key_no_status"
    assert scene.hook.requests() == []


def test_an_approval_that_expired_before_anybody_read_it_sends_nothing(scene):
    held_by_nobody(scene)
    message_id = scene.decide("replay", "t", 1)
    scene.move_clock(timedelta(minutes=20))
    scene.start()
    assert decided(scene, message_id)["outcome"] == "expired"
    assert scene.hook.requests() == []


def test_marked_committed_goes_on_with_the_output_a_person_gave(scene):
    held_by_a_living_agent(scene)
    scene.decide("mark_committed", "t", 1, output={"ok": "by hand"}, reference="ticket 12")
    scene.completed("t")
    [task] = rows(scene.journal, "SELECT output_json FROM agent_task")
    assert json.loads(task["output_json"])["done"] == {"ok": "by hand"}
    assert step(scene.journal, "t", 1)["reference"] == "ticket 12"
    assert scene.hook.requests() == []


def test_marked_not_applied_is_sent_only_by_a_separate_approval(scene):
    held_by_a_living_agent(scene)
    scene.decide("mark_not_applied", "t", 1)
    until(lambda: hold_reason(scene.journal, "t", 1) == "not_applied", "the mark")
    until(lambda: task_status(scene.journal, "t") == "waiting", "the hold")
    assert scene.hook.requests() == []
    message_id = scene.decide("replay", "t", 1)
    assert_approved_once(scene, message_id)


def test_an_abandoned_step_ends_without_a_request(scene):
    held_by_a_living_agent(scene)
    scene.decide("abandon", "t", 1)
    until(lambda: task_status(scene.journal, "t") == "failed", "the end")
    assert step(scene.journal, "t", 1)["status"] == "abandoned"
    assert scene.hook.requests() == []
