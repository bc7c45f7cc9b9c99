"""Steps that wait for a person though their row does not say so yet, as after an approval that expired undelivered."""

from __future__ import annotations

from dataclasses import replace

from agents import lapse
from agents.models import PendingIntent
from agents.models.pending_intent import HELD
from dashboard.pages.opening import Opened
from journal.models import Step, Task


def reasons(opened: Opened, task_id: str) -> dict[int, str]:
    """Why the index holds steps of a task, by step."""
    held = PendingIntent.objects.filter(journal=opened.file, task_id=task_id, state=HELD)
    return dict(held.values_list("step_index", "hold_reason"))


def step(opened: Opened, found: Step, reasons: dict[int, str]) -> Step:
    """The step with the reason for which the index holds it; an approval that can still be used goes before."""
    seen = lapse.without(found, opened.now)
    reason = reasons.get(seen.step_index)
    if seen.status != "pending" or seen.hold_reason or seen.decision or not reason:
        return seen
    return replace(seen, hold_reason=reason)


def task(found: Task, steps: tuple[Step, ...]) -> Task:
    """The task; queued for a step that is held, it waits."""
    held = next((each for each in steps if each.status == "pending" and each.hold_reason), None)
    if found.status != "queued" or held is None:
        return found
    return replace(found, status="waiting", wait_reason=f"held: step {held.step_index}: {held.hold_reason}")
