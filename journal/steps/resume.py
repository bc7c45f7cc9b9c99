"""A step that is asked for again: found in the journal, settled from its stored bytes, then compared with the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from journal.effects import Program, Read, Write
from journal.errors import Diverged
from journal.models import Step
from journal.settle.context import SettleContext
from journal.settle.settle import settle_step
from journal.steps.divergence import find_difference
from journal.steps.task_run import TaskRun, settled_outcome, stored_outcome
from journal.store.sql import steps


@dataclass(frozen=True, slots=True)
class Resumed:
    """A step the journal holds; where it is pending, it is a read-only or a model step.

    `takes_stored`: the arguments differ and the tool takes the stored ones (`drift="stored"`).
    """

    step: Step
    takes_stored: bool
    _settled_now: bool

    @property
    def ended(self) -> bool:
        """Whether the step has an outcome, which is all that its caller gets."""
        return self.step.status != "pending"

    def outcome(self, task_run: TaskRun) -> Any:
        """The output of the ended step, or its stored error raised. A step that ended in this run was not saved."""
        return (settled_outcome if self._settled_now else stored_outcome)(task_run, self.step)


def resume_step(
    task_run: TaskRun,
    context: SettleContext,
    new: steps.NewStep,
    *,
    defaults: Mapping[str, Any] | None = None,
    registered: bool = True,
    shown: Callable[[Step], Step] = lambda step: step,
) -> Program[Resumed | None]:
    """The step the journal holds at the index of `new`, None where it holds none.

    A pending intent is settled first, from its stored bytes, whatever the code now says. `defaults`, `registered`: see
    `find_difference`. `shown` makes of the stored step what is compared. Raises Diverged and what `settle_step` raises.
    """
    if new.step_index >= task_run.stored:
        return None
    stored: Step | None = yield Read(context.store, lambda tx: steps.find_step(tx, new.task_id, new.step_index))
    if stored is None:
        return None
    pending = stored.status == "pending"
    if pending and stored.effect == "mutating":
        stored = yield from settle_step(context, new.task_id, new.step_index)
    takes_stored = yield from _check_divergence(context, shown(stored), new, defaults or {}, registered=registered)
    return Resumed(stored, takes_stored, _settled_now=pending)


def _check_divergence(
    context: SettleContext, step: Step, new: steps.NewStep, defaults: Mapping[str, Any], *, registered: bool
) -> Program[bool]:
    """Raise Diverged, naming the first difference, unless the code asks for the step the journal holds.

    True where the arguments differ and the tool takes the stored ones.
    """
    found = find_difference(step, new, defaults, registered=registered)
    if found is None:
        if step.hold_reason == "diverged":
            yield Write(context.store, lambda tx: steps.clear_divergence(tx, step.task_id, step.step_index))
        return False
    if found.arguments_only and new.drift == "stored":
        if step.drift_json != found.json:
            yield Write(context.store, lambda tx: steps.note_drift(tx, step.task_id, step.step_index, found.json))
        return True
    where = (found.place, found.parameter)
    yield Write(context.store, lambda tx: steps.mark_diverged(tx, step.task_id, step.step_index, *where))
    raise Diverged(
        f"Step {step.step_index} of {step.task_id}: the code and the journal disagree: {found.sentence}",
        hint="Nothing was sent. Restore the code this task began with, or submit a new task.",
    )
