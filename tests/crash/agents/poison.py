"""A daemon one of whose tasks kills its process, again and again, at the step its input names."""

from __future__ import annotations

import os
import signal
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


def _die(number: int) -> int:
    with (tools.FOLDER / "deaths").open("a") as file:
        file.write(f"{os.getpid()}\n")
    os.kill(os.getpid(), signal.SIGKILL)
    return number


if __name__ == "__main__":
    with Journal(
        os.environ["JOURNAL"],
        agent="crash",
        tools=[*tools.ALL.values(), deadly_read, deadly_write],
        handlers={"deadly": deadly, "once": serving.once},
        providers=os.environ["PROVIDERS"],
    ) as journal:
        journal.serve(concurrency=2)
