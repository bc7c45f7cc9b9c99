"""A task's state in words: the reason it waits or failed, and how far it came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.decisions.allowed import ENDED
from dashboard.tasks.rows import Row, name_difference
from dashboard.timeline.status import describe_task_wait
from dashboard.ui.format import format_count, format_duration
from journal import stored_errors
from journal.models import Step, TaskRow


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a task failed. The message may quote a payload: empty for people who may not see those."""

    type: str
    message: str
    hidden: bool


def describe_failure(task: TaskRow, *, reveal: bool) -> Failure | None:
    """What failed the task; None for one that did not fail, or whose journal does not say."""
    kind, message = stored_errors.describe_failure(task.error_json)
    if task.status != "failed" or not (kind or message):
        return None
    return Failure(kind or "error", message if reveal else "", hidden=bool(message) and not reveal)


def describe_task(
    task: TaskRow,
    state: str,
    own: Sequence[Row],
    *,
    held: tuple[str, Row] | None,
    total: int,
    diverged: Step | None,
    boots: int,
    reveal: bool,
) -> str:
    """The task in one sentence.

    `own` are the rows of the page and `total` says how many steps there are. `held` is a row that waits for a person,
    with its task, and `diverged` the step the code differs from: both may be a branch's.
    """
    steps = format_count(total, "step")
    # Of a task that is longer than a page only what the page shows is known here.
    served = sum(row.state == "reused" for row in own) if total <= len(own) else 0
    saved = f", {served} served from the journal" if served else ""
    end = task.ended_at or task.updated_at
    span = f" in {format_duration((end - task.created_at).total_seconds())}" if end and task.created_at else ""
    restarts = "once" if boots == 2 else f"{boots - 1} times"
    over = f", restarted {restarts}" if boots > 1 else ""
    if task.derived:
        return _describe_foreign_task(task, steps)
    if state in ENDED:
        return f"{state.capitalize()}{span}{over}: {steps}{saved}."
    if state == "waiting" and diverged:
        place = describe_divergence(diverged, reveal=reveal, of=_name_branch(diverged.task_id, task))
        return f"Waits for a person, with nothing to approve: {place}"
    if held:
        whose, row = held
        return f"Step {row.index}{_name_branch(whose, task)} needs your decision."
    if state == "waiting":
        why = describe_task_wait(task.wait, task.task_id) if task.wait else "it waits for its next attempt"
        return f"Waiting: {why}."
    if state == "crashed":
        return f"Its agent is gone: {steps} on disk{saved}. It resumes when the agent is started again."
    if state == "queued":
        return "Queued: the agent has not taken it yet."
    if total > len(own):
        return f"Running: {steps} so far."
    last = own[-1] if own else None
    return f"Running: step {last.index}, {last.tool}{saved}." if last else "Running: no step yet."


def _name_branch(task_id: str, task: TaskRow) -> str:
    return "" if task_id == task.task_id else f" of its branch {task_id}"


def describe_divergence(step: Step, *, reveal: bool, of: str = "") -> str:
    """Where the code differs from a step, by the names of its parts: the journal keeps no values of the code's.

    `of` names the branch whose step it is.
    """
    place = name_difference(step, reveal=reveal)
    said = f" First difference: {place}." if place else ""
    return f"the handler's code asks for another step {step.step_index}{of} than the journal holds.{said}"


def _describe_foreign_task(task: TaskRow, steps: str) -> str:
    """Such a journal has steps and nothing else: who is at it, or whether more was to come, nobody can read there."""
    if task.status == "running":
        pending = f"{task.pending:,} of them pending" if task.pending else "some of them pending"
        return (
            f"{steps} on record, {pending}: this journal was not made by stepkeeper, so nothing here says whether an "
            "agent is at it, and nothing of it is recovered from here."
        )
    ended = "at least one failed" if task.status == "failed" else "none pending"
    return f"{steps} on record, {ended}: this journal, not made by stepkeeper, does not say whether more was to come."
