"""What must wait is no Exception: whoever catches it all the same gets no further step, and other branches go on."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from journal import (
    Diverged,
    NoEffect,
    OutcomeUnknown,
    StepAbandoned,
    StepFailed,
    StepHeld,
    StepkeeperError,
    StepWaiting,
    TaskCancelled,
    TaskClosed,
    UnorderedStep,
    tool,
)
from journal.effects import Invoke, NotCalled, Read, Write
from journal.errors import StepDropped, StepUnwritten, TaskStop
from journal.http.frozen_request import MissingReference
from journal.models import WaitReason
from journal.runtime.serve import run_task
from journal.settle.settle import settle_step
from journal.store.sql import tasks
from tests.journal.agent import opened, python, rows, serving, soon, status, steps_of, task_row, wait_of
from tests.journal.operator import decide

STOPS = (
    *(StepHeld, StepWaiting, OutcomeUnknown, Diverged, UnorderedStep, TaskClosed, TaskCancelled),
    *(StepDropped, StepUnwritten, MissingReference),
)
BRANCHES = 20
HELD_BRANCH = 3


def test_what_must_wait_is_no_exception_and_what_a_handler_may_treat_is_one():
    for kind in STOPS:
        assert issubclass(kind, TaskStop)
        assert not issubclass(kind, Exception)
    for treated in (StepFailed, StepAbandoned):
        assert issubclass(treated, StepkeeperError)
        assert issubclass(treated, Exception)


class Framework:
    """A loop like those of agent frameworks: a tool's error is told to the model, which then tries another way."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.asked = 0

    def run(self, task: Any, tools: list[Any]) -> str:
        for one in tools:
            self.asked += 1
            try:
                self.told.append(str(task.run(one, "x")))
            except Exception as error:
                self.told.append(f"An error occurred while running the tool: {error}. Try again.")
        return "Done."


def test_a_framework_that_treats_tool_errors_never_hears_of_a_held_step(path, world):
    world.fail = TimeoutError("no answer")
    for expected in (OutcomeUnknown, StepHeld):
        framework = Framework()
        with opened(path, world) as journal, pytest.raises(expected), journal.task("t") as task:
            framework.run(task, [world.blind, world.write])
        assert (framework.told, framework.asked) == ([], 1)
    assert world.calls == [("blind", "x")]
    assert wait_of(path, "t") == WaitReason("held", "t", 0, "unknown_outcome")


def test_a_framework_still_treats_a_tool_that_failed(path, world):
    @tool(effect="mutating")
    def refused(name: str) -> None:
        raise NoEffect("the account is closed")

    framework = Framework()
    with opened(path, world) as journal, journal.task("t") as task:
        framework.run(task, [refused, world.blind])
    assert "the account is closed" in framework.told[0]
    assert (world.calls, status(path, "t")) == ([("blind", "x")], "completed")


def is_held(task: Any, world: Any) -> None:
    task.run(world.blind, "x")


def is_due(task: Any, world: Any) -> None:
    task.run(world.write, "x")


def is_unordered(task: Any, world: Any) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(task.run, world.blind, "x").result()


def diverges(task: Any, world: Any) -> None:
    task.run(world.read, 2)


def is_cancelled(task: Any, world: Any) -> None:
    raise_in_tool = tool(effect="read_only")(lambda: (_ for _ in ()).throw(asyncio.CancelledError()))
    task.run(raise_in_tool)


KINDS: list[tuple[Callable[[Any, Any], None], type[BaseException], str]] = [
    (is_held, StepHeld, "waiting"),
    (is_due, StepWaiting, "waiting"),
    (is_unordered, UnorderedStep, "failed"),
    (diverges, Diverged, "waiting"),
    (is_cancelled, asyncio.CancelledError, "waiting"),
]


def swallowed(work: Callable[[], object]) -> None:
    with contextlib.suppress(BaseException):
        work()


