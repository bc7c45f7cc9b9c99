"""A task left by a group of errors waits where one of them waits, by the rules of that one alone."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from journal import Diverged, Request, StepHeld, env, http_tool, tool
from journal.models import WaitReason
from journal.runtime.serve import run_task
from tests.journal.agent import opened, python, rows, serving, soon, status, steps_of, task_row, wait_of


@tool(effect="read_only")
async def look(number: int) -> int:
    return number


@tool(effect="mutating")
async def lose(number: int) -> int:
    raise TimeoutError("no answer")


@tool(effect="mutating", keyed=timedelta(hours=24))
async def lose_keyed(call: Any, number: int) -> int:
    raise TimeoutError("no answer")


@http_tool(effect="mutating")
async def call(number: int) -> Request:
    return Request("POST", "http://127.0.0.1:1/", headers={"X": f"{env('STEPS_NOT_SET')}"})


async def in_branches(task: Any, *works: Any) -> None:
    """Each work in a branch and an asyncio task of its own; what they raise leaves as one group."""

    async def one(number: int, work: Any) -> None:
        with task.branch(f"b{number}") as child:
            await work(child)

    async with asyncio.TaskGroup() as group:
        for number, work in enumerate(works):
            group.create_task(one(number, work))


async def held(child: Any) -> None:
    await child.run(lose, 1)


async def fails(child: Any) -> None:
    raise ValueError("its own")


async def fails_when_cancelled(child: Any) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise ValueError("its own")


async def is_cut(child: Any) -> None:
    await child.run(lose_keyed, 1)


async def lacks_a_variable(child: Any) -> None:
    await child.run(call, 1)


HELD = [WaitReason("held", branch, 0, "unknown_outcome") for branch in ("t/b0", "t/b1")]
UNSET = [WaitReason("unset", detail="STEPS_NOT_SET")]


@pytest.mark.parametrize(
    ("works", "expected", "reason"),
    [
        ((held, held), "waiting", HELD),
        ((fails_when_cancelled, held), "waiting", HELD),
        ((lacks_a_variable, lacks_a_variable), "waiting", UNSET),
        ((held, lacks_a_variable), "waiting", UNSET),
        ((lacks_a_variable, held), "waiting", UNSET),
        ((fails, fails), "failed", [None]),
    ],
)
def test_a_task_left_by_a_group_waits_where_one_of_its_errors_waits(path, world, works, expected, reason):
    async def handler(task: Any) -> None:
        await in_branches(task, *works)

    with opened(path, world, handlers={"h": handler}) as journal:
        journal.submit("h", task_id="t")
        with serving(journal):
            soon(lambda: status(path, "t") == expected)
    row = task_row(path, "t")
    assert wait_of(path, "t") in reason
    # A branch that was cancelled in its call is decided by the next look; nothing else has a time.
    cut = rows(path, "SELECT 1 FROM agent_step_journal WHERE status = 'pending' AND hold_reason IS NULL")
    assert (row["next_attempt_at"] is not None) == bool(cut)


@pytest.mark.parametrize("settled_once", [False, True])
def test_a_branch_that_a_group_left_for_a_held_one_is_looked_at_by_itself(path, world, settled_once):
    async def handler(task: Any) -> None:
        async def one(name: str, work: Any) -> None:
            with task.branch(name) as child:
                await work(child)

        # As a plain `gather` leaves it: the first error, and another branch without outcome.
        found = await asyncio.gather(one("a", held), one("b", is_cut), return_exceptions=True)
        raise next(error for error in found if isinstance(error, StepHeld))

    with opened(path, world, handlers={"h": handler}, max_wait=0) as journal:
        run_task(journal.context, journal.submit("h", task_id="t"))
        if settled_once:
            run_task(journal.context, journal.submit("h", task_id="t"))
    row = task_row(path, "t")
    assert wait_of(path, "t") == WaitReason("due", "t/b", 0)
    assert wait_of(path, "t/a") == WaitReason("held", "t/a", 0, "unknown_outcome")
    assert steps_of(path, "t/b")[0]["hold_reason"] is None
    assert row["next_attempt_at"] is not None


def test_a_group_of_divergences_waits_until_the_code_is_right_again(path, world):
    shift = [0]

    async def differs(child: Any) -> None:
        await child.run(look, 1 + shift[0])

    async def handler(task: Any) -> None:
        await in_branches(task, differs, differs)
        await task.run(lose, 1)

    handlers = {"h": handler}
    for shift[0], reason in ((0, "held"), (100, "diverged"), (0, "held")):
        with opened(path, world, handlers=handlers) as journal:
            journal.submit("h", task_id="t")
            if reason == "diverged":
                with pytest.raises(BaseExceptionGroup) as caught, journal.task("t") as task:
                    asyncio.run(handler(task))
                assert {type(one) for one in caught.value.exceptions} <= {Diverged}
            else:
                with serving(journal):
                    soon(lambda: task_row(path, "t")["wait_kind"] == "held")
        assert task_row(path, "t")["wait_kind"] == reason


SCRIPT = """
    import asyncio, sys
    from journal import Journal, tool

    @tool(effect="mutating")
    async def lose(number):
        raise TimeoutError("no answer")

    async def branch(task, name):
        with task.branch(name) as child:
            if name == "bad":
                raise ValueError("its own")
            if name == "slow":
                try:
                    await asyncio.Event().wait()
                finally:
                    raise ValueError("its own")
            await child.run(lose, 1)

    async def main(task):
        async with asyncio.TaskGroup() as group:
            for name in sys.argv[2:]:
                group.create_task(branch(task, name))

    with Journal(sys.argv[1], agent="a", tools=[lose]) as journal:
        journal.recover()
        with journal.task("t") as task:
            asyncio.run(main(task))
"""


@pytest.mark.parametrize(("names", "code"), [(["a", "b"], 75), (["slow", "a"], 75), (["bad"], 1)])
def test_a_script_left_by_a_group_ends_as_one_left_by_the_error_in_it(path, names, code):
    done = python(SCRIPT, path, *names)
    assert done.returncode == code, done.stderr
    assert task_row(path, "t")["status"] == ("waiting" if code == 75 else "failed")
