"""Decisions and questions about a held step, asked for by an operator and delivered to the worker's own code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.decisions.check import StepBinding
from agents.fleet.queries import list_pending
from agents.jobs.queue import request_job, run_job
from agents.models import Job
from tests.builders.fleet import a_person, journal_file


def ask(path: Path, *, decision: Any = "replay", actor: Any = None, kind: str = "decision", **more: Any) -> Job:
    """Ask about the oldest pending step of the fleet, which lies in this journal."""
    line = list_pending().items[0]
    binding = more.pop("binding", None) or StepBinding(line.key, line.payload_sha256, line.dispatches)
    return request_job(
        kind,
        actor=actor or a_person(),
        journal=journal_file(path),
        task_id=line.task_id,
        step_index=line.step_index,
        binding=binding,
        decision=decision,
        reason=more.pop("reason", "checked at the provider"),
        **more,
    )


def deliver(job: Job) -> Job:
    """What the queue does with a job's id."""
    run_job(str(job.uuid))
    job.refresh_from_db()
    return job
