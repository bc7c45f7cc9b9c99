"""Steps that wait for a person though their row does not say so yet, as after an approval that expired undelivered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from agents.index.expired_approvals import without_expired_approval
from agents.models import IndexedTask, PendingIntent
from agents.models.pending_intent import HELD
from dashboard.journal_page import Opened
from journal.models import Step, TaskRow


def load_hold_reasons(opened: Opened, task_id: str) -> dict[int, str]:
    """Why the index holds steps of a task, by step."""
    held = PendingIntent.objects.filter(journal=opened.file, task_id=task_id, state=HELD)
    return dict(held.values_list("step_index", "hold_reason"))


def list_holds(opened: Opened) -> list[tuple[str, int, str]]:
    """Every step of the journal that the index holds, and why: what a page of several tasks compares."""
    held = PendingIntent.objects.filter(journal=opened.file, state=HELD).order_by("task_id", "step_index")
    return list(held.values_list("task_id", "step_index", "hold_reason"))


def derive_step_hold(opened: Opened, found: Step, reasons: dict[int, str]) -> Step:
    """The step with the reason for which the index holds it; an approval that can still be used goes before."""
    seen = without_expired_approval(found, opened.now)
    reason = reasons.get(seen.step_index)
    if seen.status != "pending" or seen.hold_reason or seen.decision or not reason:
        return seen
    return replace(seen, hold_reason=reason)


def derive_task_wait(opened: Opened, found: TaskRow, steps: Iterable[Step]) -> TaskRow:
    """The task; queued for a step that is held, one of these or, a branch's too, of the index's, it waits."""
    if found.status != "queued":
        return found
    for each in chain(steps, _find_other_holds(opened, found.task_id)):
        if each.status == "pending" and each.hold_reason:
            return replace(
                found,
                status="waiting",
                wait_kind="held",
                wait_step_task=each.task_id,
                wait_step_index=each.step_index,
                wait_hold=each.hold_reason,
            )
    return found


def _find_other_holds(opened: Opened, task_id: str) -> Iterator[Step]:
    for whose in _list_held_below(opened, task_id):
        held = load_hold_reasons(opened, whose)
        for index in sorted(held):
            found = opened.reader.steps(whose, after=index - 1, limit=1)
            yield from (derive_step_hold(opened, each, held) for each in found if each.step_index == index)


def _list_held_below(opened: Opened, task_id: str) -> list[str]:
    """The task, and the queued branches below it of which the index says that they are held."""
    held = IndexedTask.objects.filter(journal=opened.file, derived=HELD).order_by("task_id")
    found = level = [task_id]
    while level:
        level = list(held.filter(parent_id__in=level).exclude(task_id__in=found).values_list("task_id", flat=True))
        found = found + level
    return found
