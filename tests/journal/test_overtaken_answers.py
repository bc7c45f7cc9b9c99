"""An answer that a first dispatch overtook: what was found may be our own effect, and is no proof of another's."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from journal import Journal, StepWaiting, clock, http_tool
from journal.inbox import mailbox
from journal.request import Request
from tests.journal.agent import opened, rows, steps_of
from tests.journal.operator import decide, outcome
from tests.journal.raw_server import json_answer
from tests.journal.raw_server import serving as listening

ASKED = {"status": {"request": "GET /o/{key}", "interpret": [{"status": 200, "is": "exists"}]}}


def after(path, seconds: float) -> str:
    """The time so long after the first attempt's mark."""
    (attempt,) = rows(path, "SELECT started_at FROM agent_step_attempt")
    return clock.text(clock.parse(attempt["started_at"]) + timedelta(seconds=seconds))


def posted(path, **more: str) -> None:
    body = {"kind": "evidence", "task_id": "t", "step_index": 0, "attempt": 0, "answer": "exists"}
    mailbox.post_message(path, {**body, "asked_at": after(path, -1), "asked_boottime": 1.0, "os_boot_id": "x", **more})


def test_what_was_found_while_the_first_dispatch_was_under_way_leaves_the_step_to_a_person(held, world):
    posted(held, answered_at=after(held, 0.1))
    with opened(held, world) as journal:
        journal.recover()
        assert steps_of(held, "t")[0]["hold_reason"] == "unknown_outcome"
        replay = decide(held, "replay")
        journal.context.apply_inbox()
    assert outcome(held, replay) == "applied"
    (kept,) = rows(held, "SELECT answer, detail FROM agent_evidence")
    assert kept["answer"] == "unknown"
    assert "the first dispatch was under way" in kept["detail"]


@pytest.mark.parametrize("seconds", [-0.5, None])
def test_what_was_found_before_anything_was_sent_is_held_as_somebody_elses(held, world, seconds):
    posted(held, **({} if seconds is None else {"answered_at": after(held, seconds)}))
    with opened(held, world) as journal:
        journal.recover()
    assert steps_of(held, "t")[0]["hold_reason"] == "key_seen_before"


def test_a_question_overtaken_by_its_own_agents_send_holds_nothing(path, tmp_path, monkeypatch):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    asked, sent = threading.Event(), threading.Event()

    def provider(connection, request):
        if request.startswith(b"POST"):
            sent.set()  # applied; the answer is lost
        else:
            asked.set()
            sent.wait(20)
            json_answer(200, b'{"id": 7}')(connection, request)

    with listening(provider) as closed:
        url = closed.url

    @http_tool(effect="mutating", provider="p")
    def post(number: int) -> Request:
        return Request("POST", f"{url}/x", json={"number": number})

    with Journal(path, agent="a", tools=[post], providers={"p": ASKED}, max_wait=0) as journal:
        with pytest.raises(StepWaiting), journal.task("t") as task:
            task.run(post, 1)
        moved.write_text("600")
        mailbox.post_message(path, {"kind": "status", "task_id": "t", "step_index": 0, "actor": "ann"})
        with listening(provider, port=closed.port):
            asking = threading.Thread(target=journal.context.apply_inbox)
            asking.start()
            assert asked.wait(20)
            with journal.task("t") as task:
                assert task.run(post, 1) == {"id": 7}
            asking.join(20)
    answers = rows(path, "SELECT attempt, answer FROM agent_evidence ORDER BY attempt")
    assert [tuple(answer.values()) for answer in answers] == [(0, "unknown"), (2, "exists")]
    assert steps_of(path, "t")[0]["status"] == "committed"
