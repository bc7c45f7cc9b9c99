"""One task's timeline as lines of text."""

from __future__ import annotations

from datetime import datetime

from journal import clock, stored_errors
from journal.cli.terminal import age, clean, short
from journal.hold_reasons import HOLD_REASONS, describe_outcome, describe_wait
from journal.models import Attempt, Boot, Decision, Evidence, Run, Step, TaskRow, describe_answer
from journal.reader import Reader


def lines(reader: Reader, task: TaskRow, steps: list[Step], *, state: str) -> list[str]:
    """The task, then each step with its attempts, the evidence about it and what operators decided."""
    now = clock.wall()
    attempts, evidence = reader.attempts(task.task_id), reader.evidence(task.task_id)
    decisions = reader.decisions(task.task_id)
    out = _head(task, state, now)
    boots = {boot.boot: boot for boot in reader.boots()}
    out += [_run(run, boots.get(run.boot), now) for run in reader.runs(task.task_id)]
    out += [f"  branch {clean(child.task_id)}: {clean(child.status)}" for child in reader.children(task.task_id)]
    for step in steps:
        out.append(_step(step, now))
        out += _reasons(step, now)
        out += [_attempt(one) for one in attempts if one.step_index == step.step_index]
        out += [_evidence(one, now) for one in evidence if one.step_index == step.step_index]
        out += [_decision(one, now) for one in decisions if one.step_index == step.step_index]
    out += [_decision(one, now) for one in decisions if one.step_index is None]
    return out


def _head(task: TaskRow, state: str, now: datetime) -> list[str]:
    handler = f", handler {clean(task.handler)}" if task.handler else ""
    parent = f", branch of {clean(task.parent_id)}" if task.parent_id else ""
    out = [f"{clean(task.task_id)}: {clean(state)}{handler}{parent}, begun {age(task.created_at, now)} ago"]
    why = {
        "waits": waits(task),
        "conflict": task.conflict and f"{task.conflict} ({age(task.conflict_at, now)} ago)",
        "cancelled": task.cancel_reason,
        "failed": failure(task),
    }
    for name, text in why.items():
        if text:
            out.append(f"  {name}: {short(text, 200)}")
    return out


def waits(task: TaskRow) -> str:
    """The reason the task waits; empty if it does not wait."""
    wait = task.wait
    if wait is None:
        return ""
    return describe_wait(wait, of="" if wait.step_task in (None, task.task_id) else f" of {wait.step_task}")


def failure(task: TaskRow) -> str:
    """Type and message of what failed a task."""
    return stored_errors.describe_error(task.error_json)


def _run(run: Run, boot: Boot | None, now: datetime) -> str:
    process = f" (pid {boot.pid}, {clean(boot.ended or 'not known to have ended')})" if boot else ""
    served = f", steps 0 to {run.served_through} from the journal" if run.served_through >= 0 else ""
    ended = f", ended: {clean(run.ended)}" if run.ended else ""
    return f"  run {run.run} in boot {run.boot}{process}, {age(run.started_at, now)} ago{served}{ended}"


def _step(step: Step, now: datetime) -> str:
    took = f", {step.duration:.3f} s" if step.duration is not None else ""
    when = age(step.updated_at or step.created_at, now)
    odd = f" (odd: {', '.join(step.odd)})" if step.odd else ""
    effect = f" {step.effect}" if step.effect else ""
    return f"{step.step_index:>4}  {clean(step.status):<9} {short(step.tool_name)}{effect}, {when} ago{took}{odd}"


def _reasons(step: Step, now: datetime) -> list[str]:
    out: list[str] = []
    if step.hold_reason:
        known = HOLD_REASONS.get(step.hold_reason)
        why = step.hold_detail or (known.sentence if known else "")
        out.append(f"held: {clean(step.hold_reason)}. {short(why, 200)}".rstrip())
        if known:
            out.append(known.advice)
    if step.next_attempt_at is not None:
        out.append(f"next attempt {age(step.next_attempt_at, now)}")
    if step.alarm:
        out.append(f"ALARM: {short(step.alarm, 200)}")
    if not step.replayable:
        out.append(f"never replayable: {step.replayable_reason}")
    return [f"          {line}" for line in out]


def _attempt(attempt: Attempt) -> str:
    verdict = attempt.verdict or "no outcome on disk: unknown"
    said = short(describe_answer(attempt.http_status, attempt.detail), 200)
    return ", ".join(filter(None, (f"          attempt {attempt.attempt} in boot {attempt.boot}: {verdict}", said)))


def _evidence(evidence: Evidence, now: datetime) -> str:
    said = short(describe_answer(evidence.http_status, evidence.detail), 200)
    return ", ".join(
        filter(None, (f"          status asked {age(evidence.asked_at, now)} ago: {evidence.answer}", said))
    )


def _decision(decision: Decision, now: datetime) -> str:
    return (
        f"          {clean(decision.actor)} said {clean(decision.kind)} {age(decision.created_at, now)} ago "
        f"({short(decision.reason, 200)}): {short(describe_outcome(decision), 200)}"
    )
