"""Settling a pending intent: look, decide, do one thing, look again. `reconcile.decide` is the only judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from journal import attempts, boots, clock, codec, decisions, evidence, failures, freeze, reconcile, steps
from journal.actions import Action, Adopt, Fail, Hold, Now, Query, Send, Wait
from journal.attempts import Mark
from journal.dispatch import Intent, ask, dispatch
from journal.errors import OutcomeUnknown, StepHeld, StepkeeperError, StepWaiting
from journal.models import Attempt, Evidence, Step
from journal.ops import Read, Sleep, Steps, Write
from journal.providers.profile import Profile
from journal.secrets import Secrets
from journal.store import Store
from journal.tools import Tool
from journal.transaction import Transaction

# A step whose dispatch ended with its process this often is held, so that one step cannot keep an agent dying.
QUARANTINE_STARTS = 3
# Held for another cause than "we do not know": everything else is an unknown outcome.
_KNOWN_OUTCOME = frozenset({"approval_required", "not_applied", "tool_missing", "missing_reference", "diverged"})

Mode = Literal["task", "recover", "visit"]


class NotHere(StepkeeperError):
    """This process cannot do what the step needs next (a tool or a credential of the agent's): nothing was changed."""


class AskFirst(StepkeeperError):
    """A status query comes next, and a visiting writer makes none while it holds the journal."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What settling works with.

    `mode`: "task" is the handler's own run and may sleep; "recover" runs no tool code but `status=` and keyed
    replays; "visit" is a writer that is not the agent: it leaves to the agent what only the agent can do.
    """

    store: Store
    tools: Mapping[str, Tool]
    secrets: Secrets
    epoch: Callable[[], int]
    stopping: Callable[[], bool] = lambda: False
    mode: Mode = "task"
    max_wait: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything the journal knows about one step, read together."""

    step: Step
    intent: Intent
    attempts: list[Attempt]
    evidence: list[Evidence]
    now: Now


def look(tx: Transaction, task_id: str, step_index: int) -> Snapshot:
    """Read a step with all that bears on it."""
    step = steps.find(tx, task_id, step_index)
    assert step is not None
    step = replace(step, decision=decisions.unused(tx, task_id, step_index))
    stored = steps.profile_json(tx, task_id, step_index)
    newest = boots.newest_time(tx)
    return Snapshot(
        step=step,
        intent=Intent(
            step=step,
            profile=Profile.from_dict(step.provider or "python", codec.loads(stored) if stored else {}),
            request=steps.request(tx, task_id, step_index, step.key_generation),
        ),
        attempts=attempts.of_step(tx, task_id, step_index),
        evidence=evidence.of_step(tx, task_id, step_index),
        now=Now(clock.moment(), clock.parse(newest) if newest else None, tx.boot),
    )


def settle(desk: Desk, task_id: str, step_index: int) -> Steps[Step]:
    """Bring a pending mutating step to an end and return it.

    Raises StepHeld or OutcomeUnknown when a person must decide, StepWaiting when it is due later, NotHere and
    AskFirst (see there). Calls no model.
    """
    deadline = clock.wall() + desk.max_wait
    while True:
        woken = _changed_since(desk, desk.epoch())
        seen: Snapshot = yield Read(desk.store, lambda tx: look(tx, task_id, step_index))
        if seen.step.status != "pending":
            return seen.step
        yield from _act(desk, seen, _judge(seen), deadline, woken)


def _changed_since(desk: Desk, epoch: int) -> Callable[[], bool]:
    return lambda: desk.epoch() != epoch


def _judge(seen: Snapshot) -> Action:
    action = reconcile.decide(seen.step, seen.attempts, seen.evidence, seen.intent.profile, seen.now)
    if not isinstance(action, Send) or seen.step.decision is not None:
        return action
    deaths = sum(attempt.verdict is None and attempt.boot < seen.now.boot for attempt in seen.attempts)
    if deaths < QUARANTINE_STARTS:
        return action
    return Hold("quarantined", f"{deaths} dispatches of this step ended with their process.")


def _act(desk: Desk, seen: Snapshot, action: Action, deadline: datetime, woken: Callable[[], bool]) -> Steps[None]:
    """Do the one thing that was decided."""
    step, store = seen.step, desk.store
    task_id, index = step.task_id, step.step_index
    match action:
        case Send():
            yield from _send(desk, seen)
        case Query():
            yield from query(desk, seen)
        case Wait(until=until):
            yield Write(store, lambda tx: steps.schedule(tx, task_id, index, until))
            if desk.mode != "task" or until > deadline or desk.stopping():
                raise waiting(step, until)
            yield Sleep(until, woken)
        case Adopt():
            yield Write(store, lambda tx: _adopt(tx, step, action, desk.secrets), outcome=True)
        case Fail(attempt=attempt):
            yield Write(store, lambda tx: steps.end(tx, task_id, index, "failed", failure_of(attempt, step)))
        case Hold(reason=reason, why=why):
            yield from hold(desk, step, reason, why)


def query(desk: Desk, seen: Snapshot) -> Steps[None]:
    """Ask the world about the key and append the answer as evidence."""
    step, profile = seen.step, seen.intent.profile
    if desk.mode == "visit":
        if profile.status is not None and profile.status.by_tool:
            raise NotHere(f"Step {step.step_index} of {step.task_id}: only its agent can ask for its status.")
        raise AskFirst(f"Step {step.step_index} of {step.task_id}: a status query comes next.")
    if profile.status is not None and profile.status.by_tool and step.tool_name not in desk.tools:
        yield from hold(desk, step, "tool_missing", f"The tool {step.tool_name} is not among this agent's tools.")
    newest = max((attempt.attempt for attempt in seen.attempts if attempt.verdict != "not_sent"), default=0)
    asked = clock.moment()
    answer = yield from ask(seen.intent, desk.tools.get(step.tool_name), desk.secrets, newest)
    found = Evidence(
        task_id=step.task_id,
        step_index=step.step_index,
        attempt=newest,
        asked_at=asked.wall,
        asked_boottime=asked.boot,
        os_boot_id=asked.os_boot_id,
        answer=answer.answer,
        source="tool" if profile.status is not None and profile.status.by_tool else "status",
        http_status=answer.http_status,
        detail=desk.secrets.hide(answer.detail),
        output_json=desk.secrets.hide_json(codec.dumps_output(answer.output)[0]) if answer.has_output else None,
    )
    yield Write(desk.store, lambda tx: evidence.add(tx, found))


def hold(desk: Desk, step: Step, reason: str, why: str) -> Steps[None]:
    """Write the hold and raise it."""
    yield Write(desk.store, lambda tx: steps.hold(tx, step.task_id, step.step_index, reason, why), sync=True)
    kind = StepHeld if reason in _KNOWN_OUTCOME else OutcomeUnknown
    raise kind(
        f"Step {step.step_index} of {step.task_id} ({step.tool_name}) is held: {reason}. {why}",
        task_id=step.task_id,
        step_index=step.step_index,
        reason=reason,
        hint="Decide it on the dashboard's pending page.",
    )


def _send(desk: Desk, seen: Snapshot) -> Steps[None]:
    step, intent = seen.step, seen.intent
    obstacle = _obstacle(desk, intent)
    if obstacle is not None:
        if desk.mode == "visit":
            raise NotHere(obstacle[1])
        yield from hold(desk, step, *obstacle)
    if desk.mode == "recover" and intent.request is None and not intent.profile.keyed:
        # The tool's code runs where its task runs; recovery only settles what needs no code of the agent's.
        raise NotHere(f"Step {step.step_index} of {step.task_id}: its tool runs again when its task runs.")
    mark: Mark | None = yield Write(desk.store, lambda tx: _mark(tx, step), sync=True)
    if mark is not None:
        yield from dispatch(desk.store, desk.secrets, desk.tools.get(step.tool_name), intent, mark)


def _mark(tx: Transaction, step: Step) -> Mark | None:
    """The dispatching mark, using up the approval that made this send; None when nothing may be sent."""
    current = steps.find(tx, step.task_id, step.step_index)
    if current is None or current.status != "pending":
        return None
    decision = step.decision
    if decision is not None and not decisions.is_usable(tx, decision.message_id):
        # Expired between its application and this send: late is never.
        decisions.expire(tx, decision.message_id)
        return None
    mark = attempts.mark(
        tx,
        step.task_id,
        step.step_index,
        generation=step.key_generation,
        decision_id=None if decision is None else decision.message_id,
    )
    if decision is not None:
        decisions.consume(tx, decision.message_id, mark.attempt)
    return mark


def _obstacle(desk: Desk, intent: Intent) -> tuple[str, str] | None:
    """(hold reason, sentence) of what keeps this process from dispatching."""
    if intent.request is None:
        if intent.step.tool_name in desk.tools:
            return None
        return "tool_missing", f"The tool {intent.step.tool_name} is not among this agent's tools."
    try:
        freeze.require(freeze.references(intent.request), desk.secrets.environ)
    except freeze.MissingReference as error:
        return "missing_reference", str(error)
    return None


def _adopt(tx: Transaction, step: Step, action: Adopt, secrets: Secrets) -> None:
    known = action.output_json is not None
    steps.commit(
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
    status = f"HTTP {attempt.http_status}: " if attempt.http_status is not None else ""
    return failures.make("Rejected", f"{status}{attempt.detail}" or f"{step.tool_name} was refused")


def waiting(step: Step, until: datetime) -> StepWaiting:
    """The error of a step that is due later."""
    return StepWaiting(
        f"Step {step.step_index} of {step.task_id} ({step.tool_name}) is due again at {clock.text(until)}.",
        task_id=step.task_id,
        step_index=step.step_index,
        until=until,
    )
