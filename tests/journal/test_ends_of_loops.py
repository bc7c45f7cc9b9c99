"""The end of an event loop cancels every task in it; what a thread does, or was given to do, goes on to its end."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from journal import Request, http_tool, tool
from tests.journal.agent import opened, rows, steps_of
from tests.journal.raw_server import serving


async def beside_a_branch(task: Any, step: Any, fails: Any, cancelled: threading.Event) -> None:
    """What a plain gather does whose other member fails: the branch is in its step when the loop ends."""

    async def branch() -> None:
        with task.branch("b") as child:
            await child.run(step, "x")

    async def watch() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    watching = asyncio.create_task(watch())
    await asyncio.gather(branch(), fails())
    await watching


def verdicts(path: Any) -> list[str]:
    return [row["verdict"] for row in rows(path, "SELECT verdict FROM agent_step_attempt")]


def test_a_request_under_way_when_its_loop_ends_keeps_its_answer(path, world):
    sent, cancelled = threading.Event(), threading.Event()

    def answer(connection: Any, request: bytes) -> None:
        sent.set()
        assert cancelled.wait(10)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async def fails() -> None:
        while not sent.is_set():
            await asyncio.sleep(0.001)
        raise ValueError("no")

    with serving(answer) as server:

        @http_tool(effect="mutating")
        async def post(name: str) -> Request:
            return Request("POST", f"{server.url}/x", json={"name": name})

        async def main(journal: Any) -> None:
            with journal.task("t") as task:
                await beside_a_branch(task, post, fails, cancelled)

        with opened(path, world) as journal, pytest.raises(ValueError, match="no"):
            asyncio.run(main(journal))
    assert (verdicts(path), steps_of(path, "t/b")[0]["status"]) == (["applied"], "committed")


def test_an_outcome_that_waits_for_a_thread_when_its_loop_ends_is_written(path, world):
    cancelled = threading.Event()

    @tool(effect="mutating")
    async def act(name: str) -> str:
        # From now on the loop has no thread left, so that the outcome's write must wait for one.
        asyncio.get_running_loop().run_in_executor(None, cancelled.wait, 10)
        world.calls.append(("act", name))
        return name

    async def fails() -> None:
        while not world.calls:
            await asyncio.sleep(0.001)
        for _ in range(20):
            await asyncio.sleep(0)
        raise ValueError("no")

    async def main(journal: Any) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        with journal.task("t") as task:
            await beside_a_branch(task, act, fails, cancelled)

    with opened(path, world) as journal, pytest.raises(ValueError, match="no"):
        asyncio.run(main(journal))
    assert (verdicts(path), steps_of(path, "t/b")[0]["status"]) == (["applied"], "committed")
