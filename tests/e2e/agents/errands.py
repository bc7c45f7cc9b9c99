"""An agent that asks its model, does one thing outside, and looks once more: a daemon, or a script of one task."""

from __future__ import annotations

import os
import sys
from typing import Any

from agents.demo.model import call_model
from journal import Journal, Request, env, http_tool, tool
from journal.errors import StepAbandoned


@http_tool(effect="mutating")
def letter(text: str) -> Request:
    """A receiver without keys and status, whose address only this agent knows."""
    return Request("POST", env("HOOK_URL"), json={"text": text})


@http_tool(effect="mutating")
def postcard(text: str) -> Request:
    """The same receiver; the dashboard's worker knows this address too."""
    return Request("POST", env("POST_URL"), json={"text": text})


@http_tool(effect="mutating", provider="forge")
def pull(text: str) -> Request:
    """A provider that dedupes by key and can be asked."""
    headers = {"Authorization": f"Bearer {env('FORGE_TOKEN')}"}
    return Request("POST", f"{os.environ['FORGE_URL']}/pulls", headers=headers, json={"title": text, "head": "main"})


@tool(effect="read_only")
def look_again(text: str) -> dict[str, str]:
    """What a task does after its errand; nothing outside."""
    return {"seen": text}


ERRANDS = {one.name: one for one in (letter, postcard, pull)}


def errand(task: Any, tool: str, text: str) -> dict[str, object]:
    """One errand, and a look afterwards. An abandoned one is reported, not repeated."""
    plan = task.ask(call_model, text)
    try:
        done = task.run(ERRANDS[tool], text=text)
    except StepAbandoned as abandoned:
        done = {"abandoned": str(abandoned)}
    task.run(look_again, text=text)
    return {"plan": plan.content["title"], "done": done}


if __name__ == "__main__":
    with Journal(
        os.environ["JOURNAL"],
        agent=os.environ["AGENT"],
        tools=[*ERRANDS.values(), look_again],
        handlers={"errand": errand},
        providers=os.environ["PROVIDERS"],
    ) as journal:
        if sys.argv[1] == "serve":
            journal.serve(concurrency=4)
        else:
            journal.recover()
            with journal.task(sys.argv[1]) as task:
                errand(task, tool=sys.argv[2], text=sys.argv[3])
