"""The fleet index: each journal's rows, tailed by revision into the dashboard's own tables.

A batch and the cursor behind it are one transaction, and leaf rows are unique, so a batch applied twice, by a kill or
by a reader that re-reads, counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction

from agents.catalog import discovery
from agents.index import intents, rollup
from agents.index.rows import drop_rows, put_model_calls, put_runs
from agents.models import IndexedTask, JournalFile
from journal import clock, stored_errors
from journal.models import TaskRow
from journal.reader import Changes, Reader

BATCH = 1000  # rows per table and transaction: others write in between
NEWEST = 1000  # tasks read of a journal that has no revisions
_UNFINISHED = ("queued", "running", "waiting")
_TASK_COLUMNS = (
    *("parent_id", "agent", "handler", "status", "error_type", "error_message", "steps", "pending"),
    *("wait_kind", "wait_step_task", "wait_step_index", "wait_hold", "wait_detail"),
    *("started_at", "updated_at", "dated", "ended_at", "last_boot", "revision"),
)
_MESSAGE = 1000  # characters of a failure's message: the task's own page has it all
_BOOT = 2**32
_MOST_STEPS = 2**31 - 1  # a made-up index must not break the row of its task, nor those beside it


def read_changes(journal: JournalFile) -> bool:
    """Read what is new in a journal. True when there is more: call again.

    Raises JournalUnreadable when the file cannot be read; the index then keeps what it knows.
    """
    reader = discovery.reader_for(journal)
    if journal.dialect != "stepkeeper":
        _reread_newest(journal, reader)
        return False
    if journal.highest_boot > journal.indexed_boot:
        return _begin_boot(journal, reader)
    return _tail(journal, reader)


def refresh_intents(journal: JournalFile) -> None:
    """Look again at what recovery would do about every pending intent: time, or an agent's death, changes that."""
    intents.update_intents(journal, discovery.reader_for(journal), everything=True)


def _tail(journal: JournalFile, reader: Reader) -> bool:
    changes = reader.changes(journal.indexed_revision, limit=BATCH)
    touched = _touched(changes)
    tasks = _load(reader, touched)
    # Before the cursor moves: a kill in between looks at them again.
    intents.update_intents(journal, reader, touched=touched)
    with transaction.atomic():
        hours = put_runs(journal, changes.runs)
        hours |= put_model_calls(journal, reader, changes.model_calls, changes.steps)
        _put_tasks(journal, tasks, _changed(changes))
        # A run that was served more saves what its earlier calls cost, whatever hour those were in.
        if changes.model_calls or changes.runs:
            ids = {call.task_id for call in changes.model_calls} | {run.task_id for run in changes.runs}
            rollup.rebuild_tasks(journal, ids)
            rollup.rebuild_hours(journal, hours | rollup.hours_of(journal, ids))
        # A kill before this commit leaves cursor and rows as they were; after it, both are new.
        journal.indexed_revision = max(journal.indexed_revision, changes.highest_revision)
        _mark_read(journal)
    return changes.more


def _begin_boot(journal: JournalFile, reader: Reader) -> bool:
    """A new boot: a power cut may have taken rows that were read before they were synced.

    Unfinished tasks and everything of the boot before are read anew, from the rows that are there now.
    """
    before = max(min(journal.indexed_boot, journal.highest_boot - 1), 0) * _BOOT
    known = IndexedTask.objects.filter(journal=journal)
    doubtful = set(known.filter(status__in=_UNFINISHED).values_list("task_id", flat=True))
    doubtful |= set(known.filter(revision__gte=before).values_list("task_id", flat=True))
    for task_id in sorted(doubtful):
        with transaction.atomic():
            _reread(journal, reader, task_id)
    # Only now: a kill above begins this boot again.
    journal.indexed_boot = journal.highest_boot
    journal.indexed_revision = min(journal.indexed_revision, max(before - 1, 0))
    _mark_read(journal)
    return _tail(journal, reader)


def _reread(journal: JournalFile, reader: Reader, task_id: str) -> None:
    hours = rollup.hours_of(journal, [task_id])
    drop_rows(journal, task_id)
    task = reader.task(task_id)
    if task is None:
        IndexedTask.objects.filter(journal=journal, task_id=task_id).delete()
    else:
        _put_tasks(journal, [task], {})
        hours |= put_runs(journal, reader.runs(task_id))
        hours |= put_model_calls(journal, reader, reader.model_calls(task_id, None), ())
        rollup.rebuild_tasks(journal, [task_id])
    rollup.rebuild_hours(journal, hours)