def by_except_exception(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:
        return


@pytest.fixture
def journal(path, world):
    """A journal whose task `t` holds one read step, and in its branch `b` another."""
    with opened(path, world, max_wait=0) as journal, contextlib.suppress(SystemExit), journal.task("t") as task:
        with task.branch("b") as child:
            child.run(world.read, 1)
        task.run(world.read, 1)
        raise SystemExit
    world.fail = TimeoutError("no answer")
    with opened(path, world, max_wait=0) as journal:
        yield journal


@pytest.mark.parametrize(("stops", "kind", "ended"), KINDS)
def test_no_broad_except_around_a_whole_loop_sees_what_must_wait(path, world, journal, stops, kind, ended):
    task = journal.task("t")
    if stops is not diverges:
        task.run(world.read, 1)
        task_of_the_branch = task.branch("b")
        task_of_the_branch.run(world.read, 1)
        task_of_the_branch.leave(None)
    with pytest.raises(kind), task:
        by_except_exception(lambda: stops(task, world))
    assert status(path, "t") == ended


@pytest.mark.parametrize("in_branch", [False, True])
@pytest.mark.parametrize(("stops", "kind", "ended"), KINDS)
def test_whoever_catches_what_must_wait_takes_no_further_step(path, world, journal, stops, kind, ended, in_branch):
    with journal.task("t") as task:
        stopped = task.branch("b") if in_branch else task
        if stops is not diverges:
            stopped.run(world.read, 1)
        before = list(world.calls)

        def work() -> None:
            with stopped if in_branch else contextlib.nullcontext():
                stops(stopped, world)

        swallowed(work)
        made = world.calls[len(before) :]
        for step in (
            lambda: task.run(world.blind, "again"),
            lambda: task.run(world.read, 1),
            lambda: task.ask(world.model, "q"),
            lambda: task.act(world.model, "q"),
        ):
            with pytest.raises(TaskClosed, match="no further step"):
                step()
        assert world.calls == before + made
    assert len(made) == (stops in (is_held, is_due))
    assert status(path, "t") == ended, "a task that returns normally is no completed one"


def test_after_a_cancelled_task_nothing_more_is_called(path, world):
    with opened(path, world) as journal, journal.task("t") as task:
        task.run(world.read, 1)
        journal.store.write(lambda tx: tasks.cancel_task(tx, "t", "enough"), sync=False)
        swallowed(lambda: task.run(world.blind, "x"))
        with pytest.raises(TaskClosed, match="cancelled"):
            task.ask(world.model, "q")
    assert (world.names(), status(path, "t")) == (["read"], "cancelled")


def test_a_step_under_way_beside_a_held_one_finishes(path, world):
    begun, end = threading.Event(), threading.Event()

    @tool(effect="mutating")
    def slow(name: str) -> str:
        begun.set()
        assert end.wait(10)
        return name

    def work(task: Any) -> None:
        with task.branch("slow") as child:
            child.run(slow, "x")

    world.fail = TimeoutError("no answer")
    with opened(path, world) as journal, journal.task("t") as task, ThreadPoolExecutor() as pool:
        other = pool.submit(work, task)
        begun.wait(10)
        held = pool.submit(lambda: in_branch(task, "held", lambda child: child.run(world.blind, "x")))
        soon(lambda: steps_of(path, "t/held") and steps_of(path, "t/held")[0]["hold_reason"])
        end.set()
        assert other.result(10) is None
        assert isinstance(held.exception(10), OutcomeUnknown)
    assert steps_of(path, "t/slow")[0]["status"] == "committed"
    assert wait_of(path, "t") == WaitReason("held", "t/held", 0, "unknown_outcome")


def in_branch(task: Any, name: str, work: Callable[[Any], object]) -> object:
    with task.branch(name) as child:
        return work(child)


# A fan-out: each branch takes three steps, and one of them is held in its second.


class FanOut:
    def __init__(self) -> None:
        self.done: list[int] = []
        outer = self

        @tool(effect="mutating")
        async def note(number: int) -> int:
            await asyncio.sleep(0.001)
            if number == HELD_BRANCH:
                raise TimeoutError("no answer")
            outer.done.append(number)
            return number

        @tool(effect="mutating")
        def note_sync(number: int) -> int:
            if number == HELD_BRANCH:
                raise TimeoutError("no answer")
            outer.done.append(number)
            return number

        @tool(effect="read_only")
        async def look(number: int) -> int:
            return number

        @tool(effect="read_only")
        def look_sync(number: int) -> int:
            return number

        self.note, self.look, self.note_sync, self.look_sync = note, look, note_sync, look_sync

    def tools(self) -> list[Any]:
        return [self.note, self.look, self.note_sync, self.look_sync]

    async def branch(self, task: Any, number: int) -> int:
        with task.branch(str(number)) as child:
            await child.run(self.look, number)
            await child.run(self.note, number)
            return int(await child.run(self.look, number))

    def branch_sync(self, task: Any, number: int) -> int:
        with task.branch(str(number)) as child:
            child.run(self.look_sync, number)
            child.run(self.note_sync, number)
            return int(child.run(self.look_sync, number))

    async def task_group(self, task: Any) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(BRANCHES):
                group.create_task(self.branch(task, number))

    async def gather(self, task: Any) -> None:
        await asyncio.gather(*(self.branch(task, number) for number in range(BRANCHES)))

    async def gather_and_keep(self, task: Any) -> None:
        await asyncio.gather(*(self.branch(task, number) for number in range(BRANCHES)), return_exceptions=True)

    async def few_at_a_time(self, task: Any) -> None:
        places = asyncio.Semaphore(3)

        async def one(number: int) -> None:
            async with places:
                await self.branch(task, number)

        async with asyncio.TaskGroup() as group:
            for number in range(BRANCHES):
                group.create_task(one(number))

    async def swallowing(self, task: Any) -> None:
        async def one(number: int) -> None:
            with contextlib.suppress(BaseException):
                await self.branch(task, number)

        async with asyncio.TaskGroup() as group:
            for number in range(BRANCHES):
                group.create_task(one(number))

    def pool_map(self, task: Any) -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: self.branch_sync(task, number), range(BRANCHES)))

    def pool_submit(self, task: Any) -> None:
        with ThreadPoolExecutor(4) as pool:
            found = [pool.submit(self.branch_sync, task, number) for number in range(BRANCHES)]
            for one in found:
                one.result()

    def threads(self, task: Any) -> None:
        def work(number: int) -> None:
            swallowed(lambda: self.branch_sync(task, number))

        found = [threading.Thread(target=work, args=(number,)) for number in range(BRANCHES)]
        for one in found:
            one.start()
        for one in found:
            one.join()


