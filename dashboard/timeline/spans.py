"""Start, end and verdict of each attempt or model call of a step. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest

from journal.models import Attempt, Boot, ModelCall, Step


@dataclass(frozen=True, slots=True)
class Span:
    """One attempt or call in seconds, `state` its verdict, `title` its sentence."""

    start: float
    end: float
    state: str
    title: str


def measure_spans(
    step: Step,
    attempts: Sequence[Attempt],
    calls: Sequence[ModelCall],
    *,
    boots: Sequence[Boot],
    live: int | None,
    now: datetime,
) -> tuple[Span, ...]:
    """The spans of one step. `live` is the boot that runs now; older open ones end where their boot did."""
    ends = _find_boot_ends(boots)
    spans = [
        Span(
            attempt.started_at.timestamp(),
            _find_end(attempt.started_at, attempt.ended_at, attempt.duration, attempt.boot, ends, live, now),
            attempt.verdict or ("running" if attempt.boot == live else "unknown"),
            f"attempt {attempt.attempt}: {(attempt.verdict or 'no outcome on disk').replace('_', ' ')}",
        )
        for attempt in attempts
        if attempt.started_at
    ]
    if spans:
        return tuple(spans)
    spans = [
        Span(
            call.started_at.timestamp(),
            _find_end(call.started_at, call.ended_at, None, call.boot, ends, live, now),
            "applied" if call.ended_at else ("running" if call.boot == live else "unknown"),
            f"model call {call.call}: {call.model or call.request_model or 'model unknown'}",
        )
        for call in calls
        if call.started_at
    ]
    return tuple(spans) or _measure_whole_step(step, ends, live, now)


def measure_duration(step: Step, attempts: Sequence[Attempt], spans: Sequence[Span]) -> float | None:
    """The duration of a step: its attempts together, over all boots; without attempts, the step itself.

    None where no time was measured.
    """
    if not attempts and step.status != "pending" and step.duration is not None:
        return step.duration
    return sum(span.end - span.start for span in spans) or None


def _find_boot_ends(boots: Sequence[Boot]) -> dict[int, datetime | None]:
    """The end of each boot. If no process recorded it, the start of the next boot."""
    ordered = sorted(boots, key=lambda boot: boot.boot)
    return {
        boot.boot: boot.ended_at or (successor.started_at if successor else None)
        for boot, successor in zip_longest(ordered, ordered[1:])
    }


def _measure_whole_step(
    step: Step, ends: dict[int, datetime | None], live: int | None, now: datetime
) -> tuple[Span, ...]:
    start = step.created_at or step.updated_at
    if start is None:
        return ()
    state = {"committed": "applied", "failed": "no_effect", "abandoned": "abandoned"}.get(step.status, "not_sent")
    if step.status != "pending":
        end = start.timestamp() + step.duration if step.duration is not None else (step.updated_at or start).timestamp()
    elif step.boot is not None and step.boot == live and not step.hold_reason and step.effect != "mutating":
        state, end = "running", now.timestamp()
    else:
        end = start.timestamp()
    return (Span(start.timestamp(), max(start.timestamp(), end), state, step.status),)


def _find_end(
    started: datetime,
    ended: datetime | None,
    duration: float | None,
    boot: int,
    ends: dict[int, datetime | None],
    live: int | None,
    now: datetime,
) -> float:
    if duration is not None:
        return started.timestamp() + duration
    # An attempt that got its verdict after its process had ended (from a person or a later boot) ended with it.
    known = [moment for moment in (ended, now if boot == live else ends.get(boot)) if moment is not None]
    return max(started, min(known, default=started)).timestamp()
