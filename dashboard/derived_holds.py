"""Steps that wait for a person although their row does not say so yet, as after an approval that expired."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain

from agents.index.expired_approvals import without_expired_approval
from agents.models import IndexedTask, PendingIntent
from agents.models.pending_intent import HELD
from dashboard.journal_page import Opened
from journal.models import Step, TaskRow


@dataclass(frozen=True, slots=True)
class Holds:
    """Why the index holds steps of one journal, by task and index. Read before the journal is opened.

    `parents` are the tasks above the branches of which the index says that they are held.
    """

    reasons: dict[tuple[str, int], str] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)

    def list_places(self, task_id: str) -> list[tuple[str, int]]:
        """The steps that the index holds of a task and of the held branches below it."""
        below = self.list_below(task_id)
        return [place for place in self.reasons if place[0] in below]

    def list_below(self, task_id: str) -> set[str]:
        """The task, and the held branches below it."""
        found = level = {task_id}
        while level:
            level = {branch for branch, parent in self.parents.items() if parent in level} - found
            found = found | level
        return found


def load_holds(opened: Opened) -> Holds:
    """The steps of the journal that the index holds, and the branches they may belong to."""
    held = PendingIntent.objects.filter(journal=opened.file, state=HELD).order_by("task_id", "step_index")
    reasons = {(task, index): why for task, index, why in held.values_list("task_id", "step_index", "hold_reason")}
    branches = IndexedTask.objects.filter(journal=opened.file, derived=HELD, parent_id__isnull=False)
    return Holds(reasons, dict(branches.values_list("task_id", "parent_id")) if reasons else {})


def derive_step_hold(opened: Opened, found: Step, holds: Holds) -> Step:
    """The step with the reason for which the index holds it; an approval that can still be used goes before."""
    seen = without_expired_approval(found, opened.now)
    reason = holds.reasons.get((seen.task_id, seen.step_index))
    if seen.status != "pending" or seen.hold_reason or seen.decision or not reason:
        return seen
    return replace(seen, hold_reason=reason)


def derive_task_wait(found: TaskRow, steps: Iterable[Step], named: Iterable[Step], holds: Holds) -> TaskRow:
    """The task. A queued task waits where one of its steps, or one of `named` of it or its branches, is held."""
    if found.status != "queued":
        return found
    below = holds.list_below(found.task_id)
    for each in chain(steps, (step for step in named if step.task_id in below)):
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
