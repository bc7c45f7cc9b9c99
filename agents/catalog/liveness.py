"""Facts that no journal holds: whether its agent lives, and so which running tasks have crashed or hang."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.db.models import Q

from agents.models import IndexedTask, JournalFile, PendingIntent
from agents.models.indexed_task import CRASHED, HUNG, UNRESOLVED
from agents.models.pending_intent import HELD
from journal import clock, writer_lock

# A model call may take minutes; a task that moves nothing for longer than this wants a person's look.
HUNG_AFTER = timedelta(minutes=10)


def record_writer(journal: JournalFile) -> bool:
    """Who writes the journal now, into its row. True when that changed."""
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
    """Mark the journal's running tasks: crashed where the boot that ran them is over, hung where nothing moves.

    One of another maker's journal is unresolved: nothing there says who is at it. A queued task one of whose steps, or
    of whose queued branches' steps, is held, as after an approval that expired, waits for a person: held.
    """
    tasks = IndexedTask.objects.filter(journal=journal)
    running = Q(status="running")
    if journal.dialect != "stepkeeper":
        tasks.filter(running).exclude(derived=UNRESOLVED).update(derived=UNRESOLVED)
        tasks.exclude(running).exclude(derived="").update(derived="")
        return
    of_living_boot = Q(last_boot=journal.highest_boot) if journal.agent_is_alive else Q(pk__in=[])
    still = Q(updated_at__lt=clock.wall() - HUNG_AFTER)
    tasks.filter(running & ~of_living_boot).exclude(derived=CRASHED).update(derived=CRASHED)
    tasks.filter(running & of_living_boot & still).exclude(derived=HUNG).update(derived=HUNG)
    held = Q(status="queued", task_id__in=_held(journal))
    tasks.filter(held).exclude(derived=HELD).update(derived=HELD)
    tasks.exclude(derived="").exclude(held | running & (~of_living_boot | still)).update(derived="")


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
