"""A daemon one of whose tasks kills its process, again and again, at the step its input names."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from agents.demo.model import call_model
from journal import Journal, Reply, tool
from tests.crash.agents import serving, tools


@tool(effect="read_only")
def deadly_read(number: int) -> int:
    """Reads something that ends the process."""
    return _die(number)


@tool(effect="mutating", keyed=timedelta(hours=24))
def deadly_write(call: Any, number: int) -> int:
    """Writes something that ends the process."""
    return _die(number)


def deadly_model(question: str) -> Reply:
    """Asks, and dies of the answer."""
    reply = call_model(question)
    _die(1)
    return reply


def deadly(task: Any, step: str) -> object:
    """One good step, then the deadly one."""
    task.run(tools.read_report, 1)
    if step == "model":
        return task.ask(deadly_model, "How does one survive this?").content
    return task.run(deadly_read if step == "read" else deadly_write, number=1)


@tool(effect="read_only")
def slow_read(number: int) -> int:
    """Reads for a while."""
    return _take_a_while(number)


def nothing_written(call: Any) -> None:
    """Finds no effect of `slow_write`: it never ended."""


@tool(effect="mutating", status=nothing_written, horizon=timedelta(0))
def slow_write(call: Any, number: int) -> int:
    """Writes for a while."""
    return _take_a_while(number)


def slow_model(question: str) -> Reply:
    """Thinks for a while."""
    _take_a_while(0)
    return call_model(question)


@tool(effect="read_only")
def deadly_in_company(number: int) -> int:
    """Ends the process once three other steps are under way; the third time it has no company to wait for."""
    _within(0.4 if _deaths() >= 2 else 20, lambda: _under_way() >= 3)
    return _die(number)


def slow(task: Any, step: str) -> object:
    """One innocent step that lasts."""
    if step == "model":
        return task.ask(slow_model, "How long does this take?").content
    return task.run(slow_read if step == "read" else slow_write, number=1)


def deadly_beside_others(task: Any) -> object:
    """The step that kills, while others are under way."""
    return task.run(deadly_in_company, number=1)


def _take_a_while(number: int) -> int:
    with (tools.FOLDER / f"under-way-{os.getpid()}").open("a") as file:
        file.write("x")
    _within(0.8 if _deaths() >= 2 else 30, lambda: False)
    return number


def _deaths() -> int:
    file = tools.FOLDER / "deaths"
    return len(file.read_text().splitlines()) if file.exists() else 0


def _under_way() -> int:
    mark = tools.FOLDER / f"under-way-{os.getpid()}"
    return mark.stat().st_size if mark.exists() else 0


def _within(seconds: float, happened: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not happened():
        time.sleep(0.01)


def _die(number: int) -> int:
    with (tools.FOLDER / "deaths").open("a") as file:
        file.write(f"{os.getpid()}\n")
    os.kill(os.getpid(), signal.SIGKILL)
    return number


if __name__ == "__main__":
    with Journal(
        os.environ["JOURNAL"],
        agent="crash",
        tools=[*tools.ALL.values(), deadly_read, deadly_write, deadly_in_company, slow_read, slow_write],
        handlers={"deadly": deadly, "beside": deadly_beside_others, "slow": slow, "once": serving.once},
        providers=os.environ["PROVIDERS"],
    ) as journal:
        journal.serve(concurrency=4)
