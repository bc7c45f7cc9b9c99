"""An agent that reads a report, asks a model and opens a pull request at a forge with keys and status checks."""

from __future__ import annotations

import os
import sys
from typing import Any

from agents.demo import issues
from agents.demo.model import call_model
from journal import Journal, Request, env, http_tool, tool

FORGE = os.environ.get("DEMO_FORGE_URL", "http://127.0.0.1:9")


@tool(effect="read_only")
def read_report(number: int) -> dict[str, object]:
    """One report of the tracker."""
    return issues.read(number)


@http_tool(effect="mutating", provider="forge")
def open_pull_request(title: str, branch: str) -> Request:
    """Opens a pull request; its number comes back."""
    headers = {"Authorization": f"Bearer {env('FORGE_TOKEN')}"}
    return Request("POST", f"{FORGE}/pulls", headers=headers, json={"title": title, "head": branch})


def fix(task: Any, number: int) -> dict[str, object]:
    """From a report to a pull request and a word about it."""
    report = task.run(read_report, number=number)
    plan = task.ask(call_model, report["text"])
    pull = task.run(open_pull_request, title=plan.content["title"], branch=plan.content["branch"])
    note = task.ask(call_model, f"{report['text']}: pull request {pull['number']} is open, say so in one line")
    return {"pull": pull["number"], "note": note.content["text"]}


if __name__ == "__main__":
    path, providers = sys.argv[1:]
    with Journal(
        path,
        agent="pull-requests",
        tools=[read_report, open_pull_request],
        handlers={"fix": fix},
        providers=providers,
    ) as journal:
        journal.serve(concurrency=2)
