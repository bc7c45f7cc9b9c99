"""An operator's decision is one effect: bound to what was shown, applied once, in time, by the writer."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from journal import (
    Journal,
    OutcomeUnknown,
    StepAbandoned,
    StepHeld,
    StepWaiting,
    TaskCancelled,
    TaskConflict,
    UsageError,
    clock,
    inbox,
    post_submit,
    tool,
)
from tests.journal.agent import World, opened, rows, steps_of, task_row


@pytest.fixture
def path(tmp_path):
    return tmp_path / "j.db"


@pytest.fixture
def world():
    return World()


@pytest.fixture
def held(path, world):
    """The journal of a task whose only step is held: its outcome is unknown and nothing can tell."""
    world.fail = TimeoutError("no answer")
    with opened(path, world) as journal, pytest.raises(OutcomeUnknown), journal.task("t") as task:
        task.run(world.blind, "x")
    world.fail = None
    world.calls.clear()
    return path


def decide(path, kind: str, **other: Any) -> str:
    step = steps_of(path, "t")[0]
    body = {
        "kind": "decision",
        "decision": kind,
        "task_id": "t",
        "step_index": 0,
        "key": step["idempotency_key"],
        "payload_sha256": step["payload_sha256"],
        "dispatches": 1,
        "actor": "ann",
        "reason": "I looked",
        "expires_at": clock.text(clock.wall() + timedelta(minutes=15)),
    }
    return inbox.post(path, {**body, **other})


def outcome(path, message_id: str) -> str:
    (row,) = rows(path, "SELECT outcome FROM agent_decision WHERE message_id = ?", message_id)
    return str(row["outcome"])


def resume(path, world, tool_name: str = "blind") -> Any:
    with opened(path, world) as journal:
        journal.recover()
        with journal.task("t") as task:
            return task.run(getattr(world, tool_name), "x")


PAST = clock.text(clock.wall() - timedelta(seconds=1))


@pytest.mark.parametrize("kind", ["replay", "mark_committed", "mark_not_applied", "abandon"])
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"key": "0" * 64}, "the key is not the one that was shown"),
        ({"key": None}, "the key is not the one that was shown"),
        ({"payload_sha256": "0" * 64}, "the payload is not the one that was shown"),
        ({"dispatches": 0}, "dispatched again"),
        ({"dispatches": 2}, "dispatched again"),
        ({"dispatches": None}, "dispatched again"),
        ({"dispatches": "1"}, "dispatched again"),
        ({"expires_at": PAST}, "expired"),
        ({"expires_at": None}, "expired"),
        ({"step_index": 1}, "no such step"),
        ({"task_id": "other"}, "no such step"),
    ],
)
def test_a_decision_on_anything_but_what_was_shown_is_refused_in_words(held, world, kind, wrong, why):
    message = decide(held, kind, **wrong)
    with opened(held, world) as journal:
        journal.recover()
    assert outcome(held, message).startswith("refused: ")
    assert why in outcome(held, message)
    step = steps_of(held, "t")[0]
    assert (step["status"], step["hold_reason"]) == ("pending", "unknown_outcome")
    assert world.calls == []


@pytest.mark.parametrize("kind", ["approve", "reject", "replay_as_new", "explode"])
def test_a_decision_that_does_not_fit_is_refused(held, world, kind):
    message = decide(held, kind)
    with opened(held, world) as journal:
        journal.recover()
    assert "not a decision" in outcome(held, message)


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
        inbox.post(
            held, {"kind": "decision", "decision": "replay", "task_id": "t", "step_index": 0, "message_id": first}
        )
        journal.apply_inbox()
        with pytest.raises(OutcomeUnknown), journal.task("t") as task:
            task.run(world.blind, "x")
    assert world.names() == ["blind"]


def test_a_second_approval_is_refused_while_the_first_waits_to_be_used(held, world):
    first, second = decide(held, "replay"), decide(held, "replay")
    with opened(held, world) as journal:
        journal.apply_inbox()
        assert (outcome(held, first), "another approval" in outcome(held, second)) == ("applied", True)


def test_a_later_decision_takes_the_place_of_an_approval_that_was_not_used(held, world):
    first, second = decide(held, "replay"), decide(held, "abandon")
    with opened(held, world) as journal:
        journal.apply_inbox()
        assert outcome(held, first) == "refused: superseded: abandon by ann"
        assert outcome(held, second) == "applied"
        with pytest.raises(StepAbandoned), journal.task("t") as task:
            task.run(world.blind, "x")
    assert world.names() == []


def test_an_expired_approval_locks_nobody_out(held, world, tmp_path, monkeypatch):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    first = decide(held, "replay")
    with opened(held, world) as journal:
        journal.apply_inbox()
        moved.write_text("901")
        second = decide(held, "replay")
        journal.apply_inbox()
        assert (outcome(held, first), outcome(held, second)) == ("refused: expired before it was sent", "applied")


def test_an_approval_that_expires_before_it_is_sent_sends_nothing(held, world, tmp_path, monkeypatch):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    message = decide(held, "replay")
    with opened(held, world) as journal:
        journal.apply_inbox()
        assert outcome(held, message) == "applied"
        moved.write_text("901")
        with pytest.raises(OutcomeUnknown), journal.task("t") as task:
            task.run(world.blind, "x")
    assert "expired before it was sent" in outcome(held, message)
    assert world.calls == []


def test_a_decision_on_a_step_in_flight_is_refused(path, world):
    inside, leave = threading.Event(), threading.Event()

    @tool(effect="mutating")
    def slow(name: str) -> str:
        inside.set()
        leave.wait(10)
        return name

    with opened(path, world) as journal:

        def work() -> None:
            with journal.task("t") as task:
                task.run(slow, "x")

        thread = threading.Thread(target=work)
        thread.start()
        inside.wait(10)
        message = decide(path, "abandon")
        journal.apply_inbox()
        leave.set()
        thread.join()
    assert "in flight" in outcome(path, message)
    assert steps_of(path, "t")[0]["status"] == "committed"


def test_a_decision_on_an_ended_step_is_refused(held, world):
    decide(held, "abandon")
    message = decide(held, "mark_committed", output=1)
    with opened(held, world) as journal:
        journal.apply_inbox()
    assert "abandoned already" in outcome(held, message)


def test_mark_committed_gives_the_handler_the_operators_output(held, world):
    message = decide(held, "mark_committed", output={"id": 7, "tags": ["a"]}, reference="TICKET-1")
    assert resume(held, world) == {"id": 7, "tags": ["a"]}
    step = steps_of(held, "t")[0]
    assert (step["status"], step["reference"], world.calls) == ("committed", "TICKET-1", [])
    assert outcome(held, message) == "applied"


def test_mark_committed_without_an_output_gives_none(held, world):
    decide(held, "mark_committed")
    assert resume(held, world) is None


def test_mark_not_applied_holds_the_step_until_a_replay_sends_it_under_the_same_key(held, world):
    before = steps_of(held, "t")[0]
    decide(held, "mark_not_applied")
    with pytest.raises(StepHeld) as caught:
        resume(held, world)
    assert (caught.value.reason, world.calls) == ("not_applied", [])
    (attempt,) = rows(held, "SELECT verdict, kind FROM agent_step_attempt")
    assert attempt == {"verdict": "no_effect", "kind": "settled"}
    decide(held, "replay")
    assert resume(held, world) == "x"
    after = steps_of(held, "t")[0]
    assert (after["idempotency_key"], after["key_generation"]) == (before["idempotency_key"], 0)
    assert (after["arguments_json"], world.names()) == (before["arguments_json"], ["blind"])


def test_abandon_ends_the_step_and_the_handler_is_told_why(held, world):
    decide(held, "abandon", reason="it was refunded")
    for _ in range(2):
        with pytest.raises(StepAbandoned) as caught:
            resume(held, world)
        assert caught.value.reason == "it was refunded"
    assert world.calls == []
    assert task_row(held, "t")["status"] == "failed"


def test_a_model_step_is_not_committed_by_hand_and_a_read_has_no_effect_to_deny(path, world):
    def cut(question: str) -> Any:
        raise KeyboardInterrupt

    with opened(path, world) as journal:
        with pytest.raises(KeyboardInterrupt), journal.task("t") as task:
            task.ask(cut, "q")
        messages = [decide(path, kind, dispatches=0) for kind in ("mark_committed", "mark_not_applied")]
        journal.apply_inbox()
    assert all(outcome(path, message).startswith("refused: a model") for message in messages)


def test_a_status_message_asks_at_once_and_adopts_what_exists(path, world):
    asked: list[Any] = []
    answer: list[Any] = [RuntimeError("down")]

    def find(call: Any) -> Any:
        asked.append(call.key)
        if isinstance(answer[0], Exception):
            raise answer[0]
        return answer[0]

    @tool(effect="mutating", status=find)
    def send(name: str) -> str:
        raise TimeoutError("no answer")

    with opened(path, world, max_wait=0) as journal, journal.task("t") as task:
        journal.tools["send"] = send
        with pytest.raises(StepWaiting):
            task.run(send, "x")
    with Journal(path, agent="triage", tools=[send]) as journal:
        answer[0] = {"found": True}
        before = len(asked)
        inbox.post(path, {"kind": "status", "task_id": "t", "step_index": 0, "actor": "ann"})
        journal.apply_inbox()
        assert len(asked) == before + 1
    assert steps_of(path, "t")[0]["status"] == "committed"


def test_a_submit_conflict_is_recorded_and_the_first_submission_stands(path, world):
    def triage(task: Any, number: int) -> int:
        return number

    post_submit(path, "triage", task_id="t", number=1)
    post_submit(path, "triage", task_id="t", number=1)
    post_submit(path, "triage", task_id="t", number=2)
    with opened(path, world, handlers={"triage": triage}) as journal:
        journal.recover()
        row = task_row(path, "t")
        assert (row["input_json"], row["status"]) == ('{"number": 1}', "queued")
        assert "other input" in row["conflict"]
        assert journal.submit("triage", task_id="t", number=1).task_id == "t"
        with pytest.raises(TaskConflict):
            journal.submit("triage", task_id="t", number=2)
        with pytest.raises(UsageError, match="unknown"):
            journal.submit("nobody", task_id="u")
        with pytest.raises(UsageError, match="number"):
            journal.submit("triage", task_id="u", wrong=1)


def test_a_cancelled_task_takes_no_further_step_and_its_intents_stay_as_they_are(held, world):
    with opened(held, world) as journal:
        task = journal.task("u")
        task.run(world.read, 1)
        for name in ("t", "u"):
            inbox.post(held, {"kind": "cancel", "task_id": name, "actor": "ann", "reason": "wrong one"})
        journal.apply_inbox()
        with pytest.raises(TaskCancelled, match="wrong one"):
            task.run(world.read, 2)
        task.leave(None)
        with pytest.raises(UsageError, match="cancelled"):
            journal.task("t")
    assert [task_row(held, name)["status"] for name in ("t", "u")] == ["cancelled", "cancelled"]
    assert steps_of(held, "t")[0]["status"] == "pending"
    assert world.calls == [("read", 1)]


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
        journal.apply_inbox()
        with journal.task("t") as task:
            assert task.run(look) == "seen"


def _interrupt() -> None:
    raise KeyboardInterrupt
