"""A daemon whose task waits between two steps until the test says go: ordinary code, no step of its own."""

from __future__ import annotations

import os
import time
from typing import Any

from agents.demo.model import call_model
from journal import Journal
from tests.crash.agents import tools


def patient(task: Any, tool: str) -> object:
    """Asks, waits for `go`, does it."""
    plan = task.ask(call_model, f"Plan for {task.task_id}").content
    (tools.FOLDER / "ready").touch()
    while not (tools.FOLDER / "go").exists():
        time.sleep(0.01)
    return task.run(tools.ALL[tool], title=plan["title"], branch=plan["branch"])


if __name__ == "__main__":
    with Journal(
        os.environ["JOURNAL"],
        agent="crash",
        tools=list(tools.ALL.values()),
        handlers={"patient": patient},
        providers=os.environ["PROVIDERS"],
    ) as journal:
        journal.serve()
