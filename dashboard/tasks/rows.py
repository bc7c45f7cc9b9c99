"""The rows of a task's timeline: one a step, with its bar, its verdict caps and what it cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from django.urls import reverse

from agents.index import differences
from agents.money import Money
from dashboard.derived_holds import derive_step_hold, load_hold_reasons
from dashboard.journal_page import Opened
from dashboard.tasks.usage import sum_usage
from dashboard.timeline.axis import Axis
from dashboard.timeline.layout import Bar, count_reuses, lay_out_bar
from dashboard.timeline.spans import Span, measure_duration, measure_spans
from dashboard.timeline.status import describe_step
from dashboard.ui.format import format_duration, to_local_time
from journal.models import Attempt, Decision, ModelCall, Run, Step

_Item = TypeVar("_Item", Attempt, ModelCall, Decision)


@dataclass(frozen=True, slots=True)
class Row:
    """One step on the timeline. Without `href` an earlier row of a foreign journal has the address."""

    index: int
    href: str
    tool: str
    effect: str | None
    state: str
    word: str
    bar: Bar | None
    attempts: int
    duration: str
    tokens: int | None
    cost: Money | None
    said: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()

    diverged: str = ""
    alarm: str = ""

    @property
    def waits(self) -> bool:
        """Whether a person must act: the only rows in the lamp's colour."""
        return self.state == "held"


@dataclass(frozen=True, slots=True)
class Material:
    """Everything a journal says about one task's steps, in step order."""

    steps: tuple[Step, ...]
    attempts: dict[int, list[Attempt]]
    calls: dict[int, list[ModelCall]]
    decisions: dict[int, list[Decision]]
    runs: tuple[Run, ...]
    whole: bool = True  # whether these are all steps of the task
    more: bool = False  # whether more follow

    @property
    def last(self) -> int:
        """The index past which the next page begins."""
        return max((step.step_index for step in self.steps if _is_numbered(step)), default=-1)

    def spans(self, step: Step, opened: Opened) -> tuple[Span, ...]:
        return measure_spans(
            step,
            self.attempts.get(step.step_index, ()),
            self.calls.get(step.step_index, ()),
            boots=opened.boots,
            live=opened.live,
            now=opened.now,
        )


def load_material(opened: Opened, task_id: str, *, after: int, limit: int) -> Material:
    """One page of a task's steps with what belongs to them."""
    reader = opened.reader
    reasons = load_hold_reasons(opened, task_id)
    listed, more = _cut_page(reader.steps(task_id, after=after, limit=limit + 1), limit)
    steps = tuple(derive_step_hold(opened, each, reasons) for each in listed)
    # A row whose index is no number says nothing about where the page begins and ends.
    numbers = [step.step_index for step in steps if _is_numbered(step)]
    page = range(min(numbers), max(numbers) + 1) if numbers else range(0)
    return Material(
        steps,
        _group_by_step(reader.attempts(task_id, page)),
        _group_by_step(reader.model_calls(task_id, page)),
        _group_by_step(reader.decisions(task_id, page)),
        tuple(reader.runs(task_id)),
        whole=after < 0 and not more,
        more=more,
    )


def _cut_page(found: list[Step], limit: int) -> tuple[list[Step], bool]:
    """Of `limit` steps and one more those of this page, and whether others follow.

    Rows without a number that stand before the first step are on it besides. It ends between two numbers: in a journal
    of another maker several rows may share one, and the next page begins past it.
    """
    first = next((at for at, step in enumerate(found) if _is_numbered(step)), len(found))
    if len(found) - first <= limit:
        return found, False
    page, beyond = found[first : first + limit], found[first + limit].step_index
    return found[:first] + ([step for step in page if step.step_index != beyond] or page), True


def _is_numbered(step: Step) -> bool:
    return "step_index" not in step.odd


def build_rows(material: Material, opened: Opened, axis: Axis, *, reveal: bool) -> tuple[Row, ...]:
    """The rows on one shared axis; `reveal` names the payload's own keys."""
    found: list[Row] = []
    taken: set[int] = set()
    for step in material.steps:
        href = reverse("step", args=[opened.file.pk, step.task_id, step.step_index])
        href = "" if step.step_index in taken else href
        found.append(_build_row(step, material, opened, axis, href=href, reveal=reveal))
        taken.add(step.step_index)
    return tuple(found)


def _build_row(step: Step, material: Material, opened: Opened, axis: Axis, *, href: str, reveal: bool) -> Row:
    attempts = material.attempts.get(step.step_index, [])
    calls = material.calls.get(step.step_index, [])
    served = count_reuses(step, material.runs)
    signal = describe_step(step, attempts, live=opened.live, served=served, now=opened.now)
    spans = material.spans(step, opened)
    used = sum_usage(calls) if calls else None
    return Row(
        index=step.step_index,
        href=href,
        tool=step.tool_name,
        effect=step.effect,
        state=signal.state,
        word=signal.word,
        bar=lay_out_bar(spans, axis, served=served > 0),
        attempts=len(attempts) or (1 if step.effect == "read_only" and step.status != "pending" else len(calls)),
        duration=format_duration(measure_duration(step, attempts, spans)),
        tokens=used.tokens if used else None,
        cost=used.cost if used else None,
        said=tuple(describe_decision(decision) for decision in material.decisions.get(step.step_index, [])),
        odd=step.odd,
        alarm=step.alarm or "",
        diverged=(name_difference(step, reveal=reveal) or "not recorded") if step.hold_reason == "diverged" else "",
    )


def name_difference(step: Step, *, reveal: bool) -> str:
    """Where the code differs from the step; for people who may not see payloads down to the parameter's name."""
    place = step.hold_detail or ""
    return place if reveal else differences.parameter(place)


_VERBS = {
    "replay": "replay approved",
    "mark_committed": "marked committed",
    "mark_not_applied": "marked not applied",
    "abandon": "abandoned",
    "replay_as_new": "replay as a new effect approved",
    "cancel_task": "task cancelled",
}


def describe_decision(decision: Decision) -> str:
    """Who decided what, when, and which attempt it became."""
    at = decision.applied_at or decision.created_at
    clock = to_local_time(at).strftime("%H:%M:%S") if at else "at an unknown time"
    verb = _VERBS.get(decision.kind, decision.kind)
    if decision.outcome.startswith("refused"):
        return f"{verb} by {decision.actor} {clock} · {decision.outcome}"
    attempt = f" · attempt {decision.consumed_attempt}" if decision.consumed_attempt else ""
    return f"{verb} by {decision.actor} {clock}{attempt}"


def _group_by_step(items: Iterable[_Item]) -> dict[int, list[_Item]]:
    by: dict[int, list[_Item]] = {}
    for item in items:
        if item.step_index is not None:
            by.setdefault(item.step_index, []).append(item)
    return by
