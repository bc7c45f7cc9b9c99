"""Settling one pending intent: load it, decide, act once, and begin again until it is settled or held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from journal import clock, stored_errors
from journal.effects import Program, Read, Sleep, Write
from journal.errors import StepFailed
from journal.http import frozen_request
from journal.http.secrets import Secrets
from journal.models import Attempt, Step
from journal.reconcile import decide
from journal.reconcile.actions import Action, Adopt, Fail, Hold, Query, Send, Wait
from journal.settle.context import (
    QUARANTINE_STARTS,
    IntentSnapshot,
    NotHere,
    SettleContext,
    hold,
    load_intent,
    tool_lacks,
    waiting,
)
from journal.settle.dispatch import dispatch
from journal.settle.quarantine import take_turn
from journal.settle.status_check import query_status
from journal.store.sql import attempts, decisions, requests, steps, tasks
from journal.store.sql.attempts import Mark
from journal.store.transaction import Transaction

# A clock that was set back by no more than this, as time services do, is waited for.
_SET_BACK = timedelta(seconds=1)
# These holds do not depend on the profile.
_PLAIN_HOLDS = ("clock_suspect", "restored_copy", "key_seen_before", "quarantined", "not_applied")


def settle_step(
    context: SettleContext, task_id: str, step_index: int, *, raised: BaseException | None = None
) -> Program[Step]:
    """Bring a pending mutating step to an end and return it. `raised` is what its tool raised in this process.

    Raises StepHeld or OutcomeUnknown when a person must decide, StepWaiting when it is due later, TaskCancelled where
    it would have been sent, NotHere and AskFirst (see there). Calls no model.
    """
    deadline = clock.wall() + context.max_wait
    while True:
        woken = _changed_since(context, context.epoch())
        seen: IntentSnapshot = yield Read(context.store, lambda tx: load_intent(tx, task_id, step_index))
        if seen.step.status != "pending":
            return seen.step
        newest = seen.now.newest
        if newest is not None and timedelta(0) < newest - seen.now.moment.wall <= _SET_BACK:
            yield from _catch_up(context, seen.step, newest)
            continue
        raised = (yield from _act(context, seen, _judge(seen), deadline, woken, raised)) or raised


def _catch_up(context: SettleContext, step: Step, newest: datetime) -> Program[None]:
    """Wait for a clock that was set back a little; no longer where it is set further back, or the process stops."""
    if context.stopping():
        raise waiting(step, newest)
    yield Sleep(newest, lambda: context.stopping() or clock.wall() < newest - _SET_BACK)


def _changed_since(context: SettleContext, epoch: int) -> Callable[[], bool]:
    return lambda: context.stopping() or context.epoch() != epoch


def _judge(seen: IntentSnapshot) -> Action:
    action = decide.decide(seen.step, seen.attempts, seen.evidence, seen.intent.profile, seen.now)
    depends = action.reason not in _PLAIN_HOLDS if isinstance(action, Hold) else isinstance(action, Send | Query)
    if seen.unreadable and depends:
        return Hold("profile_missing", decide.NO_ROW, seen.unreadable)
    if not isinstance(action, Send) or seen.step.decision is not None:
        return action
    if seen.intent.request is not None:
        # Sending stored bytes runs none of the agent's code: this step was only under way when another one killed.
        return action
    deaths = _deaths(seen)
    if deaths < QUARANTINE_STARTS:
        return action
    why = f"The process died during {deaths} attempts at this step."
    return Hold("quarantined", decide.NO_ROW, why)


def _deaths(seen: IntentSnapshot) -> int:
    """The number of attempts that ended with their process."""
    return sum(attempt.verdict is None and attempt.boot < seen.now.boot for attempt in seen.attempts)


def _act(
    context: SettleContext,
    seen: IntentSnapshot,
    action: Action,
    deadline: datetime,
    woken: Callable[[], bool],
    raised: BaseException | None,
) -> Program[BaseException | None]:
    """Do the one thing that was decided; returns what the tool raised now."""
    step, store = seen.step, context.store
    task_id, index = step.task_id, step.step_index
    match action:
        case Send():
            return (yield from _send(context, seen))
        case Query():
            yield from query_status(context, seen)
        case Wait(until=until):
            yield Write(store, lambda tx: steps.schedule_step(tx, task_id, index, until))
            if context.mode != "task" or until > deadline or context.stopping():
                raise waiting(step, until, _raised_last(seen)) from raised or _stored_raise(seen)
            yield Sleep(until, woken)
        case Adopt():
            yield Write(store, lambda tx: _adopt(tx, step, action, context.secrets), outcome=True)
        case Fail(attempt=attempt):
            yield Write(store, lambda tx: steps.end_step(tx, task_id, index, "failed", failure_of(attempt, step)))
        case Hold(reason=reason, why=why):
            arrived = any(attempt.verdict != "not_sent" for attempt in seen.attempts)
            yield from hold(context, step, reason, why, arrived=arrived, cause=raised or _stored_raise(seen))
    return None


def _raised_last(seen: IntentSnapshot) -> Attempt | None:
    """The newest attempt, where its tool raised."""
    last = seen.attempts[-1] if seen.attempts else None
    return last if last is not None and last.kind == "raised" else None


def _stored_raise(seen: IntentSnapshot) -> StepFailed | None:
    """What the tool raised in an earlier process, as it is stored."""
    last, step = _raised_last(seen), seen.step
    if last is None:
        return None
    return stored_errors.load_step_failed(last.output_json, f"Step {step.step_index} of {step.task_id}, last attempt")


def _send(context: SettleContext, seen: IntentSnapshot) -> Program[BaseException | None]:
    step, intent = seen.step, seen.intent
    obstacle = _obstacle(context, seen)
    if obstacle is not None:
        if context.mode == "visit":
            raise NotHere(obstacle[1])
        yield from hold(context, step, *obstacle)
    if context.mode == "recover" and intent.request is None and not intent.profile.keyed:
        # The tool's code runs where its task runs; recovery only settles what needs no code of the agent's.
        raise NotHere(f"Step {step.step_index} of {step.task_id}: its tool runs again when its task runs.")
    with (yield from take_turn(context, step, 0 if intent.request is not None else _deaths(seen))):
        mark: Mark | None = yield Write(context.store, lambda tx: _mark(tx, seen, context.secrets.environ), sync=True)
        if mark is None:
            return None
        tool = context.tools.get(step.tool_name)
        return (yield from dispatch(context.store, context.secrets, tool, intent, mark)).raised


def _mark(tx: Transaction, seen: IntentSnapshot, environ: Mapping[str, str]) -> Mark | None:
    """The dispatching mark, using up the approval that made this send; None when nothing may be sent."""
    step = seen.step
    tasks.require_uncancelled(tx, step.task_id)
    fresh = load_intent(tx, step.task_id, step.step_index)
    decision = fresh.step.decision
    if decision != step.decision:
        # A person decided, or a decision expired, since the intent was loaded. Load it again before anything is sent.
        decisions.expire_approvals(tx, step.task_id, step.step_index)
        return None
    if not isinstance(_judge(fresh), Send):
        # Since it was looked at another thread has sent or ended it, or its time is over.
        return None
    mark = attempts.mark_dispatch(
        tx,
        step.task_id,
        step.step_index,
        generation=step.key_generation,
        decision_id=None if decision is None else decision.message_id,
    )
    if fresh.made is not None:
        # A later replay must keep to the address of this sending, not to the address at which the request was made.
        requests.note_sent_marks(
            tx, mark.task_id, mark.step_index, mark.attempt, frozen_request.new_marks(fresh.made, environ)
        )
    if decision is not None:
        decisions.consume_approval(tx, decision.message_id, mark.attempt)
    return mark


def _obstacle(context: SettleContext, seen: IntentSnapshot) -> tuple[str, str] | None:
    """(hold reason, sentence) of what keeps this process from dispatching."""
    intent = seen.intent
    if intent.request is None:
        lacks = tool_lacks(context, intent)
        return None if lacks is None else ("tool_missing", lacks)
    try:
        frozen_request.resolve_request(intent.request, context.secrets.environ)
        if intent.step.decision is None:
            frozen_request.require_unchanged(intent.request, context.secrets.environ)
    except frozen_request.MissingReference as error:
        return error.hold_reason, str(error)
    return None


def _adopt(tx: Transaction, step: Step, action: Adopt, secrets: Secrets) -> None:
    known = action.output_json is not None
    steps.commit_step(
        tx,
        step.task_id,
        step.step_index,
        secrets.hide_json(action.output_json or "null"),
        complete=known,
        alarm=action.alarm or None,
    )


def failure_of(attempt: Attempt, step: Step) -> str:
    """The failure to store for a step whose attempt surely had no effect."""
    if attempt.output_json is not None:
        return attempt.output_json
    said = attempt.detail or ("" if attempt.http_status else f"{step.tool_name} was refused")
    return stored_errors.dump_rejection(attempt.http_status, said)
