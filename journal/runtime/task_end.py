"""The end of a task's run, recorded: completed, failed, cancelled, or waiting with its reason and time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from journal import clock, stored_errors
from journal.errors import Diverged, StepHeld, StepUnwritten, StepWaiting, TaskCancelled, TaskStop
from journal.http.frozen_request import MissingReference
from journal.models import WaitReason
from journal.reconcile import replay_window
from journal.steps.task_run import TaskRun
from journal.store.sql import steps, tasks
from journal.store.transaction import Transaction

# When a task that failed beside a step without outcome is looked at again.
_SETTLE_LATER = timedelta(seconds=30)
# A full disk may have room again at any time, and trying costs one small write.
_WRITE_LATER = timedelta(seconds=2)

_NEVER = datetime.max.replace(tzinfo=UTC)

_Wait = tuple[WaitReason, datetime | None]


def dump_end(task_run: TaskRun, failure: BaseException | None, output: object) -> str:
    """The output of a run, or what it failed with, as it is stored. It runs code of the handler's values: outside any
    transaction, or it would hold up every step.
    """
    secrets = task_run.context.secrets
    return secrets.stored(output)[0] if failure is None else stored_errors.dump_error(failure, hide=secrets.hide)


def record_end(tx: Transaction, task_run: TaskRun, causes: Sequence[BaseException], stored: str) -> None:
    """Record the end of a run: `causes` are what left it, none where it returned; `stored` is by `dump_end`."""
    task_run.note_served(tx)
    tasks.end_run(tx, task_run.task_id, task_run.number, _end(tx, task_run, causes, stored))


def _end(tx: Transaction, task_run: TaskRun, causes: Sequence[BaseException], stored: str) -> str:
    task_id = task_run.task_id
    if any(isinstance(cause, TaskCancelled) for cause in causes) and tasks.is_cancelled(tx, task_id):
        return "cancelled"
    # In a group, one waiting error is enough: a failure beside it says nothing about the waiting step.
    waits = [wait for cause in causes if (wait := _wait(tx, task_run, cause)) is not None]
    if waits:
        reason, until = min(waits, key=_soonest)
        if until is None:
            # A step that waits for a decision must not hide an intent of another branch that needs no decision.
            intent = tasks.find_pending_step(tx, task_id, intents_only=True)
            until = None if intent is None else _by_itself(tx, *intent[2:])
        tasks.put_task_aside(tx, task_id, reason, until)
        return reason.kind
    # A task may fail beside a read or a model call without an end: nothing outside depends on it.
    pending = tasks.find_pending_step(tx, task_id, intents_only=bool(causes))
    if pending is not None:
        # Ended tasks are not recovered, so one with an open step does not end: that is settled, then it runs again.
        reason = WaitReason("unresolved", pending[0], pending[1])
        tasks.put_task_aside(tx, task_id, reason, _by_itself(tx, *pending[2:]))
        return "unresolved"
    if causes:
        tasks.fail_task(tx, task_id, stored)
        return "failed"
    tasks.complete_task(tx, task_id, stored)
    return "completed"


def _wait(tx: Transaction, task_run: TaskRun, cause: BaseException) -> _Wait | None:
    """Why the task waits and until when; None for what ends it."""
    if isinstance(cause, StepHeld):
        # A person may have decided while a sibling or the parent was still running.
        until = None if steps.is_held(tx, cause.task_id, cause.step_index) else clock.wall()
        if cause.reason == "clock_suspect":
            until = _caught_up(tx)
        return WaitReason("held", cause.task_id, cause.step_index, cause.reason), until
    if isinstance(cause, StepWaiting):
        return WaitReason("due", cause.task_id, cause.step_index), cause.until
    if isinstance(cause, Diverged):
        return WaitReason("diverged"), None
    if isinstance(cause, StepUnwritten):
        return WaitReason("unwritten"), clock.wall() + _WRITE_LATER
    if isinstance(cause, MissingReference):
        return WaitReason("unset", detail=", ".join(cause.names)), None
    return None if isinstance(cause, Exception | TaskStop) else _interruption(tx, task_run, cause)


def _by_itself(tx: Transaction, hold_reason: str | None, due: str | None) -> datetime | None:
    """When a pending step is looked at again without a decision; None where it waits for one."""
    if hold_reason not in (None, "clock_suspect"):
        return None
    if hold_reason == "clock_suspect" and tx.newest > tx.now:
        return _caught_up(tx)
    # Never at once: what this run did not settle, the next one may not either.
    later = clock.wall() + _SETTLE_LATER
    return later if due is None else max(later, clock.parse(due))


def _caught_up(tx: Transaction) -> datetime:
    """The time when the clock has caught up with the journal. A step that only the clock holds needs no person."""
    return clock.parse(max(tx.newest, tx.now))


def _interruption(tx: Transaction, task_run: TaskRun, cause: BaseException) -> _Wait:
    task = tasks.find_task(tx, task_run.task_id)
    # The parent runs a branch, so a branch has no due time of its own.
    is_root = task is None or task.parent_id is None
    if task_run.context.stopping():
        return WaitReason("interrupted"), clock.wall() if is_root else None
    pause = replay_window.compute_backoff(task_run.task_id, tasks.count_breaks(tx, task_run.task_id))
    return WaitReason(tasks.BROKEN_OFF, detail=type(cause).__name__), clock.wall() + pause if is_root else None


def _soonest(wait: _Wait) -> tuple[bool, datetime, bool]:
    # A wait without a due time needs a decision; new code or a new environment may come earlier.
    reason, until = wait
    return until is None, until or _NEVER, reason.kind == "held"
