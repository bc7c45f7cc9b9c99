"""A task never completes without a step that its handler asked for."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from journal import Journal, Reply, StepFailed, TaskClosed, UsageError, tool
from journal.errors import StepDropped
from journal.runtime.serve import run_task
from tests.journal.agent import opened, rows, status, steps_of, task_row

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
SENT: list[object] = []


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Dropped coroutines are collected in the test that drops them, where their warning is expected."""
    yield
    gc.collect()


@tool(effect="mutating")
async def send(number: int) -> int:
    SENT.append(number)
    return number


@tool(effect="read_only")
async def look(number: int) -> int:
    return number


async def model(question: str) -> Reply:
    SENT.append(question)
    return Reply("hi")


def returns_it(task: Any) -> Any:
    return task.run(send, 1)


def drops_it(task: Any) -> str:
    task.run(send, 1)
    return "done"


def drops_an_answer(task: Any) -> str:
    task.ask(model, "q")
    return "done"


async def forgets_await(task: Any) -> str:
    await task.run(look, 1)
    task.run(send, 1)
    return "done"


async def drops_it_in_a_branch(task: Any) -> str:
    try:
        with task.branch("b") as child:
            child.run(send, 1)
    except BaseException:
        return "done"
    return "done"


async def forgets_the_task_of_a_step(task: Any) -> str:
    asyncio.ensure_future(task.run(send, 1))  # noqa: RUF006
    return "done"


@pytest.mark.parametrize(
    ("handler", "named"),
    [
        (returns_it, "Step 0 of t (send)"),
        (drops_it, "Step 0 of t (send)"),
        (drops_an_answer, "Step 0 of t (model)"),
        (forgets_await, "Step 1 of t (send)"),
        (forgets_the_task_of_a_step, "Step 0 of t (send)"),
        (drops_it_in_a_branch, "Step 0 of t/b (send)"),
    ],
)
def test_a_task_whose_handler_dropped_a_step_fails_and_names_it(path, world, handler, named):
    SENT.clear()
    for _ in range(2):
        with opened(path, world, handlers={"h": handler}) as journal:
            run_task(journal.context, journal.submit("h", task_id="t"))
        assert status(path, "t") == "failed"
        assert named in task_row(path, "t")["error_json"]
    assert SENT == []


async def forgets_a_branch(task: Any) -> str:
    async def work() -> None:
        with task.branch("b") as child:
            await begun.wait()
            await child.run(send, 1)

    begun = asyncio.Event()
    working = asyncio.ensure_future(work())
    await asyncio.sleep(0.01)
    begun.set()
    assert not working.done()
    return "done"


def test_a_branch_that_is_still_open_when_its_handler_returns_is_named(path, world):
    SENT.clear()
    with opened(path, world, handlers={"h": forgets_a_branch}) as journal:
        run_task(journal.context, journal.submit("h", task_id="t"))
    assert status(path, "t") == "failed"
    assert "Branch 'b' of t: it is still open" in task_row(path, "t")["error_json"]
    assert SENT == []


def test_a_thread_that_outlives_its_handler_takes_no_further_step(path, world):
    left, caught = threading.Event(), []

    def handler(task: Any) -> str:
        opened_branch = threading.Event()

        def work() -> None:
            with task.branch("b") as child:
                child.run(world.read, 1)
                opened_branch.set()
                assert left.wait(10)
                try:
                    child.run(world.blind, "late")
                except BaseException as error:
                    caught.append(error)

        threads.append(threading.Thread(target=work))
        threads[-1].start()
        assert opened_branch.wait(10)
        return "done"

    threads: list[threading.Thread] = []
    with opened(path, world, handlers={"h": handler}) as journal:
        run_task(journal.context, journal.submit("h", task_id="t"))
        assert journal.context.has_open_branch("t")
        left.set()
        threads[0].join(10)
        assert not journal.context.has_open_branch("t")
    assert isinstance(caught[0], TaskClosed)
    assert (world.names(), status(path, "t")) == (["read"], "failed")


def yields(task: Any) -> Iterator[int]:
    yield 1


async def yields_async(task: Any) -> AsyncIterator[int]:
    yield 1


class Yields:
    def __call__(self, task: Any) -> Iterator[int]:
        yield 1


@pytest.mark.parametrize("handler", [yields, yields_async, Yields(), functools.partial(yields)])
def test_a_handler_that_yields_is_refused_when_the_journal_opens(path, handler):
    with pytest.raises(UsageError, match="yields"):
        Journal(path, agent="a", handlers={"h": handler})


async def works(task: Any) -> str:
    return str(await task.run(look, 1))


@pytest.mark.parametrize(
    ("handler", "type_name"),
    [(lambda task: works(task), "coroutine"), (lambda task: yields(task), "generator")],
)
def test_a_handler_that_returns_unfinished_work_fails(path, world, handler, type_name):
    with opened(path, world, handlers={"h": handler}) as journal:
        run_task(journal.context, journal.submit("h", task_id="t"))
    assert status(path, "t") == "failed"
    assert f"returned {type_name}" in task_row(path, "t")["error_json"]


def stream(question: str) -> Iterator[str]:
    SENT.append(question)
    yield "a"


async def stream_async(question: str) -> AsyncIterator[str]:
    SENT.append(question)
    yield "a"


@pytest.mark.parametrize("function", [stream, stream_async, functools.partial(stream)])
def test_ask_refuses_a_function_that_yields_before_its_step(path, world, function):
    with opened(path, world) as journal, journal.task("t") as task, pytest.raises(UsageError, match="yields"):
        task.ask(function, "q")
    assert steps_of(path, "t") == []


@pytest.mark.parametrize(
    "function",
    [lambda question: stream(question), lambda question: Reply(stream(question)), lambda question: iter("ab")],
)
def test_an_answer_that_is_a_stream_fails_its_step_and_is_never_stored(path, world, function):
    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task, pytest.raises(StepFailed, match="stream"):
            task.ask(function, "q")
    assert [row["status"] for row in rows(path, "SELECT status FROM agent_step_journal")] == ["failed"]


def test_a_script_that_drops_a_step_is_told_so(path, world):
    with opened(path, world) as journal, pytest.raises(StepDropped, match="Step 0 of t"), journal.task("t") as task:
        drops_it(task)
    assert status(path, "t") == "failed"
