"""`serve` runs all async handlers in one event loop, and names a handler that blocks it."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from typing import Any

from journal import Reply, tool
from tests.journal.agent import opened, serving, soon, status


class Client:
    """Like an HTTP client with a pool: it belongs to the loop that used it first, and to no other."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.free = asyncio.Semaphore(1)

    async def get(self, number: int) -> int:
        loop = asyncio.get_running_loop()
        self.loop = self.loop or loop
        if self.loop is not loop:
            raise RuntimeError("the client is bound to a different event loop")
        async with self.free:
            await asyncio.sleep(0.01)
        return number


def test_async_handlers_tools_and_models_share_one_client(path, world):
    client = Client()

    @tool(effect="mutating", status=lambda call: client.get(7))
    async def fetch(number: int) -> int:
        got = await client.get(number)
        if number == 5:
            raise TimeoutError("no answer")
        return got

    async def model(question: str) -> Reply:
        return Reply(str(await client.get(1)))

    async def handler(task: Any, number: int) -> int:
        reply = await task.ask(model, "q")
        return int(reply.content) + int(await task.run(fetch, number))

    def acts(task: Any, number: int) -> list[Any]:
        return list(task.act(lambda: Reply("", calls=[("fetch", {"number": number})])))

    with opened(path, world, handlers={"h": handler, "acts": acts}) as journal:
        journal.tools["fetch"] = fetch
        for number in range(6):
            journal.submit("h", task_id=f"t{number}", number=number)
            journal.submit("acts", task_id=f"a{number}", number=number)
        with serving(journal, concurrency=6):
            soon(lambda: all(status(path, f"{kind}{number}") == "completed" for kind in "ta" for number in range(6)))


def test_an_exit_in_one_handler_leaves_the_loop_to_the_others(path, world):
    async def exits(task: Any) -> None:
        async def leave() -> None:
            sys.exit(1)

        async with asyncio.TaskGroup() as group:
            group.create_task(leave())

    async def waits(task: Any) -> str:
        await asyncio.sleep(0.3)
        return "done"

    with opened(path, world, handlers={"exits": exits, "waits": waits}) as journal:
        journal.submit("waits", task_id="w")
        journal.submit("exits", task_id="e")
        with serving(journal):
            soon(lambda: status(path, "w") == "completed")
            soon(lambda: status(path, "e") == "waiting")


def test_a_handler_that_blocks_the_loop_is_named_in_the_log_once(path, world, caplog):
    release = threading.Event()

    async def blocks(task: Any) -> str:
        async def inner() -> str:
            release.wait(20)
            return "done"

        return await asyncio.create_task(inner())

    with opened(path, world, handlers={"blocks": blocks}) as journal, caplog.at_level(logging.WARNING, "journal"):
        journal.submit("blocks", task_id="slow-one")
        with serving(journal):
            soon(lambda: any("blocks the event loop" in record.getMessage() for record in caplog.records))
            release.set()
            soon(lambda: status(path, "slow-one") == "completed")
    (line,) = [record.getMessage() for record in caplog.records if "blocks the event loop" in record.getMessage()]
    assert line.startswith("task slow-one blocks the event loop")
    assert "threading.py" in line or "test_one_loop.py" in line
    assert "asyncio.to_thread" in line


def test_what_a_handler_leaves_running_in_a_branch_is_cancelled_with_it(path, world):
    cancelled = threading.Event()

    async def handler(task: Any) -> None:
        async def work() -> None:
            with task.branch("b"):
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.set()

        working = asyncio.create_task(work())
        await asyncio.sleep(0.01)
        assert not working.done()
        raise ValueError("its own")

    with opened(path, world, handlers={"h": handler}) as journal:
        journal.submit("h", task_id="t")
        with serving(journal):
            soon(lambda: status(path, "t") == "failed")
            assert cancelled.is_set()