ASYNC = ("task_group", "gather", "gather_and_keep", "few_at_a_time", "swallowing")
SYNC = ("pool_map", "pool_submit", "threads")


@pytest.mark.parametrize("held_before", [False, True])
@pytest.mark.parametrize("way", [*ASYNC, *SYNC])
def test_a_fan_out_of_twenty_with_one_held_finishes_nineteen_in_each_run(path, world, way, held_before):
    def only_the_held_one(task: Any) -> None:
        if way in SYNC:
            fan.branch_sync(task, HELD_BRANCH)
        else:
            asyncio.run(fan.branch(task, HELD_BRANCH))

    # With `held_before` the held branch raises at once, before the others have begun anything.
    for work in (["only_the_held_one"] if held_before else []) + [way, way]:
        fan = FanOut()
        handler = only_the_held_one if work == "only_the_held_one" else getattr(fan, work)
        with opened(path, world, handlers={"h": handler}) as journal:
            journal.tools.update({one.name: one for one in fan.tools()})
            run_task(journal.context, journal.submit("h", task_id="t"))
        assert (task_row(path, "t")["status"], task_row(path, "t")["wait_kind"]) == ("waiting", "held")
        if work == way:
            ended = [status(path, f"t/{number}") for number in range(BRANCHES)]
            assert (ended.count("completed"), ended[HELD_BRANCH]) == (BRANCHES - 1, "waiting")
    sent = "SELECT task_id FROM agent_step_attempt"
    assert len(rows(path, sent)) == BRANCHES, "each effect was tried once"


def test_an_approval_of_one_branch_is_used_for_its_call_while_another_is_held(path, world):
    calls: list[int] = []

    @tool(effect="mutating")
    async def send(number: int) -> int:
        calls.append(number)
        if calls.count(number) == 1:
            raise TimeoutError("no answer")
        return number

    async def handler(task: Any) -> None:
        async def one(name: str, number: int) -> None:
            with task.branch(name) as child:
                await child.run(send, number)

        async with asyncio.TaskGroup() as group:
            group.create_task(one("a", 1))
            group.create_task(one("b", 2))

    def approved(name: str) -> None:
        soon(lambda: steps_of(path, f"t/{name}") and steps_of(path, f"t/{name}")[0]["hold_reason"])
        soon(lambda: status(path, "t") == "waiting")
        decide(path, "replay", f"t/{name}")
        soon(lambda: steps_of(path, f"t/{name}")[0]["status"] == "committed")

    with opened(path, world, handlers={"h": handler}) as journal:
        journal.tools["send"] = send
        journal.submit("h", task_id="t")
        with serving(journal):
            approved("b")
            approved("a")
            soon(lambda: status(path, "t") == "completed")
    assert sorted(calls) == [1, 1, 2, 2]
    used = "SELECT verdict FROM agent_step_attempt WHERE decision_id IS NOT NULL"
    assert [row["verdict"] for row in rows(path, used)] == ["applied", "applied"]


