"""What a tool gives to be awaited has not happened yet: it is awaited before anything is recorded."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any

import pytest

from journal import OutcomeUnknown, Reply, StepFailed, codec, tool
from tests.journal.agent import opened, rows, steps_of


class Later:
    """An object that can be awaited, and is no coroutine."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work

    def __await__(self) -> Generator[Any, None, Any]:
        yield from asyncio.sleep(0).__await__()
        return self.work()


class Itself:
    """An object that is itself once it was awaited, as pools of connections are."""

    def __await__(self) -> Generator[Any, None, Any]:
        yield from asyncio.sleep(0).__await__()
        return self


def in_a_thread(work: Callable[[], Any]) -> Future[Any]:
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)

    threading.Timer(0.01, run).start()
    return future


def as_a_task(work: Callable[[], Any]) -> Any:
    async def run() -> Any:
        await asyncio.sleep(0)
        return work()

    return asyncio.ensure_future(run())


async def in_async_def(work: Callable[[], Any]) -> Any:
    # Given back, not awaited: what the tool comes to is the task's result.
    return as_a_task(work)


def paying(given: Callable[[Callable[[], Any]], Any], paid: list[int], *, effect: Any = "mutating") -> Any:
    """A tool that gives what `given` makes of its work; its work pays, or is declined."""

    def work(amount: int) -> Callable[[], Any]:
        def pay() -> int:
            if amount < 0:
                raise RuntimeError("declined")
            paid.append(amount)
            return amount

        return pay

    def pay(amount: int) -> Any:
        return given(work(amount))

    async def pay_async(amount: int) -> Any:
        return await given(work(amount))

    return tool(effect=effect, name="pay")(pay_async if given is in_async_def else pay)


@pytest.mark.parametrize("effect", ["mutating", "read_only"])
@pytest.mark.parametrize("given", [Later, in_a_thread])
@pytest.mark.parametrize("in_a_loop", [False, True])
def test_what_a_tool_gives_to_be_awaited_is_done_before_its_step_is_committed(path, world, given, effect, in_a_loop):
    paid: list[int] = []
    pay = paying(given, paid, effect=effect)

    async def agent() -> Any:
        with opened(path, world) as journal, journal.task("t") as task:
            return task.run(pay, 5)

    def script() -> Any:
        with opened(path, world) as journal, journal.task("t") as task:
            return task.run(pay, 5)

    for _ in range(2):
        assert (asyncio.run(agent()) if in_a_loop else script()) == 5
    assert paid == [5]
    assert [(step["status"], step["output_json"]) for step in steps_of(path, "t")] == [("committed", "5")]


@pytest.mark.parametrize("given", [Later, in_a_thread])
def test_what_fails_after_its_tool_has_returned_is_an_unknown_outcome(path, world, given):
    with opened(path, world) as journal:
        with pytest.raises(OutcomeUnknown), journal.task("t") as task:
            task.run(paying(given, []), -1)
        with pytest.raises(StepFailed, match="declined"), journal.task("r") as task:
            task.run(paying(given, [], effect="read_only"), -1)
    (attempt,) = rows(path, "SELECT * FROM agent_step_attempt")
    assert (attempt["verdict"], attempt["kind"], attempt["detail"]) == ("unknown", "raised", "RuntimeError: declined")


@pytest.mark.parametrize("amount", [5, -1])
def test_a_task_that_an_async_tool_returns_is_awaited_in_the_loop_of_its_caller(path, world, amount):
    paid: list[int] = []
    pay = paying(in_async_def, paid)

    async def agent() -> Any:
        with opened(path, world) as journal, journal.task("t") as task:
            return await task.run(pay, amount)

    if amount < 0:
        with pytest.raises(OutcomeUnknown):
            asyncio.run(agent())
    else:
        assert (asyncio.run(agent()), paid) == (5, [5])
    (step,) = steps_of(path, "t")
    assert step["status"] == ("pending" if amount < 0 else "committed")


def test_a_task_of_a_loop_that_its_sync_tool_stops_is_never_committed(path, world):
    paid: list[int] = []

    async def agent() -> None:
        with opened(path, world) as journal, journal.task("t") as task:
            task.run(paying(as_a_task, paid), 5)

    with pytest.raises(OutcomeUnknown):
        asyncio.run(agent())
    (attempt,) = rows(path, "SELECT * FROM agent_step_attempt")
    assert (attempt["verdict"], attempt["kind"]) == ("unknown", "raised")


def test_a_model_that_gives_a_future_is_waited_for(path, world):
    with opened(path, world) as journal, journal.task("t") as task:
        assert task.ask(lambda: in_a_thread(lambda: Reply("yes"))).content == "yes"


@pytest.mark.parametrize("effect", ["mutating", "read_only"])
@pytest.mark.parametrize("given", ["generator", "async_generator", "Itself"])
def test_what_is_no_output_even_when_awaited_is_stored_as_a_stub_that_says_so(path, world, given, effect):
    async def later() -> Any:
        yield 1

    made = {"generator": lambda: (part for part in (1, 2)), "async_generator": later, "Itself": Itself}[given]

    @tool(effect=effect)
    def odd() -> Any:
        return made()

    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            assert task.run(odd)["$unstorable"].rpartition(".")[2] == given
    (step,) = steps_of(path, "t")
    assert (step["status"], step["output_complete"]) == ("committed", 0)
    assert "no JSON form" in codec.loads(step["output_json"])["why"]
