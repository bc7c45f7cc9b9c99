"""`serve` beside what is slow or broken: a provider that does not answer, a sleeping step, a message that is none."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

import pytest

from journal import StepWaiting, tool
from journal.inbox import mailbox
from journal.models import WaitReason
from journal.request import Request
from journal.tools import http_tool
from tests.journal.agent import opened, rows, serving, soon, start, status, steps_of, task_row, wait_of
from tests.journal.raw_server import RawServer, json_answer
from tests.journal.raw_server import serving as listening
from tests.journal.test_visits import Slow

# Its first life leaves the keyed intents of a script's task; then it serves, and submits a task of its own.
DAEMON = """
    import sys
    from journal import Journal, Request, http_tool, tool

    KEYED = {"p": {"key": {"placement": "header", "name": "Idempotency-Key"}, "retention": {"for": "24h"}}}

    @http_tool(effect="mutating", provider="p")
    def post(number: int) -> Request:
        return Request("POST", f"{sys.argv[2]}/{number}", json={"number": number})

    @tool(effect="read_only")
    def look() -> str:
        return "seen"

    def quick(task):
        return task.run(look)

    with Journal(sys.argv[1], agent="a", tools=[post, look], handlers={"quick": quick}, providers=KEYED) as journal:
        if sys.argv[3] == "script":
            with journal.task("script") as task:
                task.run(post, 1)
        journal.submit("quick", task_id="quick")
        journal.serve(concurrency=1)
    print("left", flush=True)
