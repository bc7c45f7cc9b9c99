"""Messages that are no decisions: a question asked at once, a submission that stands, a task that is cancelled."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from journal import Journal, StepWaiting, TaskCancelled, TaskConflict, UsageError, clock, post_submit, tool
from journal.http.secrets import Secrets
from journal.inbox import mailbox
from journal.inbox.apply import apply_message
from tests.journal.agent import opened, rows, steps_of, task_row
from tests.journal.operator import decide, outcome


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
        mailbox.post_message(path, {"kind": "status", "task_id": "t", "step_index": 0, "actor": "ann"})
        journal.context.apply_inbox()
        assert len(asked) == before + 1
    assert steps_of(path, "t")[0]["status"] == "committed"


@pytest.mark.parametrize(
    ("bound", "asks"),
    [({}, True), ({"expires_at": "2001-01-01T00:00:00Z"}, False), ({"dispatches": 7}, False), ({"key": "k"}, False)],
)
def test_a_question_bound_to_a_page_is_asked_in_its_time_and_about_that_step_alone(held, world, bound, asks):
    step = steps_of(held, "t")[0]
    body = {"kind": "status", "message_id": "ab" * 16, "task_id": "t", "step_index": 0, "actor": "ann"}
    shown = {"key": step["idempotency_key"], "payload_sha256": step["payload_sha256"], "dispatches": 1}
    expires_at = clock.text(clock.wall() + timedelta(minutes=15))
    message = mailbox.Message(held, "ab" * 16, "status", {**body, **shown, "expires_at": expires_at, **bound})
    with opened(held, world) as journal:
        apply = partial(apply_message, message=message, agent="triage", secrets=Secrets())
        done = journal.store.write(apply, sync=False)
    assert (done.ask, done.refused, "nothing to ask: " in done.sentence) == (asks, not asks, not asks)


def test_a_held_step_that_a_message_is_about_is_reported_once(held, world):
    mailbox.post_message(held, {"kind": "status", "task_id": "t", "step_index": 0, "actor": "ann"})
    with opened(held, world) as journal:
        report = journal.recover()
    assert (report.held, report.messages, len(report.lines)) == (1, 1, 2)


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
            mailbox.post_message(held, {"kind": "cancel", "task_id": name, "actor": "ann", "reason": "wrong one"})
        journal.context.apply_inbox()
        with pytest.raises(TaskCancelled, match="wrong one"):
            task.run(world.read, 2)
        task.leave(None)
        with pytest.raises(UsageError, match="cancelled"):
            journal.task("t")
    assert [task_row(held, name)["status"] for name in ("t", "u")] == ["cancelled", "cancelled"]
    assert steps_of(held, "t")[0]["status"] == "pending"
    assert world.calls == [("read", 1)]


ANSWER = {"kind": "evidence", "task_id": "t", "step_index": 0, "attempt": 1, "answer": "unknown", "os_boot_id": "x"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"http_status": "200"},
        {"http_status": True},
        {"asked_boottime": "nan"},
        {"answered_at": "now"},
        {"asked_at": "0999-12-31T23:59:59Z"},
        {"answer": "no"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_an_answer_with_a_word_nobody_can_read_is_set_aside(held, world, wrong):
    mailbox.post_message(held, {**ANSWER, "asked_at": clock.now_text(), "asked_boottime": 1.0, **wrong})
    with opened(held, world) as journal:
        assert "refused" in journal.recover().lines[0]
    assert rows(held, "SELECT * FROM agent_evidence") == []
    assert mailbox.list_messages(held) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"created_at": "yesterday"},
        {"created_at": ""},
        {"created_at": "0999-01-01T00:00:00Z"},
        {"expires_at": "tomorrow"},
    ],
)
def test_a_decision_with_a_time_nobody_can_read_is_set_aside_and_stops_no_later_recovery(held, world, wrong):
    message = decide(held, "replay", **wrong)
    with opened(held, world) as journal:
        assert "refused" in journal.recover().lines[0]
        assert journal.recover().held == 1
    assert outcome(held, message) == ""


def test_a_cancellation_of_an_ended_task_is_kept_as_refused(path, world):
    with opened(path, world) as journal:
        with journal.task("t") as task:
            task.run(world.read, 1)
        message = decide(path, "cancel_task")
        (applied,) = [line for line in journal.context.apply_inbox().lines if "cancel" in line]
    assert (outcome(path, message), task_row(path, "t")["status"]) == (
        "refused: the task had ended, or never was",
        "completed",
    )
    assert applied == "cancel t: refused: the task had ended, or never was"
