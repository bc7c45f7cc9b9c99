"""A daemon with three handlers: one effect, eight steps, and eight rounds of asking and doing."""

from __future__ import annotations

import logging
import os
from typing import Any

from agents.demo.model import call_model
from journal import Journal
from tests.crash.agents import tools
from tests.crash.agents.tools import pull, read_report


def once(task: Any, tool: str) -> dict[str, object]:
    """Ask, do it once with the tool of this name, ask again."""
    plan = task.ask(call_model, f"Plan for {task.task_id}").content
    done = task.run(tools.ALL[tool], title=plan["title"], branch=plan["branch"])
    after = task.ask(call_model, f"What now, after {plan['title']}?")
    return {"done": done, "after": after.content["title"]}


def eight_steps(task: Any, number: int) -> list[object]:
    """Eight steps of every kind; the fourth changes something."""
    report = task.run(read_report, number)
    plan = task.ask(call_model, report["text"]).content
    first = task.run(pull, title=plan["title"], branch=plan["branch"])
    second = task.run(pull, title=wording(f"follow-up of {plan['title']}"), branch=f"{plan['branch']}-b")
    again = task.run(read_report, number + 1)
    next_plan = task.ask(call_model, again["text"]).content
    third = task.run(pull, title=next_plan["title"], branch=next_plan["branch"])
    closing = task.ask(call_model, f"Close {report['text']}")
    return [first, second, third, closing.content["title"]]


def eight_rounds(task: Any, subject: str) -> list[object]:
    """A model call before each of eight effects; each question carries what was done so far, as a real one does."""
    done: list[object] = []
    for number in range(1, 9):
        question = f"Round {number} of {subject}. Done so far: {done}"
        plan = task.ask(call_model, question).content
        done.append(task.run(pull, title=f"round {number}: {plan['title']}", branch=plan["branch"]))
    return done


def wording(text: str) -> str:
    """What a later version of this code says otherwise."""
    return text.upper() if os.environ.get("VERSION") == "2" else text


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    with Journal(
        os.environ["JOURNAL"],
        agent="crash",
        tools=list(tools.ALL.values()),
        handlers={"once": once, "eight_steps": eight_steps, "eight_rounds": eight_rounds},
        providers=os.environ["PROVIDERS"],
    ) as journal:
        journal.serve(concurrency=4)