def _reread_newest(journal: JournalFile, reader: Reader) -> None:
    """A foreign journal has no revisions: its newest tasks are read whenever the file changed."""
    tasks: list[TaskRow] = []
    cursor: str | None = None
    while len(tasks) < NEWEST:
        page = reader.tasks(after=cursor, limit=min(200, NEWEST - len(tasks)))
        tasks.extend(page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
    seen = {task.task_id for task in tasks}
    intents.update_intents(journal, reader, touched=seen)
    with transaction.atomic():
        gone = [
            row.pk for row in IndexedTask.objects.filter(journal=journal).only("task_id") if row.task_id not in seen
        ]
        IndexedTask.objects.filter(pk__in=gone).delete()
        _put_tasks(journal, tasks, {})
        _mark_read(journal)


def _load(reader: Reader, task_ids: Iterable[str]) -> list[TaskRow]:
    found = (reader.task(task_id) for task_id in sorted(task_ids))
    return [task for task in found if task is not None]


def _touched(changes: Changes) -> set[str]:
    found = {task.task_id for task in changes.tasks} | {step.task_id for step in changes.steps}
    found |= {attempt.task_id for attempt in changes.attempts} | {one.task_id for one in changes.evidence}
    found |= {decision.task_id for decision in changes.decisions} | {run.task_id for run in changes.runs}
    return found | {call.task_id for call in changes.model_calls}


def _changed(changes: Changes) -> dict[str, datetime]:
    """When each task of a batch last showed life: its steps and attempts move while its own row rests."""
    found: dict[str, datetime] = {}
    moved = [(step.task_id, step.updated_at) for step in changes.steps]
    moved += [(attempt.task_id, attempt.ended_at or attempt.started_at) for attempt in changes.attempts]
    moved += [(call.task_id, call.ended_at or call.started_at) for call in changes.model_calls]
    for task_id, at in moved:
        if at is not None:
            found[task_id] = max(at, found.get(task_id, at))
    return found


def _put_tasks(journal: JournalFile, tasks: Sequence[TaskRow], changed: dict[str, datetime]) -> None:
    known = IndexedTask.objects.filter(journal=journal, task_id__in=[task.task_id for task in tasks])
    before = dict(known.values_list("task_id", "updated_at"))
    rows = []
    for task in tasks:
        told = [at for at in (task.updated_at or task.created_at, changed.get(task.task_id)) if at is not None]
        times = [*told, *([before[task.task_id]] if task.task_id in before else [])]
        rows.append(_row(journal, task, max(times, default=clock.wall()), dated=bool(told)))
    IndexedTask.objects.bulk_create(
        rows,
        batch_size=200,
        update_conflicts=True,
        unique_fields=["journal", "task_id"],
        update_fields=_TASK_COLUMNS,
    )


def _row(journal: JournalFile, task: TaskRow, updated_at: datetime, *, dated: bool) -> IndexedTask:
    error_type, error_message = stored_errors.describe_failure(task.error_json)
    return IndexedTask(
        journal=journal,
        task_id=task.task_id,
        parent_id=task.parent_id,
        agent=(task.agent or journal.agent)[:200],
        handler=(task.handler or "")[:200],
        status=task.status[:16],
        wait_kind=task.wait_kind and task.wait_kind[:16],
        wait_step_task=task.wait_step_task,
        wait_step_index=task.wait_step_index,
        wait_hold=task.wait_hold and task.wait_hold[:64],
        wait_detail=task.wait_detail,
        error_type=error_type[:200],
        error_message=error_message[:_MESSAGE],
        steps=min(task.steps or 0, _MOST_STEPS),
        pending=task.pending or 0,
        started_at=task.created_at,
        updated_at=updated_at,
        dated=dated,
        ended_at=task.ended_at,
        last_boot=task.boot,
        revision=task.revision,
    )


def _mark_read(journal: JournalFile) -> None:
    journal.read_at = clock.wall()
    journal.save(update_fields=["indexed_revision", "indexed_boot", "read_at"])