def test_an_approval_whose_call_was_cancelled_before_it_began_can_be_used_again(path, world, held):
    world.fail = None
    with opened(path, world) as journal:
        decide(path, "replay")
        journal.context.take_messages()
        program = settle_step(journal.context.settle_context("task"), "t", 0)
        operation = next(program)
        while not isinstance(operation, Invoke):
            assert isinstance(operation, Read | Write)
            operation = program.send(operation.perform())
        cut = program.throw(NotCalled("cancelled"))
        assert isinstance(cut, Write)
        with pytest.raises(NotCalled):
            program.send(cut.perform())
        assert [row["verdict"] for row in rows(path, "SELECT verdict FROM agent_step_attempt")] == [
            "unknown",
            "not_sent",
        ]
        with journal.task("t") as task:
            assert task.run(world.blind, "x") == "x"
    assert world.calls == [("blind", "x")]


def test_a_failed_branch_does_not_keep_its_task_from_failing_beside_a_read_without_end(path, world):
    @tool(effect="read_only")
    async def look(number: int) -> int:
        await asyncio.sleep(10)
        return number

    async def handler(task: Any) -> None:
        async def reads() -> None:
            with task.branch("reads") as child:
                await child.run(look, 1)

        async def fails() -> None:
            await asyncio.sleep(0.05)
            raise ValueError("its own")

        async with asyncio.TaskGroup() as group:
            group.create_task(reads())
            group.create_task(fails())

    with opened(path, world, handlers={"h": handler}) as journal:
        run_task(journal.context, journal.submit("h", task_id="t"))
    assert (status(path, "t"), status(path, "t/reads")) == ("failed", "failed")


def test_an_unsent_intent_beside_a_failed_branch_is_sent_before_the_task_fails(path, world):
    """A failed branch makes a group cancel the other before its call, in each run anew."""
    sent: list[int] = []

    @tool(effect="mutating")
    async def put(number: int) -> int:
        sent.append(number)
        return number

    async def handler(task: Any) -> None:
        async def sends() -> None:
            with task.branch("sends") as child:
                await child.run(put, 1)

        async with asyncio.TaskGroup() as group:
            sending = group.create_task(sends())
            while not (path.exists() and steps_of(path, "t/sends")):
                await asyncio.sleep(0)
            sending.cancel()
            raise ValueError("its own")

    with opened(path, world, handlers={"h": handler}) as journal:
        journal.tools["put"] = put
        run_task(journal.context, journal.submit("h", task_id="t"))
    assert (status(path, "t"), sent) == ("failed", [1])
    assert [row["verdict"] for row in rows(path, "SELECT verdict FROM agent_step_attempt")][-1:] == ["applied"]


SCRIPT = """
    import sys
    from journal import Journal, tool

    @tool(effect="mutating")
    def lose(number):
        raise TimeoutError("no answer")

    with Journal(sys.argv[1], agent="a", tools=[lose]) as journal:
        journal.recover()
        with journal.task("t") as task:
            try:
                task.run(lose, 1)
            except Exception as error:
                print("An error occurred:", error)
            print("Done.")
"""


def test_a_script_whose_loop_catches_every_exception_ends_with_75(path):
    for _ in range(2):
        done = python(SCRIPT, path)
        assert (done.returncode, done.stdout) == (75, ""), done.stderr
        assert "is held: unknown_outcome" in done.stderr
    assert task_row(path, "t")["status"] == "waiting"


def test_a_group_gives_what_must_wait_in_a_base_exception_group(path, world):
    world.fail = TimeoutError("no answer")

    async def main(task: Any) -> None:
        async with asyncio.TaskGroup() as group:
            for name in ("a", "b"):
                group.create_task(asyncio.to_thread(in_branch, task, name, lambda child: child.run(world.blind, "x")))

    with opened(path, world) as journal, pytest.raises(BaseExceptionGroup) as caught, journal.task("t") as task:
        asyncio.run(main(task))
    assert not isinstance(caught.value, Exception)
    assert {type(one) for one in caught.value.exceptions} == {OutcomeUnknown}
    assert caught.group_contains(OutcomeUnknown, depth=1)


def test_a_branch_waits_a_while_only_for_a_sibling_that_waits_for_it(path, world, monkeypatch):
    monkeypatch.setattr("journal.runtime.siblings._PATIENCE_SECONDS", 0.3)
    world.fail = TimeoutError("no answer")

    async def handler(task: Any) -> None:
        ended = asyncio.Event()

        async def waits() -> None:
            with task.branch("waits"):
                await ended.wait()

        async def held() -> None:
            await asyncio.to_thread(in_branch, task, "held", lambda child: child.run(world.blind, "x"))
            ended.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(waits())
            group.create_task(held())

    with opened(path, world, handlers={"h": handler}) as journal:
        run_task(journal.context, journal.submit("h", task_id="t"))
    assert (status(path, "t"), wait_of(path, "t")) == (
        "waiting",
        WaitReason("held", "t/held", 0, "unknown_outcome"),
    )
