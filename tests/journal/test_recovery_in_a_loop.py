"""An async script calls `journal.recover()` where its event loop runs: async tools are run and asked all the same."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from journal import Journal, tool
from tests.journal.agent import DAY, rows, steps_of


def interrupted_then_recovered(path: Any, declared: Any) -> None:
    async def script(*, recover: bool) -> None:
        with Journal(path, agent="triage", tools=[declared]) as journal:
            if recover:
                journal.recover()
                return
            with journal.task("t") as task:
                await task.run(declared, "x")

    with suppress(SystemExit):
        asyncio.run(script(recover=False))
    asyncio.run(script(recover=True))


def test_an_async_keyed_tool_is_replayed_by_a_recovery_inside_a_loop(path):
    calls: list[int] = []

    @tool(effect="mutating", keyed=DAY)
    async def put(call: Any, name: str) -> str:
        await asyncio.sleep(0)
        calls.append(call.attempt)
        if call.attempt == 1:
            raise SystemExit
        return name

    interrupted_then_recovered(path, put)
    assert calls == [1, 2]
    found = rows(path, "SELECT verdict FROM agent_step_attempt")
    assert [row["verdict"] for row in found] == ["unknown", "applied"]


def test_an_async_status_is_asked_by_a_recovery_inside_a_loop(path):
    async def find(call: Any) -> str:
        await asyncio.sleep(0)
        return "found"

    @tool(effect="mutating", status=find)
    async def leave(name: str) -> str:
        raise SystemExit

    interrupted_then_recovered(path, leave)
    step = steps_of(path, "t")[0]
    assert (step["status"], step["output_json"]) == ("committed", '"found"')
