"""The fleet index: each journal's rows, tailed by revision into the dashboard's own tables, one slice at a time.

A slice and the cursor behind it are one transaction, and leaf rows are unique. So a slice that is applied twice, after
a kill or by a second reading, counts once. Work that a slice leaves for later is marked in one of our rows: a task to
read again, an intent to look at again, an hour to sum again. A kill loses no mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from agents.catalog import discovery
from agents.index import intents, rollup
from agents.index.pace import Pace
from agents.index.rows import drop_rows, name_steps, put_model_calls, put_runs
from agents.models import IndexedTask, JournalFile
from journal import clock, stored_errors
from journal.models import TaskRow
from journal.reader import Changes, Reader

NEWEST = 1000  # tasks read of a journal that has no revisions
_UNFINISHED = ("queued", "running", "waiting")
_TASK_COLUMNS = (
    *("parent_id", "agent", "handler", "status", "error_type", "error_message", "steps", "pending"),
    *("wait_kind", "wait_step_task", "wait_step_index", "wait_hold", "wait_detail"),
    *("started_at", "updated_at", "dated", "ended_at", "last_boot", "revision", "doubtful"),
)
_MESSAGE = 1000  # characters of a failure's message: the task's own page has it all
_BOOT = 2**32
_MOST_STEPS = 2**31 - 1  # an impossible step index must not break the row of its task or other rows


def read_slices(journal: JournalFile) -> Iterator[None]:
    """Read what is new in a journal; pauses after each slice, when its progress is on disk.

    Raises JournalUnreadable when the file cannot be read; the index then keeps what it knows.
    """
    reader, pace = discovery.reader_for(journal), Pace()
    if journal.dialect != "stepkeeper":
        yield from _read_newest(journal, reader, pace)
    else:
        if journal.highest_boot > journal.indexed_boot:
            _begin_boot(journal)
            yield
        yield from _read_doubtful(journal, reader, pace)
        yield from _read_changes(journal, reader, pace)
    yield from intents.update_slices(journal, reader)
    yield from _sum_hours(journal)
    journal.read_at = clock.wall()
    journal.save(update_fields=["read_at"])


def look_again_slices(journal: JournalFile) -> Iterator[None]:
    """Look again at the intents whose outlook may have changed: time, or an agent's death, changes that."""
    yield from intents.update_slices(journal, discovery.reader_for(journal))


def _read_changes(journal: JournalFile, reader: Reader, pace: Pace) -> Iterator[None]:
    more = True
    while more:
        with pace.slice():
            changes = reader.changes(journal.indexed_revision, limit=pace.rows)
            touched, tools = _touched(changes), name_steps(reader, changes.model_calls, changes.steps)
            tasks = reader.load_tasks(touched)
            with transaction.atomic():
                hours = put_runs(journal, changes.runs) | put_model_calls(journal, changes.model_calls, tools)
                _put_tasks(journal, tasks, _changed(changes))
                # A run that was served more saves what its earlier calls cost, whatever hour those were in.
                if changes.model_calls or changes.runs:
                    ids = {call.task_id for call in changes.model_calls} | {run.task_id for run in changes.runs}
                    rollup.rebuild_tasks(journal, ids)
                    hours |= rollup.hours_of(journal, ids)
                intents.mark_changed(journal, touched)
                _mark_hours(journal, hours)
                # A kill before this commit leaves cursor, rows and marks as they were; after it, all are new.
                journal.indexed_revision = max(journal.indexed_revision, changes.highest_revision)
                journal.save(update_fields=["indexed_revision"])
        more = changes.more
        yield


def _begin_boot(journal: JournalFile) -> None:
    """A new boot: a power cut may have taken rows that were read before they were synced.

    Unfinished tasks and everything of the boot before are read anew, from the rows that are there now.
    """
    before = max(min(journal.indexed_boot, journal.highest_boot - 1), 0) * _BOOT
    with transaction.atomic():
        known = IndexedTask.objects.filter(journal=journal)
        known.filter(Q(status__in=_UNFINISHED) | Q(revision__gte=before)).update(doubtful=True)
        # A kill before this commit begins the boot again; after it, the marks say what is left to do.
        journal.indexed_boot = journal.highest_boot
        journal.indexed_revision = min(journal.indexed_revision, max(before - 1, 0))
        journal.save(update_fields=["indexed_revision", "indexed_boot"])


def _read_doubtful(journal: JournalFile, reader: Reader, pace: Pace) -> Iterator[None]:
    doubtful = IndexedTask.objects.filter(journal=journal, doubtful=True).order_by("pk")
    while task_ids := list(doubtful.values_list("task_id", flat=True)[: pace.rows]):
        with pace.slice():
            tasks = reader.load_tasks(task_ids)
            runs = [run for task in tasks for run in reader.runs(task.task_id)]
            calls = [call for task in tasks for call in reader.model_calls(task.task_id, None)]
            tools = name_steps(reader, calls, ())
            with transaction.atomic():
                hours = rollup.hours_of(journal, task_ids)
                drop_rows(journal, task_ids)
                gone = set(task_ids) - {task.task_id for task in tasks}
                IndexedTask.objects.filter(journal=journal, task_id__in=gone).delete()
                _put_tasks(journal, tasks, {})
                hours |= put_runs(journal, runs) | put_model_calls(journal, calls, tools)
                rollup.rebuild_tasks(journal, task_ids)
                intents.mark_changed(journal, task_ids)
                _mark_hours(journal, hours)
        yield


def _read_newest(journal: JournalFile, reader: Reader, pace: Pace) -> Iterator[None]:
    """A foreign journal has no revisions: its newest tasks are read whenever the file changed."""
    seen: set[str] = set()
    cursor: str | None = None
    while len(seen) < NEWEST:
        with pace.slice():
            page = reader.tasks(after=cursor, limit=min(pace.rows, NEWEST - len(seen)))
            with transaction.atomic():
                _put_tasks(journal, page.items, {})
                intents.mark_changed(journal, [task.task_id for task in page.items])
        seen.update(task.task_id for task in page.items)
        cursor = page.next_cursor
        yield
        if cursor is None:
            break
    known = IndexedTask.objects.filter(journal=journal)
    known.filter(pk__in=[pk for pk, task_id in known.values_list("pk", "task_id") if task_id not in seen]).delete()


def _mark_hours(journal: JournalFile, hours: Iterable[datetime]) -> None:
    """Note that the sums of these hours are to be made anew; in the transaction that changed what is summed."""
    journal.unsummed_hours = sorted({*journal.unsummed_hours, *map(clock.text, hours)})
    journal.save(update_fields=["unsummed_hours"])


def _sum_hours(journal: JournalFile) -> Iterator[None]:
    while journal.unsummed_hours:
        hour, *left = journal.unsummed_hours
        with transaction.atomic():
            rollup.rebuild_hours(journal, [clock.parse(hour)])
            journal.unsummed_hours = left
            journal.save(update_fields=["unsummed_hours"])
        yield


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
        doubtful=False,
    )
