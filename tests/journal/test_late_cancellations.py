"""A cancellation that arrives when a step's call is over: the step is committed, and its task takes no further one."""

from __future__ import annotations

import asyncio

import pytest

from journal import TaskClosed, tool
from tests.journal.agent import opened, steps_of


def test_a_cancellation_in_the_last_write_of_a_step_ends_what_the_task_gives_out(path, world):
    @tool(effect="read_only")
    async def look(name: str) -> str:
        mine = asyncio.current_task()
        assert mine is not None
        # Not before the output's write has begun: this call returns first.
        asyncio.get_running_loop().call_soon(mine.cancel)
        return name

    async def main() -> None:
        with opened(path, world) as journal, journal.task("t") as task:
            with pytest.raises(asyncio.CancelledError):
                await task.run(look, "x")
            # What `asyncio.timeout` does: the cancellation becomes an error that a handler may go on after.
            with pytest.raises(TaskClosed, match="after: CancelledError"):
                task.run(world.write, "fallback")

    async def resumed() -> str:
        with opened(path, world) as journal, journal.task("t") as task:
            return str(await task.run(look, "x"))

    asyncio.run(main())
    (step,) = steps_of(path, "t")
    assert (step["status"], step["output_json"], world.calls) == ("committed", '"x"', [])
    assert asyncio.run(resumed()) == "x"


def test_a_cancellation_in_the_last_write_of_a_step_that_failed_is_not_lost(path, world):
    @tool(effect="read_only")
    async def look() -> None:
        mine = asyncio.current_task()
        assert mine is not None
        asyncio.get_running_loop().call_soon(mine.cancel)
        raise ValueError("no")

    async def main() -> None:
        with opened(path, world) as journal, journal.task("t") as task:
            with pytest.raises(asyncio.CancelledError):
                await task.run(look)
            with pytest.raises(TaskClosed):
                task.run(world.write, "fallback")

    asyncio.run(main())
    assert (steps_of(path, "t")[0]["status"], world.calls) == ("failed", [])
