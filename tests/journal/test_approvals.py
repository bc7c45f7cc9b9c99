"""An approved replay is one effect: sent once, in time, by the writer."""

from __future__ import annotations

import pytest

from journal import OutcomeUnknown, StepAbandoned, StepHeld, clock, tool
from journal.inbox import mailbox
from tests.journal.agent import opened, resume, rows
from tests.journal.operator import decide, outcome


def test_an_approved_replay_is_one_effect_and_the_task_goes_on(held, world):
    message = decide(held, "replay")
    assert resume(held, world) == "x"
    assert resume(held, world) == "x"
    assert world.names() == ["blind"]
    assert outcome(held, message) == "applied"
    attempts = rows(held, "SELECT attempt, verdict, decision_id FROM agent_step_attempt ORDER BY attempt")
    assert attempts[1] == {"attempt": 2, "verdict": "applied", "decision_id": message}
    (row,) = rows(held, "SELECT consumed_attempt, actor, reason FROM agent_decision")
    assert row == {"consumed_attempt": 2, "actor": "ann", "reason": "I looked"}


def test_a_replay_posted_twice_is_applied_once(held, world):
    first = decide(held, "replay", message_id="m1")
    decide(held, "replay", message_id="m1", created_at=clock.now_text())
    world.fail = TimeoutError("again")
    with opened(held, world) as journal:
        journal.recover()
        with pytest.raises(OutcomeUnknown), journal.task("t") as task:
            task.run(world.blind, "x")
        mailbox.post_message(
            held, {"kind": "decision", "decision": "replay", "task_id": "t", "step_index": 0, "message_id": first}
        )
        journal.context.apply_inbox()
        with pytest.raises(OutcomeUnknown), journal.task("t") as task:
            task.run(world.blind, "x")
    assert world.names() == ["blind"]


def test_a_second_approval_is_refused_while_the_first_waits_to_be_used(held, world):
    first, second = decide(held, "replay"), decide(held, "replay")
    with opened(held, world) as journal:
        journal.context.apply_inbox()
        assert (outcome(held, first), "another approval" in outcome(held, second)) == ("applied", True)


def test_a_later_decision_takes_the_place_of_an_approval_that_was_not_used(held, world):
    first, second = decide(held, "replay"), decide(held, "abandon")
    with opened(held, world) as journal:
        journal.context.apply_inbox()
        assert outcome(held, first) == "superseded: abandon by ann"
        assert outcome(held, second) == "applied"
        with pytest.raises(StepAbandoned), journal.task("t") as task:
            task.run(world.blind, "x")
    assert world.names() == []


def test_an_expired_approval_locks_nobody_out(held, world, tmp_path, monkeypatch):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    first = decide(held, "replay")
    with opened(held, world) as journal:
        journal.context.apply_inbox()
        moved.write_text("901")
        second = decide(held, "replay")
        journal.context.apply_inbox()
        assert (outcome(held, first), outcome(held, second)) == ("expired", "applied")


def test_an_approval_that_expires_before_it_is_sent_sends_nothing(held, world, tmp_path, monkeypatch):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    message = decide(held, "replay")
    with opened(held, world) as journal:
        journal.context.apply_inbox()
        assert outcome(held, message) == "applied"
        moved.write_text("901")
        with pytest.raises(OutcomeUnknown), journal.task("t") as task:
            task.run(world.blind, "x")
    assert outcome(held, message) == "expired"
    assert world.calls == []


def test_a_quarantined_read_starts_afresh_when_an_operator_says_so(path, world):
    @tool(effect="read_only")
    def look() -> str:
        return "seen"

    with opened(path, world) as journal:
        with pytest.raises(KeyboardInterrupt), journal.task("t") as task:
            task.run(tool(effect="read_only", name="look")(_interrupt))
        journal.store.write(lambda tx: tx.execute("UPDATE agent_step_journal SET starts = 3"), sync=False)
        with pytest.raises(StepHeld) as caught, journal.task("t") as task:
            task.run(look)
        assert caught.value.reason == "quarantined"
        decide(path, "replay", dispatches=0)
        journal.context.apply_inbox()
        with journal.task("t") as task:
            assert task.run(look) == "seen"


def _interrupt() -> None:
    raise KeyboardInterrupt
