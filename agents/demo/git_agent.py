"""An agent that reads a report, asks a model and commits to git. The commit's trailer holds the idempotency key."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from agents.demo import issues, repository
from agents.demo.model import call_model
from agents.demo.repository import TRAILER
from journal import Journal, tool

REPOSITORY = Path(sys.argv[2] if len(sys.argv) > 2 else ".")


@tool(effect="read_only")
def read_report(number: int) -> dict[str, object]:
    """One report of the tracker."""
    return issues.read(number)


def find_commit(call: Any) -> dict[str, object] | None:
    """The commit that carries this key, or None: git itself is the status endpoint."""
    found = repository.commits_of(REPOSITORY, call.key)
    return {"commit": found[0]} if found else None


@tool(effect="mutating", status=find_commit, horizon=timedelta(seconds=5))
def commit_file(call: Any, path: str, text: str) -> dict[str, object]:
    """Writes one file and commits it."""
    target = REPOSITORY / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"{text}\n", encoding="utf-8")
    repository.run(REPOSITORY, "add", "--", path)
    message = f"{text}\n\n{TRAILER}: {call.key}"
    repository.run(REPOSITORY, "commit", "--allow-empty", "--quiet", f"--message={message}")
    return {"commit": repository.run(REPOSITORY, "rev-parse", "HEAD").strip()}


def note(task: Any, number: int) -> dict[str, object]:
    """From a report to a committed note and a word about it."""
    report = task.run(read_report, number=number)
    plan = task.ask(call_model, report["text"])
    commit = task.run(commit_file, path=plan.content["path"], text=plan.content["text"])
    summary = task.ask(call_model, f"{report['text']}: a note is committed, say so in one line")
    return {"commit": commit["commit"], "summary": summary.content["text"]}


if __name__ == "__main__":
    with Journal(sys.argv[1], agent="commits", tools=[read_report, commit_file], handlers={"note": note}) as journal:
        # The journal is ours, so no other daemon is at work; the supervisor has ended what the last one had started.
        repository.unlock(REPOSITORY)
        # One at a time: a working tree has one index.
        journal.serve(concurrency=1)
