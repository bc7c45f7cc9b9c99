"""A step's state on a page: one shape and one phrase. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard.ui.format import format_duration, to_local_time
from journal.hold_reasons import HOLD_REASONS, describe_wait
from journal.models import Attempt, Decision, Evidence, Step, WaitReason


@dataclass(frozen=True, slots=True)
class Signal:
    """`state` chooses shape and colour, `word` stands beside it."""

    state: str
    word: str


def describe_step(step: Step, attempts: Sequence[Attempt], *, live: int | None, served: int, now: datetime) -> Signal:
    """The signal of one step. `live` is the boot that runs now, `served` how many later runs reused the step."""
    if step.status == "committed":
        if served:
            if step.effect != "model":
                return Signal("reused", "done before the restart, not repeated")
            times = f" ×{served}" if served > 1 else ""
            return Signal("reused", f"reused{times} · paid {_format_clock(step.updated_at)}")
        return Signal("committed", "committed")
    if step.status in ("failed", "abandoned"):
        return Signal(step.status, step.status)
    if step.status != "pending":
        return Signal("not_sent", str(step.status)[:40])
    return _describe_pending_step(step, attempts, live=live, now=now)


def _describe_pending_step(step: Step, attempts: Sequence[Attempt], *, live: int | None, now: datetime) -> Signal:
    last = attempts[-1] if attempts else None
    if last and last.verdict is None and last.boot == live:
        return Signal("running", f"running {format_duration(_count_seconds(last.started_at, now))}")
    if step.hold_reason:
        hold = HOLD_REASONS.get(step.hold_reason)
        return Signal("held", f"held: {lower_first(hold.label) if hold else step.hold_reason.replace('_', ' ')}")
    if step.next_attempt_at is not None and step.next_attempt_at > now:
        return Signal("waiting", f"next attempt in {format_duration((step.next_attempt_at - now).total_seconds())}")
    unsure = next((attempt for attempt in attempts if attempt.verdict in (None, "unknown")), None)
    if unsure:
        return Signal("unknown", f"outcome unknown since {_format_clock(unsure.started_at)}")
    if step.boot is not None and step.boot == live and (not attempts or attempts[-1].verdict is None):
        return Signal("running", f"running {format_duration(_count_seconds(step.created_at, now))}")
    if step.effect is None and not attempts:
        return Signal("unknown", "pending; outcome unknown")
    if step.effect == "mutating" or attempts:
        return Signal("not_sent", "not sent")
    return Signal("waiting", "interrupted")


def list_doubtful_attempts(
    attempts: Sequence[Attempt], decisions: Sequence[Decision], evidence: Sequence[Evidence]
) -> tuple[int, ...]:
    """The attempts that may have arrived besides the one a person approved after them.

    An attempt is beyond doubt once the provider was asked after it and said that there is no effect.
    """
    approved = [decision.consumed_attempt for decision in decisions if decision.kind == "replay"]
    last = max((attempt for attempt in approved if attempt), default=0)
    absent = max((each.attempt for each in evidence if each.answer == "absent" and not each.in_flight), default=0)
    unknown = [attempt.attempt for attempt in attempts if attempt.verdict in (None, "unknown")]
    return tuple(number for number in unknown if absent < number < last)


def describe_doubt(attempts: Sequence[int]) -> str:
    """`Attempt 1 may also have arrived.`; empty without such an attempt."""
    if not attempts:
        return ""
    named = " and ".join(filter(None, (", ".join(map(str, attempts[:-1])), str(attempts[-1]))))
    return f"{'Attempt' if len(attempts) == 1 else 'Attempts'} {named} may also have arrived."


def describe_attempt(attempt: Attempt, *, live: int | None, now: datetime) -> Signal:
    """The signal of one attempt: its verdict, or what a mark without outcome means (law 1)."""
    if attempt.verdict is None:
        if attempt.boot == live:
            return Signal("running", f"in flight {format_duration(_count_seconds(attempt.started_at, now))}")
        return Signal("unknown", "sent, no answer recorded")
    return Signal(attempt.verdict, attempt.verdict.replace("_", " "))


def _count_seconds(moment: datetime | None, now: datetime) -> float:
    return max(0.0, (now - moment).total_seconds()) if moment else 0.0


def _format_clock(moment: datetime | None) -> str:
    return to_local_time(moment).strftime("%H:%M:%S") if moment else "at an unknown time"


def describe_waiting_task(wait: WaitReason | None, task_id: str) -> Signal:
    """The signal of a task that waits: held where a person must act. A branch is not named: ids are long."""
    if wait is None:
        return Signal("waiting", "waiting")
    words = describe_task_wait(wait, task_id)
    return Signal("held", words) if wait.kind in ("held", "diverged") else Signal("waiting", f"waiting: {words}")


def describe_task_wait(wait: WaitReason, task_id: str) -> str:
    """What a task waits for, in words."""
    return describe_wait(wait, of="" if wait.step_task in (None, task_id) else " of a branch")


def lower_first(label: str) -> str:
    """A label inside a sentence."""
    return label[:1].lower() + label[1:]
