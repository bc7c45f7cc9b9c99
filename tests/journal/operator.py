"""An operator for tests: the task she submits, what her decision binds, and what became of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from journal import Journal, clock
from journal.inbox import mailbox
from tests.journal.agent import World, opened, rows, steps_of


def decide(path: Path, kind: str, about: str = "t", **other: Any) -> str:
    """Post a decision about the first step of the task `about`, bound to what stands there; its message id."""
    step = steps_of(path, about)[0]
    body = {
        "kind": "decision",
        "decision": kind,
        "task_id": about,
        "step_index": 0,
        "key": step["idempotency_key"],
        "payload_sha256": step["payload_sha256"],
        "dispatches": 1,
        "actor": "ann",
        "reason": "I looked",
        "expires_at": clock.text(clock.wall() + timedelta(minutes=15)),
    }
    return mailbox.post_message(path, {**body, **other})


def outcome(path: Path, message_id: str) -> str:
    """What became of the decision, with why; empty while the writer has not taken it."""
    found = rows(path, "SELECT outcome, outcome_detail FROM agent_decision WHERE message_id = ?", message_id)
    return ": ".join(filter(None, found[0].values())) if found else ""


def submit(path: Path, task_id: str, **more: Any) -> str:
    """Post a task for the handler `triage`; its message id."""
    body = {"kind": "submit", "handler": "triage", "task_id": task_id, "input": {"n": 1}}
    return mailbox.post_message(path, {**body, **more})


def handler(task: Any, n: int) -> int:
    return n


def with_handler(path: Path, **options: Any) -> Journal:
    """The journal of an agent that runs what `submit` posts."""
    return opened(path, World(), handlers={"triage": handler}, **options)
