"""The first run sees what a resume sees: every call gets copies of its arguments."""

from __future__ import annotations

import asyncio
import threading
from datetime import date
from typing import Any

import pytest

from journal import InvalidArguments, Journal, Reply, Request, StepWaiting, UsageError, http_tool, tool
from tests.journal.agent import opened, steps_of


@tool(effect="read_only")
def append(items: list[Any]) -> int:
    items.append("seen by the tool")
    return len(items)


@tool(effect="mutating", name="append_for_good")
def append_for_good(items: list[Any]) -> int:
    items.append("seen by the tool")
    return len(items)


@tool(effect="read_only", name="append_later")
async def append_later(items: list[Any]) -> int:
    await asyncio.sleep(0)
    items.append("seen by the tool")
    return len(items)


def answer(messages: list[Any], *, deep: dict[str, Any] | None = None) -> Reply:
    messages.append("seen by the model function")
    if deep is not None:
        deep["list"].append("seen by the model function")
    return Reply(len(messages))


@pytest.mark.parametrize("used", [append, append_for_good])
def test_a_tool_that_changes_its_argument_changes_nobody_elses(path, world, used):
    items = ["mine"]
    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            assert task.run(used, items) == 2
            assert task.run(used, items=items) == 2
    assert items == ["mine"]


def test_an_async_tool_gets_the_arguments_of_the_moment_it_was_asked_for(path, world):
    async def handler() -> int:
        with opened(path, world) as journal, journal.task("t") as task:
            items = ["mine"]
            waiting = task.run(append_later, items)
            items.append("later")
            length: int = await waiting
            return length

    assert asyncio.run(handler()) == asyncio.run(handler()) == 2


def test_a_read_only_tool_gets_json_values_as_a_mutating_one_does(path, world):
    @tool(effect="read_only")
    def kind(day: Any) -> str:
        return type(day).__name__

    with opened(path, world) as journal, journal.task("t") as task:
        assert task.run(kind, date(2026, 12, 1)) == "str"


def test_an_http_tool_that_changes_its_argument_changes_nobody_elses(path, world):
    seen = []

    @http_tool(effect="read_only")
    def fetch(items: list[Any]) -> Request:
        items.append("seen by the tool")
        seen.append(len(items))
        return Request("GET", "http://127.0.0.1:9/nobody", json=items)

    items = ["mine"]
    with Journal(path, agent="a", max_wait=0) as journal, pytest.raises(StepWaiting), journal.task("t") as task:
        task.run(fetch, items)
    assert (items, seen) == (["mine"], [2])


def test_a_model_function_that_changes_its_arguments_changes_nobody_elses(path, world):
    messages, deep = ["mine"], {"list": [1]}
    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            assert task.ask(answer, messages, deep=deep).content == 2
            # What the loop asks next holds the same list on a resume.
            assert task.ask(answer, messages).content == 2
    assert (messages, deep) == (["mine"], {"list": [1]})
    assert [step["status"] for step in steps_of(path, "t")] == ["committed", "committed"]


def test_arguments_that_cannot_be_copied_are_refused_before_anything_is_written(path, world):
    class Uncopied(dict[str, Any]):
        lock = threading.Lock()

        def __deepcopy__(self, memo: object) -> Any:
            raise TypeError("cannot copy a lock")

    with opened(path, world) as journal, journal.task("t") as task:
        with pytest.raises(InvalidArguments, match="answer: its arguments cannot be copied: TypeError: cannot copy"):
            task.ask(answer, ["mine"], deep=Uncopied(list=[]))
        assert task.ask(answer, ["mine"]).content == 2
    assert len(steps_of(path, "t")) == 1


def test_run_refuses_another_tool_than_the_journal_holds_under_the_name(path, world):
    @tool(effect="mutating", name="write")
    def other(path: str) -> str:
        world.calls.append(("other", path))
        return path

    with opened(path, world) as journal, journal.task("t") as task:
        with pytest.raises(UsageError, match=r"run\(write\): this journal's tools hold another tool of that name"):
            task.run(other, path="p")
        task.run(world.write, path="p")
    assert world.names() == ["write"]
    with Journal(path, agent="a", tools=[]) as journal, journal.task("t2") as task:
        # A script need not register what it runs.
        assert task.run(other, path="p") == "p"
