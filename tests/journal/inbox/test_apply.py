"""An operator's decision is bound to what was shown, and ends a step as it says or is refused in words."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from journal import StepAbandoned, StepHeld, clock, tool
from journal.store.sql import steps
from tests.journal.agent import opened, resume, rows, steps_of, task_row
from tests.journal.operator import decide, outcome

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
        ({"expires_at": PAST}, "expired: its time was over"),
        ({"expires_at": None}, "until when it counts"),
        ({"step_index": 1}, "no such step"),
        ({"task_id": "other"}, "no such step"),
    ],
)
def test_a_decision_on_anything_but_what_was_shown_is_refused_in_words(held, world, kind, wrong, why):
    message = decide(held, kind, **wrong)
    with opened(held, world) as journal:
        journal.recover()
    assert outcome(held, message).startswith(("refused: ", "expired: "))
    assert why in outcome(held, message)
    step = steps_of(held, "t")[0]
    assert (step["status"], step["hold_reason"]) == ("pending", "unknown_outcome")
    assert world.calls == []


@pytest.mark.parametrize("kind", ["replay", "mark_not_applied"])
def test_a_key_that_the_provider_knew_before_is_neither_replayed_nor_denied(held, world, kind):
    message = decide(held, kind)
    with opened(held, world) as journal:
        journal.store.write(lambda tx: steps.hold_step(tx, "t", 0, "key_seen_before", "seen"), sync=False)
        journal.context.apply_inbox()
        assert "refused: the provider knew the key" in outcome(held, message)
    assert steps_of(held, "t")[0]["hold_reason"] == "key_seen_before"
    assert world.calls == []


@pytest.mark.parametrize("kind", ["approve", "reject", "replay_as_new", "explode"])
def test_a_decision_that_does_not_fit_is_refused(held, world, kind):
    message = decide(held, kind)
    with opened(held, world) as journal:
        journal.recover()
    assert "not a decision" in outcome(held, message)


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
        journal.context.apply_inbox()
        leave.set()
        thread.join()
    assert "in flight" in outcome(path, message)
    assert steps_of(path, "t")[0]["status"] == "committed"


def test_a_decision_on_an_ended_step_is_refused(held, world):
    decide(held, "abandon")
    message = decide(held, "mark_committed", output=1)
    with opened(held, world) as journal:
        journal.context.apply_inbox()
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
        journal.context.apply_inbox()
    assert all(outcome(path, message).startswith("refused: a model") for message in messages)
