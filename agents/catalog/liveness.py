"""Facts that no journal holds: whether its agent lives, and so which running tasks have crashed or hang."""

from __future__ import annotations

from pathlib import Path

from django.db.models import Q

from agents.models import IndexedTask, JournalFile, PendingIntent
from agents.models.indexed_task import UNRESOLVED
from agents.models.pending_intent import HELD
from agents.states import derive_task_state
from journal import clock, writer_lock

_AT_ONCE = 500  # rows a statement: SQLite takes only so many values


def record_writer(journal: JournalFile) -> bool:
    """Record in the journal's row which process writes it now. True if that changed."""
    writer = writer_lock.find_holder(Path(journal.path))
    pid, role = (writer.pid, writer.role[:16]) if writer is not None else (None, "")
    if (pid, role) == (journal.writer_pid, journal.writer_role):
        return False
    journal.writer_pid, journal.writer_role = pid, role
    journal.save(update_fields=["writer_pid", "writer_role"])
    return True


def journals_to_derive() -> set[int]:
    """The journals with a task whose derived state may be another one by now."""
    tasks = IndexedTask.objects.filter(Q(status__in=("running", "queued")) | ~Q(derived=""))
    return set(tasks.values_list("journal", flat=True).distinct())


def derive_states(journal: JournalFile) -> None:
    """Mark the journal's running tasks with what agents/states.py makes of them: crashed, hung or slow.

    A task of another maker's journal is unresolved: that journal does not say which process runs the task. A queued
    task is held if a step of it, or of a queued branch of it, is held, as after an approval that expired.
    """
    tasks = IndexedTask.objects.filter(journal=journal)
    running = Q(status="running")
    if journal.dialect != "stepkeeper":
        tasks.filter(running).exclude(derived=UNRESOLVED).update(derived=UNRESOLVED)
        tasks.exclude(running).exclude(derived="").update(derived="")
        return
    held = Q(status="queued", task_id__in=_held(journal))
    tasks.filter(held).exclude(derived=HELD).update(derived=HELD)
    for state, keys in _find_moved(journal).items():
        for start in range(0, len(keys), _AT_ONCE):
            tasks.filter(pk__in=keys[start : start + _AT_ONCE]).update(derived=state)
    tasks.exclude(derived="").exclude(held | running).update(derived="")


def _find_moved(journal: JournalFile) -> dict[str, list[int]]:
    """The running tasks whose derived state is another one now, by that state."""
    columns = ("pk", "task_id", "parent_id", "last_boot", "pending", "updated_at", "derived")
    rows = list(IndexedTask.objects.filter(journal=journal, status="running").values_list(*columns))
    moving = {task_id: (pending > 0, changed) for _, task_id, _, _, pending, changed, _ in rows}
    # A task that only waits for its branches does what they do: the deepest first.
    for _, task_id, parent_id, *_ in sorted(rows, key=lambda row: -len(row[1])):
        if parent_id in moving:
            opened, changed = moving[task_id]
            moving[parent_id] = (moving[parent_id][0] or opened, max(moving[parent_id][1], changed))
    found: dict[str, list[int]] = {}
    now = clock.wall()
    for pk, task_id, _, boot, _, _, derived in rows:
        opened, changed = moving[task_id]
        is_living = journal.agent_is_alive and boot == journal.highest_boot
        state = derive_task_state(
            "running", is_of_living_boot=is_living, has_open_step=opened, changed_at=changed, now=now
        )
        state = "" if state == "running" else state
        if state != derived:
            found.setdefault(state, []).append(pk)
    return found


def _held(journal: JournalFile) -> set[str]:
    """The queued tasks one of whose steps is held, and the queued tasks they are branches of."""
    queued = IndexedTask.objects.filter(journal=journal, status="queued")
    intents = PendingIntent.objects.filter(journal=journal, state=HELD)
    found = set(queued.filter(task_id__in=intents.values("task_id")).values_list("task_id", flat=True))
    level = found
    while level:
        parents = queued.filter(task_id__in=level, parent_id__isnull=False).values("parent_id")
        level = set(queued.filter(task_id__in=parents).values_list("task_id", flat=True)) - found
        found |= level
    return found
