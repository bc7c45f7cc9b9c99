"""An agent that posts to a webhook without idempotency keys and status checks; the webhook's address is a secret."""

from __future__ import annotations

import sys
from typing import Any

from agents.demo import issues
from agents.demo.model import call_model
from journal import Journal, Request, env, http_tool, tool


@tool(effect="read_only")
def read_report(number: int) -> dict[str, object]:
    """One report of the tracker."""
    return issues.read(number)


# No provider: nothing is known about the target, so an unknown outcome waits for a person.
@http_tool(effect="mutating")
def post_message(text: str) -> Request:
    """Sends one message to the team's channel."""
    return Request("POST", env("DEMO_HOOK_URL"), json={"text": text})


def announce(task: Any, number: int) -> dict[str, object]:
    """From a report to a message in the channel and a word about it."""
    report = task.run(read_report, number=number)
    plan = task.ask(call_model, report["text"])
    answer = task.run(post_message, text=plan.content["text"])
    summary = task.ask(call_model, f"{report['text']}: the channel was told, say so in one line")
    return {"answer": answer, "summary": summary.content["text"]}


if __name__ == "__main__":
    tools, handlers = [read_report, post_message], {"announce": announce}
    with Journal(sys.argv[1], agent="messages", tools=tools, handlers=handlers) as journal:
        journal.serve(concurrency=2)
