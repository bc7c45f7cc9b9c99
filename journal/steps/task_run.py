"""One run of a task, as the protocol of its steps sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from journal import codec, stored_errors
from journal.models import Step
from journal.providers.profile import Profile
from journal.settle.context import SettleContext
from journal.store.sql import tasks
from journal.store.transaction import Transaction


@dataclass(slots=True)
class TaskRun:
    """One opening of a task: which steps the journal already holds, and how far they were served."""

    context: SettleContext
    task_id: str
    number: int
    stored: int
    profiles: Mapping[str, Profile]
    keep_prompt: bool = False
    served_through: int = -1
    flushed_through: int = -1
    is_closed: Callable[[], bool] = field(default=lambda: False)

    def begin(self, tx: Transaction) -> None:
        """The beginning of every first write of a step: refuse a cancelled task, note how far the journal served."""
        task = tasks.require_uncancelled(tx, self.task_id)
        if task is not None and task.status in ("completed", "failed"):
            tasks.reopen_task(tx, self.task_id)
        self.note_served(tx)

    def note_served(self, tx: Transaction) -> None:
        """Note on disk how far the journal served this run."""
        if self.served_through > self.flushed_through:
            tasks.note_served(tx, self.task_id, self.number, self.served_through)
            self.flushed_through = self.served_through


def stored_outcome(task_run: TaskRun, step: Step) -> Any:
    """The result of an ended step: its output, or its stored error raised."""
    what = f"Step {step.step_index} of {step.task_id} ({step.tool_name})"
    task_run.served_through = max(task_run.served_through, step.step_index)
    if step.status == "failed":
        raise stored_errors.load_step_failed(step.error_json, what)
    if step.status == "abandoned":
        raise stored_errors.load_step_abandoned(step.error_json, what)
    return codec.loads(step.output_json or "null")


def settled_outcome(task_run: TaskRun, step: Step) -> Any:
    """The same of a step that ended while this run was at it: its work was not saved."""
    before = task_run.served_through
    try:
        return stored_outcome(task_run, step)
    finally:
        task_run.served_through = before
