"""The rows of a task's timeline: one per step, with its bar, its verdicts and its cost."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from agents.money import Money
from dashboard.journal_page import Opened
from dashboard.tasks.usage import sum_usage
from dashboard.timeline.axis import Axis
from dashboard.timeline.layout import Bar, count_reuses, lay_out_bar
from dashboard.timeline.spans import Span, measure_duration, measure_spans
from dashboard.timeline.status import describe_doubt, describe_step, list_doubtful_attempts
from dashboard.ui.format import format_duration, to_local_time
from journal.hold_reasons import describe_outcome
from journal.models import Decision, Step
from journal.reader.snapshot import TaskSteps


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
    doubt: str = ""

    @property
    def waits(self) -> bool:
        """Whether a person must act: the only rows in the lamp's colour."""
        return self.state == "held"


def measure_step_spans(step: Step, content: TaskSteps, opened: Opened) -> tuple[Span, ...]:
    """When the step ran, from its attempts and provider responses."""
    return measure_spans(
        step,
        content.attempts.get(step.step_index, ()),
        content.calls.get(step.step_index, ()),
        boots=opened.boots,
        live=opened.live,
        now=opened.now,
    )


def build_rows(content: TaskSteps, opened: Opened, axis: Axis, *, reveal: bool) -> tuple[Row, ...]:
    """The rows on one shared axis; `reveal` names the payload's own keys."""
    found: list[Row] = []
    taken: set[int] = set()
    for step in content.steps:
        href = reverse("step", args=[opened.file.pk, step.task_id, step.step_index])
        href = "" if step.step_index in taken else href
        found.append(_build_row(step, content, opened, axis, href=href, reveal=reveal))
        taken.add(step.step_index)
    return tuple(found)


def _build_row(step: Step, content: TaskSteps, opened: Opened, axis: Axis, *, href: str, reveal: bool) -> Row:
    attempts = content.attempts.get(step.step_index, [])
    calls = content.calls.get(step.step_index, [])
    decisions = content.decisions.get(step.step_index, [])
    evidence = content.evidence.get(step.step_index, [])
    served = count_reuses(step, content.runs)
    signal = describe_step(step, attempts, live=opened.live, served=served, now=opened.now)
    spans = measure_step_spans(step, content, opened)
    used = sum_usage(calls) if calls else None
    return Row(
        index=step.step_index,
        href=href,
        tool=step.tool_name,
        effect=step.effect,
        state=signal.state,
        word=signal.word,
        bar=lay_out_bar(spans, axis, served=served > 0, evidence=evidence),
        attempts=len(attempts) or (1 if step.effect == "read_only" and step.status != "pending" else len(calls)),
        duration=format_duration(measure_duration(step, attempts, spans)),
        tokens=used.tokens if used else None,
        cost=used.cost if used else None,
        said=tuple(describe_decision(decision) for decision in decisions),
        doubt=describe_doubt(list_doubtful_attempts(attempts, decisions, evidence)),
        odd=step.odd,
        alarm=step.alarm or "",
        diverged=(name_difference(step, reveal=reveal) or "not recorded") if step.hold_reason == "diverged" else "",
    )


def name_difference(step: Step, *, reveal: bool) -> str:
    """Where the code differs from the step; for people who may not see payloads down to the parameter's name."""
    return (step.hold_detail if reveal else step.hold_parameter) or ""


_VERBS = {
    "replay": "replay approved",
    "mark_committed": "it happened",
    "mark_not_applied": "it did not happen",
    "abandon": "abandoned",
    "retry_task": "task retried",
    "cancel_task": "task cancelled",
}


def describe_decision(decision: Decision) -> str:
    """Who decided what, when, and which attempt it became."""
    at = decision.applied_at or decision.created_at
    clock = to_local_time(at).strftime("%H:%M:%S") if at else "at an unknown time"
    verb = _VERBS.get(decision.kind, decision.kind)
    if decision.outcome != "applied":
        return f"{decision.actor}: {verb} · {clock} · {describe_outcome(decision)}"
    attempt = f" · attempt {decision.consumed_attempt}" if decision.consumed_attempt else ""
    return f"{decision.actor}: {verb} · {clock}{attempt}"
