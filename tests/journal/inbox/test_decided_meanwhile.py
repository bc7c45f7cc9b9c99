"""Decisions that arrive at an awkward moment: beside a running sibling, without the means, about an ended task."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from journal import OutcomeUnknown, StepAbandoned, StepHeld, StepWaiting, clock, env, http_tool, tool
from journal.effects import Invoke, Program, Read, Write
from journal.inbox import mailbox
from journal.request import Request
from journal.settle import settle
from tests.journal.agent import opened, rows, serving, soon, status, steps_of, task_row
from tests.journal.operator import decide, outcome
from tests.journal.raw_server import RawServer
from tests.journal.raw_server import serving as listening


def is_held(path, task_id: str) -> bool:
    return any(step["hold_reason"] for step in steps_of(path, task_id))


def test_a_replay_approved_while_a_sibling_runs_is_sent_without_a_restart(path, world):
    gate = threading.Event()

    @tool(effect="mutating")
    async def risky(number: int) -> int:
        world.calls.append(("risky", number))
        if len(world.calls) == 1:
            raise TimeoutError("no answer")
        return number

    @tool(effect="read_only")
    async def slow() -> str:
        while not gate.is_set():
            await asyncio.sleep(0.01)
        return "done"

    async def work(task: Any) -> Any:
        found = await asyncio.gather(task.run(risky, 1), task.run(slow), return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return found

    with opened(path, world, handlers={"work": work}) as journal:
        journal.submit("work", task_id="t")
        with serving(journal):
            soon(lambda: is_held(path, "t"))
            message = decide(path, "replay")
            soon(lambda: outcome(path, message))
            assert (outcome(path, message), status(path, "t")) == ("applied", "running")
            gate.set()
            soon(lambda: status(path, "t") == "completed")
    assert world.names() == ["risky", "risky"]


def test_an_abandon_beside_a_running_parent_reaches_the_handler(path, world):
    gate = threading.Event()
    seen: list[str] = []

    @tool(effect="read_only")
    def slow() -> str:
        gate.wait(20)
        return "done"

    def work(task: Any) -> str:
        held: StepHeld | None = None
        try:
            with task.branch("a") as branch:
                branch.run(world.blind, "x")
        except StepHeld as error:
            held = error
        except StepAbandoned as error:
            seen.append(error.reason)
        task.run(slow)
        if held is not None:
            raise held
        return "went on"

    world.fail = TimeoutError("no answer")
    with opened(path, world, handlers={"work": work}) as journal:
        journal.submit("work", task_id="t")
        with serving(journal):
            soon(lambda: is_held(path, "t/a"))
            message = decide(path, "abandon", "t/a")
            soon(lambda: outcome(path, message))
            gate.set()
            soon(lambda: status(path, "t") == "completed")
    assert seen == ["I looked"]
    assert world.names() == ["blind"]


def _no_answer(connection: Any, request: bytes) -> None:
    """Close the connection without a word: the effect may have happened."""


def _post(server: RawServer) -> Any:
    @http_tool(effect="mutating")
    def post(number: int) -> Request:
        headers = {"Authorization": env("SOME_TOKEN")}
        return Request("POST", f"{server.url}/x", headers=headers, json={"number": number})

    return post


def test_an_approval_that_lacks_its_credential_blocks_no_other_decision(path, world, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "a-credential-of-a-test")
    with listening(_no_answer) as server:
        post = _post(server)
        with opened(path, world) as journal:
            journal.tools["post"] = post
            with pytest.raises(OutcomeUnknown), journal.task("t") as task:
                task.run(post, 1)
            monkeypatch.delenv("SOME_TOKEN")
            approved = decide(path, "replay")
            journal.context.apply_inbox()
            assert steps_of(path, "t")[0]["hold_reason"] == "missing_reference"
            abandoned = decide(path, "abandon")
            journal.context.apply_inbox()
        assert len(server.received) == 1
    assert outcome(path, approved) == "superseded: abandon by ann"
    assert (outcome(path, abandoned), steps_of(path, "t")[0]["status"]) == ("applied", "abandoned")


def test_a_step_of_a_cancelled_task_is_not_replayed_and_may_be_abandoned(path, world):
    world.fail = TimeoutError("no answer")
    with opened(path, world) as journal:
        with pytest.raises(OutcomeUnknown), journal.task("t") as task:
            task.run(world.blind, "x")
        mailbox.post_message(path, {"kind": "cancel", "task_id": "t", "actor": "ann", "reason": "wrong one"})
        journal.context.apply_inbox()
        replay = decide(path, "replay")
        journal.context.apply_inbox()
        assert outcome(path, replay) == "refused: the task is cancelled: nothing of it is sent any more"
        abandon = decide(path, "abandon")
        journal.context.apply_inbox()
    assert (outcome(path, abandon), steps_of(path, "t")[0]["status"]) == ("applied", "abandoned")
    assert world.names() == ["blind"]


@pytest.mark.parametrize("kind", ["status", "evidence"])
def test_a_message_about_a_step_of_a_cancelled_task_sends_nothing(path, world, kind, tmp_path, monkeypatch):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    world.fail = TimeoutError("no answer")
    with opened(path, world, max_wait=0) as journal:
        with pytest.raises(StepWaiting), journal.task("t") as task:
            task.run(world.write, "p")
        mailbox.post_message(path, {"kind": "cancel", "task_id": "t", "actor": "ann", "reason": "wrong one"})
        journal.context.apply_inbox()
        moved.write_text("3600")
        moment = clock.moment()
        mailbox.post_message(
            path,
            {
                "kind": kind,
                "task_id": "t",
                "step_index": 0,
                "answer": "unknown",
                "attempt": 1,
                "asked_at": clock.text(moment.wall),
                "asked_boottime": moment.boot,
                "os_boot_id": moment.os_boot_id,
            },
        )
        report = journal.context.apply_inbox()
        assert report.settled == 0
    assert world.names() == ["write"]
    assert (steps_of(path, "t")[0]["status"], task_row(path, "t")["status"]) == ("pending", "cancelled")


def _driven(protocol: Program[Any], *, before_mark: Callable[[], None]) -> None:
    """Run a protocol to its end; what happens right before its first synced write happens in `before_mark`."""
    operation, waits = next(protocol), True
    while True:
        if waits and isinstance(operation, Write) and operation.sync:
            waits = False
            before_mark()
        assert isinstance(operation, Read | Write | Invoke)
        operation = protocol.send(operation.function() if isinstance(operation, Invoke) else operation.perform())


def test_an_approval_that_comes_between_the_look_and_the_mark_is_used_up_by_that_send(
    path, world, tmp_path, monkeypatch
):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    monkeypatch.setenv("SOME_TOKEN", "a-credential-of-a-test")
    with listening(_no_answer) as closed:
        post = _post(closed)
    with opened(path, world, max_wait=0) as journal:
        journal.tools["post"] = post
        with pytest.raises(StepWaiting), journal.task("t") as task:
            task.run(post, 1)
        moved.write_text("400")
        messages: list[str] = []

        def approve() -> None:
            messages.append(decide(path, "replay", dispatches=0))
            journal.context.take_messages()

        with listening(_no_answer, port=closed.port) as server, pytest.raises(OutcomeUnknown):
            _driven(settle.settle_step(journal.context.settle_context("task"), "t", 0), before_mark=approve)
    (message,) = messages
    assert (len(server.received), outcome(path, message)) == (1, "applied")
    attempts = rows(path, "SELECT verdict, decision_id FROM agent_step_attempt ORDER BY attempt")
    assert [tuple(attempt.values()) for attempt in attempts] == [("not_sent", None), ("unknown", message)]
