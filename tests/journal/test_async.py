"""Async tools, models and handlers: the same protocol, driven by an event loop."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from journal import OutcomeUnknown, Reply, StepFailed, TaskClosed, UnorderedStep, UsageError, tool
from journal.errors import StepDropped
from tests.journal.agent import DAY, World, opened, rows, steps_of, task_row


class Async(World):
    """The world with async tools."""

    def __post_init__(self) -> None:
        super().__post_init__()
        world = self
        self.gate: asyncio.Event | None = None

        @tool(effect="read_only")
        async def fetch(number: int) -> int:
            world.calls.append(("fetch", number))
            if world.gate is not None:
                await world.gate.wait()
            # The later ones end first: completion order says nothing.
            await asyncio.sleep(0.05 / (number + 1))
            return number

        @tool(effect="mutating", keyed=DAY)
        async def put(call: Any, name: str) -> str:
            world.calls.append(("put", name))
            if world.gate is not None:
                await world.gate.wait()
            return f"{name} {call.attempt}"

        @tool(effect="mutating")
        async def shout(name: str) -> str:
            world.calls.append(("shout", name))
            if world.gate is not None:
                await world.gate.wait()
            return name

        self.fetch, self.put, self.shout = fetch, put, shout

    def tools(self) -> list[Any]:
        return [*super().tools(), self.fetch, self.put, self.shout]

    async def think(self, question: str) -> Reply:
        self.calls.append(("think", question))
        return Reply(question.upper(), usage={"prompt_tokens": 1, "completion_tokens": 1})


@pytest.fixture
def world():
    return Async()


def test_an_async_agent_resumes_from_what_is_stored(path, world):
    async def agent() -> Any:
        with opened(path, world) as journal, journal.task("t") as task:
            return [
                await task.run(world.fetch, 1),
                (await task.ask(world.think, "q")).content,
                await task.run(world.put, "a"),
                task.run(world.read, 3)["number"],
            ]

    assert asyncio.run(agent()) == asyncio.run(agent()) == [1, "Q", "a 1", 3]
    assert world.names() == ["fetch", "think", "put", "read"]


def test_gathered_steps_are_numbered_as_they_were_asked_for(path, world):
    async def agent() -> Any:
        with opened(path, world) as journal, journal.task("t") as task:
            return await asyncio.gather(*(task.run(world.fetch, number) for number in range(8)))

    assert asyncio.run(agent()) == asyncio.run(agent()) == list(range(8))
    assert len(world.calls) == 8
    assert [step["arguments_json"] for step in steps_of(path, "t")] == [f'{{"number": {n}}}' for n in range(8)]


def test_another_asyncio_task_is_told_to_open_a_branch(path, world):
    async def agent() -> None:
        with opened(path, world) as journal, journal.task("t") as task:

            async def other() -> None:
                await task.run(world.fetch, 1)

            with pytest.raises(UnorderedStep, match=r"task\.branch"):
                await asyncio.create_task(other())

    async def again() -> None:
        with opened(path, world) as journal, journal.task("t") as task:

            async def branch(name: str) -> int:
                with task.branch(name) as child:
                    return int(await child.run(world.fetch, 2))

            assert list(await asyncio.gather(branch("a"), branch("b"))) == [2, 2]

    asyncio.run(agent())
    assert task_row(path, "t")["status"] == "failed"
    asyncio.run(again())
    assert [row["task_id"] for row in rows(path, "SELECT task_id FROM agent_task ORDER BY 1")] == ["t", "t/a", "t/b"]


def test_steps_of_a_wait_over_a_set_keep_their_numbers(path, world):
    async def agent() -> set[int]:
        with opened(path, world) as journal, journal.task("t") as task:
            waiting = {asyncio.ensure_future(task.run(world.fetch, number)) for number in range(6)}
            found = set()
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                found |= {one.result() for one in done}
            return found

    assert asyncio.run(agent()) == asyncio.run(agent()) == set(range(6))
    assert len(world.calls) == 6


def test_a_cancelled_read_is_no_outcome_and_runs_again(path, world):
    async def cancelled() -> None:
        world.gate = asyncio.Event()
        with opened(path, world) as journal, journal.task("t") as task:
            step = asyncio.ensure_future(task.run(world.fetch, 1))
            while not world.calls:
                await asyncio.sleep(0.001)
            step.cancel()
            with pytest.raises(asyncio.CancelledError):
                await step
            with pytest.raises(TaskClosed):
                task.run(world.read, 1)

    async def resumed() -> int:
        world.gate = None
        with opened(path, world) as journal, journal.task("t") as task:
            return int(await task.run(world.fetch, 1))

    asyncio.run(cancelled())
    step = steps_of(path, "t")[0]
    assert (step["status"], step["starts"], step["error_json"], step["output_json"]) == ("pending", 0, None, None)
    assert task_row(path, "t")["status"] == "waiting"
    assert asyncio.run(resumed()) == 1


def test_a_cancelled_mutation_stays_unknown_and_its_key_lets_it_go_out_again(path, world):
    async def cancelled(name: str) -> None:
        world.gate = asyncio.Event()
        with opened(path, world) as journal, journal.task(name) as task:
            step = asyncio.ensure_future(task.run(world.put if name == "keyed" else world.shout, "a"))
            while not world.calls:
                await asyncio.sleep(0.001)
            step.cancel()
            with pytest.raises(asyncio.CancelledError):
                await step
        world.calls.clear()
        world.gate = None

    async def resumed(name: str) -> Any:
        with opened(path, world) as journal, journal.task(name) as task:
            return await task.run(world.put if name == "keyed" else world.shout, "a")

    for name in ("keyed", "blind"):
        asyncio.run(cancelled(name))
        assert steps_of(path, name)[0]["status"] == "pending"
    assert asyncio.run(resumed("keyed")) == "a 2"
    with pytest.raises(OutcomeUnknown):
        asyncio.run(resumed("blind"))
    assert world.names() == ["put"]


def test_a_cancellation_while_the_intent_is_written_sends_nothing_and_says_so(path, world):
    async def agent() -> None:
        with opened(path, world) as journal, journal.task("t") as task:
            step = asyncio.ensure_future(task.run(world.shout, "a"))
            await asyncio.sleep(0)  # its first write is on its way to a thread
            await asyncio.sleep(0)
            step.cancel()
            with pytest.raises(asyncio.CancelledError):
                await step

    async def resumed() -> Any:
        with opened(path, world, max_wait=5) as journal, journal.task("t") as task:
            return await task.run(world.shout, "a")

    asyncio.run(agent())
    assert world.calls == []
    found = rows(path, "SELECT verdict, kind FROM agent_step_attempt")
    assert found in ([], [{"verdict": "not_sent", "kind": "stale"}])
    assert asyncio.run(resumed()) == "a"


def test_a_cancellation_never_leaves_an_attempt_without_verdict_behind_a_living_process(path, world):
    async def agent(turns: int) -> None:
        # A step that was cancelled before it began was dropped.
        unstarted = pytest.raises(StepDropped) if turns == 0 else nullcontext()
        with opened(path, world) as journal, unstarted, journal.task(f"t{turns}") as task:
            step = asyncio.ensure_future(task.run(world.put, "a"))
            for _ in range(turns):
                await asyncio.sleep(0)
            step.cancel()
            with pytest.raises(asyncio.CancelledError):
                await step
            open_marks = "SELECT count(*) AS n FROM agent_step_attempt WHERE verdict IS NULL"
            assert rows(path, open_marks)[0]["n"] == 0

    world.gate = None
    for turns in range(6):
        asyncio.run(agent(turns))


def test_an_async_failure_is_stored_like_any_other(path, world):
    @tool(effect="read_only")
    async def broken() -> None:
        world.calls.append(("broken", None))
        raise ValueError("no")

    async def agent() -> None:
        with opened(path, world) as journal, journal.task("t") as task, pytest.raises(StepFailed, match="no"):
            await task.run(broken)

    asyncio.run(agent())
    asyncio.run(agent())
    assert world.names() == ["broken"]


def test_acting_runs_async_tools_with_and_without_an_event_loop(path, world):
    def choose(question: str) -> Reply:
        return Reply("", calls=[("fetch", {"number": 1}), ("read", {"number": 2}), ("fetch", {"number": "x"})])

    async def choose_async(question: str) -> Reply:
        return choose(question)

    async def agent() -> Any:
        with opened(path, world) as journal, journal.task("a") as task:
            return await task.act(choose_async, "q")

    found = asyncio.run(agent())
    assert (found[0], found[1]["number"], type(found[2])) == (1, 2, StepFailed)
    with opened(path, world) as journal, journal.task("b") as task:
        found = task.act(choose, "q")
        assert (found[0], found[1]["number"], type(found[2])) == (1, 2, StepFailed)


def test_acting_with_an_async_tool_inside_a_loop_asks_for_an_async_choose(path, world):
    async def agent() -> None:
        with (
            opened(path, world) as journal,
            pytest.raises(StepDropped, match="Step 1 of t"),
            journal.task("t") as task,
            pytest.raises(UsageError, match="async"),
        ):
            task.act(lambda question: Reply("", calls=[("put", {"name": "a"})]), "q")

    asyncio.run(agent())
    assert world.calls == []


def test_a_step_awaited_after_its_task_was_left_calls_nothing(path, world):
    async def main() -> None:
        with opened(path, world) as journal:
            task = journal.task("t")
            await task.run(world.fetch, 0)
            late = task.run(world.put, "late")
            with pytest.raises(StepDropped, match="Step 1 of t"):
                task.__exit__(None, None, None)
            with pytest.raises(TaskClosed, match="left before this step began"):
                await late

    asyncio.run(main())
    assert world.names() == ["fetch"]
    assert (task_row(path, "t")["status"], len(steps_of(path, "t"))) == ("failed", 1)
