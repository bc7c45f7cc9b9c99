"""`show`: the tasks of a journal, or one task's timeline."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from journal import clock
from journal.cli.codes import OK, PROBLEM
from journal.cli.document import a_step, a_task, plain
from journal.cli.terminal import age, clean, short, table
from journal.cli.timeline import failure, lines, waits
from journal.errors import JournalUnreadable
from journal.models import Step, TaskRow
from journal.reader import JournalState, Reader
from journal.reader.dialects import OURS
from journal.writer_lock import find_holder

# A person waits at a terminal: longer than a page does.
_BUDGET = 30.0
_PAGE = 500
_CAP = 1_000_000
_LEAST = 1000  # pending steps that are looked through for why a task waits


def run(options: argparse.Namespace) -> int:
    """Print tasks or a timeline; 1 where the named task does not exist."""
    reader = Reader(options.file, budget=_BUDGET)
    state = reader.state
    if not state.readable:
        raise JournalUnreadable(state.sentence, kind=state.kind, hint=state.hint)
    if options.task is not None:
        return _one(reader, state, options.task, as_json=options.json)
    tasks, more = _tasks(reader, status=options.status, limit=options.limit)
    if options.json:
        print(_document(reader, state, tasks, more=more))
    else:
        _print_tasks(reader, state, tasks, more=more, limit=options.limit)
    return OK


def _one(reader: Reader, state: JournalState, task_id: str, *, as_json: bool) -> int:
    task = reader.task(task_id)
    if task is None:
        if as_json:
            message = f"Task {task_id}: not in this journal."
            print(json.dumps({"error": {"kind": "no_task", "message": message, "hint": "show FILE lists its tasks."}}))
        else:
            print(f"Task {clean(task_id)}: not in this journal. python -m journal show FILE lists its tasks.")
        return PROBLEM
    if as_json:
        print(_document(reader, state, [task], more=False, whole=True))
    else:
        print("\n".join(lines(reader, task, _steps(reader, task_id, cap=None), state=_state(state, task))))
    return OK


def _tasks(reader: Reader, *, status: str | None, limit: int) -> tuple[list[TaskRow], bool]:
    """The tasks with a pending step first, oldest first; then the others, newest first."""
    waiting = [reader.task(task_id) for task_id in dict.fromkeys(step.task_id for step in reader.pending(limit=limit))]
    first = [task for task in waiting if task is not None and status in (None, task.status)]
    known = {task.task_id for task in first}
    page = reader.tasks(limit=limit, status=status)
    found = first + [task for task in page.items if task.task_id not in known]
    return found[:limit], page.next_cursor is not None or len(found) > limit


def _steps(reader: Reader, task_id: str, *, cap: int | None) -> list[Step]:
    found = reader.steps(task_id, limit=_PAGE, cap=cap)
    last = found
    while len(last) >= _PAGE:
        last = reader.steps(task_id, after=last[-1].step_index, limit=_PAGE, cap=cap)
        found += last
    return found


def _document(reader: Reader, state: JournalState, tasks: list[TaskRow], *, more: bool, whole: bool = False) -> str:
    described = []
    for task in tasks:
        document = a_task(task)
        document["state"] = _state(state, task)
        document["steps"] = [a_step(step) for step in _steps(reader, task.task_id, cap=_CAP)]
        if whole:
            document["runs"] = plain(reader.runs(task.task_id))
            document["attempts"] = plain(reader.attempts(task.task_id))
            document["evidence"] = plain(reader.evidence(task.task_id))
            document["decisions"] = plain(reader.decisions(task.task_id))
            document["model_calls"] = plain(reader.model_calls(task.task_id))
        described.append(document)
    return json.dumps(
        {
            "journal": clean(state.path),
            "dialect": state.dialect,
            "agent": state.agent,
            "uuid": state.uuid,
            "warnings": list(state.warnings),
            "tasks": described,
            "more": more,
        },
        indent=2,
    )


def _print_tasks(reader: Reader, state: JournalState, tasks: list[TaskRow], *, more: bool, limit: int) -> None:
    print(f"{clean(state.path)}: {clean(state.sentence)}")
    for line in filter(None, (state.hint, *state.warnings)):
        print(clean(line))
    if not tasks:
        print("No tasks.")
        return
    now = clock.wall()
    held = {step.task_id: step for step in reversed(reader.pending(limit=max(limit, _LEAST)))}
    rows = [
        (
            clean(_state(state, task)),
            short(task.task_id) or "(no id)",
            str(task.steps or 0),
            str(task.pending or 0),
            age(task.updated_at or task.created_at, now),
            _why(reader, task, held.get(task.task_id)),
        )
        for task in tasks
    ]
    print("\n".join(table([("STATE", "TASK", "STEPS", "PENDING", "CHANGED", "WHY"), *rows])))
    if more:
        print("There are more; see --limit.")


def _state(state: JournalState, task: TaskRow) -> str:
    """The stored status; `crashed` if it says running and no agent, or a later one, has the journal open."""
    if task.status != "running" or state.dialect != OURS:
        return task.status
    holder = find_holder(Path(state.path))
    lives = holder is not None and holder.role == "agent" and task.boot == state.highest_boot
    return "running" if lives else "crashed"


def _why(reader: Reader, task: TaskRow, pending: Step | None) -> str:
    marks = f"odd: {', '.join(task.odd)}" if task.odd else ""
    if task.status == "failed":
        return short(failure(reader.task(task.task_id) or task) or marks)
    if pending is None:
        return short(waits(task) or marks)
    reason = pending.hold_reason or waits(task) or "pending"
    return short(f"step {pending.step_index} {pending.tool_name}: {reason} {marks}".rstrip())