"""


@pytest.fixture
def slow():
    return Slow()


@pytest.fixture
def server(slow):
    with listening(slow) as listening_server:
        yield listening_server
        slow.answer_all()


@pytest.mark.slow
def test_an_unrelated_task_runs_and_a_signal_is_obeyed_while_recovery_waits_for_a_provider(path, server, slow):
    with start(DAEMON, path, server.url, "script") as agent:
        soon(lambda: len(slow.gates) == 1)
        os.kill(agent.pid, signal.SIGKILL)
    with start(DAEMON, path, server.url, "serve") as agent:
        soon(lambda: len(slow.gates) == 2)
        soon(lambda: status(path, "quick") == "completed")
        assert steps_of(path, "script")[0]["status"] == "pending"
        agent.send_signal(signal.SIGTERM)
        said, _ = agent.communicate(timeout=8)
    assert (agent.returncode, said) == (0, "left\n")
    assert [row["ended"] for row in rows(path, "SELECT ended FROM agent_boot")] == ["vanished", "clean"]


def test_a_status_that_is_slow_to_come_delays_no_task(path, world):
    gate = threading.Event()

    def find(call: Any) -> Any:
        world.asked.append(call.key)
        if len(world.asked) == 1:
            raise ConnectionError("down")
        gate.wait(20)
        return {"found": True}

    @tool(effect="mutating", status=find)
    def send(name: str) -> str:
        raise TimeoutError("lost")

    def quick(task: Any) -> Any:
        return task.run(world.read, 1)

    with opened(path, world, handlers={"quick": quick}, max_wait=0) as journal:
        journal.tools["send"] = send
        with pytest.raises(StepWaiting), journal.task("t") as task:
            task.run(send, "x")
        with serving(journal, concurrency=1):
            mailbox.post_message(path, {"kind": "status", "task_id": "t", "step_index": 0, "actor": "ann"})
            soon(lambda: len(world.asked) == 2)
            journal.submit("quick", task_id="u")
            soon(lambda: status(path, "u") == "completed")
            assert steps_of(path, "t")[0]["status"] == "pending"
            gate.set()
            soon(lambda: steps_of(path, "t")[0]["status"] == "committed")


def test_a_step_that_waits_for_its_time_gives_its_place_to_another_task(path, world):
    with listening(json_answer(429, b"{}", Retry_After="600")) as limited:
        post = _post(limited)

        def wait(task: Any) -> Any:
            return task.run(post, 1)

        def quick(task: Any) -> Any:
            return task.run(world.read, 1)

        keyed = {"p": {"key": {"placement": "header", "name": "Idempotency-Key"}, "retention": {"for": "24h"}}}
        with opened(path, world, handlers={"wait": wait, "quick": quick}, providers=keyed) as journal:
            journal.tools["post"] = post
            journal.submit("wait", task_id="t")
            journal.submit("quick", task_id="u")
            with serving(journal, concurrency=1):
                soon(lambda: status(path, "u") == "completed")
                assert status(path, "t") == "waiting"
    row = task_row(path, "t")
    assert wait_of(path, "t") == WaitReason("due", "t", 0)
    assert row["next_attempt_at"] == steps_of(path, "t")[0]["next_attempt_at"]


def test_a_step_that_waits_for_its_time_stops_with_its_process_and_is_no_crash(path):
    code = """
        import sys
        from journal import Journal, Request, http_tool

        @http_tool(effect="mutating")
        def post() -> Request:
            return Request("POST", "http://127.0.0.1:9/x", json={})

        def work(task):
            return task.run(post)

        with Journal(sys.argv[1], agent="a", tools=[post], handlers={"work": work}, max_wait=600) as journal:
            journal.submit("work", task_id="t")
            journal.serve()
    """
    with start(code, path) as agent:
        soon(lambda: _is_scheduled(path))
        agent.send_signal(signal.SIGTERM)
        agent.communicate(timeout=8)
    assert agent.returncode == 0
    assert (status(path, "t"), wait_of(path, "t")) == ("waiting", WaitReason("due", "t", 0))
    assert [row["ended"] for row in rows(path, "SELECT ended FROM agent_boot")] == ["clean"]


def test_a_step_held_by_a_wrong_clock_goes_on_in_the_first_boot_whose_clock_is_right(
    path, world, tmp_path, monkeypatch
):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))

    def work(task: Any) -> Any:
        return task.run(world.write, "p")

    def boot(offset: int, done: Callable[[], object]) -> None:
        moved.write_text(str(offset))
        with opened(path, world, handlers={"work": work}) as journal, serving(journal):
            journal.submit("work", task_id="t")
            soon(done)

    world.fail = TimeoutError("no answer")
    boot(7200, lambda: steps_of(path, "t") and steps_of(path, "t")[0]["next_attempt_at"])
    world.fail = None
    calls = len(world.calls)
    boot(0, lambda: steps_of(path, "t")[0]["hold_reason"] == "clock_suspect" and status(path, "t") == "waiting")
    assert len(world.calls) == calls
    boot(7300, lambda: status(path, "t") == "completed")
    assert len(world.calls) == calls + 1


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "submit", "message_id": "m1", "handler": "quick", "task_id": "x" * 600, "input": {}},
        {"kind": "submit", "message_id": "m1", "handler": "quick", "task_id": "a\0b", "input": {}},
        {"kind": "decision", "message_id": None, "decision": "replay", "task_id": "t", "step_index": 0},
        {"kind": "decision", "message_id": "", "decision": "cancel_task", "task_id": "t"},
        {"kind": "decision", "decision": "cancel_task", "task_id": "t"},
    ],
    ids=["long task id", "NUL in a task id", "null message id", "empty message id", "no message id"],
)
def test_a_message_nobody_can_mean_is_set_aside_and_serve_goes_on(path, world, body):
    def quick(task: Any) -> Any:
        return task.run(world.read, 1)

    with opened(path, world, handlers={"quick": quick}) as journal:
        folder = mailbox.inbox_path(path)
        folder.mkdir(exist_ok=True)
        (folder / "0.json").write_text(json.dumps(body))
        with serving(journal, concurrency=1):
            soon(lambda: not mailbox.list_messages(path))
            journal.submit("quick", task_id="good")
            soon(lambda: status(path, "good") == "completed")
    assert [file.name for file in folder.iterdir()] == ["0.refused"]
    assert [row["task_id"] for row in rows(path, "SELECT task_id FROM agent_task")] == ["good"]


def _is_scheduled(path) -> bool:
    try:
        return any(step["next_attempt_at"] for step in steps_of(path, "t"))
    except sqlite3.OperationalError:
        return False  # the agent is making its journal


def _post(server: RawServer) -> Any:
    @http_tool(effect="mutating", provider="p")
    def post(number: int) -> Request:
        return Request("POST", f"{server.url}/x", json={"number": number})

    return post
