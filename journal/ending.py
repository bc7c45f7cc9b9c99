"""How one opening of a task ended, written down: completed, failed, cancelled, or waiting for what and until when."""

from __future__ import annotations

from datetime import datetime, timedelta

from journal import clock, failures, steps, tasks
from journal.errors import Diverged, StepHeld, StepUnwritten, StepWaiting, TaskCancelled
from journal.freeze import MissingReference
from journal.session import Session
from journal.transaction import Transaction

# When a task that failed beside a step without outcome is looked at again.
_SETTLE_LATER = timedelta(seconds=30)
# A full disk may have room again at any time, and trying costs one small write.
_WRITE_LATER = timedelta(seconds=2)


def record_end(tx: Transaction, session: Session, cause: BaseException | None, output: object) -> None:
    """Record the end of a run: `cause` is what left it, None where it returned `output`."""
    session.note_served(tx)
    tasks.end_run(tx, session.task_id, session.run, _end(tx, session, cause, output))


def _end(tx: Transaction, session: Session, cause: BaseException | None, output: object) -> str:
    task_id, secrets = session.task_id, session.desk.secrets
    if isinstance(cause, TaskCancelled):
        return "cancelled"
    reason, until = _waits(cause)
    if isinstance(cause, StepHeld) and not steps.is_held(tx, cause.task_id, cause.step_index):
        # Decided while a sibling of the step, or what it is a branch of, was still running.
        until = clock.wall()
    if reason is not None:
        tasks.wait(tx, task_id, reason, until)
        return reason.partition(":")[0]
    pending = tasks.first_pending(tx, task_id)
    if pending is not None:
        # Ended tasks are not recovered, so one with an open step does not end: that is settled, then it runs again.
        until = None if pending[2] is not None else clock.wall() + _SETTLE_LATER
        tasks.wait(tx, task_id, f"unresolved: step {pending[1]} of {pending[0]} is pending", until)
        return "unresolved"
    if cause is not None:
        tasks.fail(tx, task_id, failures.to_json(cause, hide=secrets.hide))
        return "failed"
    tasks.complete(tx, task_id, secrets.stored(output)[0])
    return "completed"


def _waits(cause: BaseException | None) -> tuple[str | None, datetime | None]:
    """(why the task waits, until when), or (None, None) for what ends it."""
    if isinstance(cause, StepHeld):
        return f"held: step {cause.step_index}: {cause.reason}", None
    if isinstance(cause, StepWaiting):
        return f"due: step {cause.step_index}", cause.until
    if isinstance(cause, Diverged):
        return "diverged: the code asks for another step than the journal holds", None
    if isinstance(cause, StepUnwritten):
        return "unwritten: the journal could not be written", clock.wall() + _WRITE_LATER
    if isinstance(cause, MissingReference):
        return f"missing: {', '.join(cause.names)}", None
    if cause is not None and not isinstance(cause, Exception):
        return "interrupted: the process was stopping", clock.wall()
    return None, None
