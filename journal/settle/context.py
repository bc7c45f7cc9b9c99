"""The values that settling an intent works with, the snapshot of the intent, and the hold of a step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from journal import clock, codec
from journal.effects import Program, Write
from journal.errors import OutcomeUnknown, StepHeld, StepkeeperError, StepWaiting
from journal.http import frozen_request
from journal.http.secrets import Secrets
from journal.models import Attempt, Evidence, FrozenRequest, Step
from journal.providers.parse import read_stored_profile
from journal.reconcile.actions import Now
from journal.settle.dispatch import Intent
from journal.store.sql import attempts, boots, decisions, evidence, requests, steps
from journal.store.transaction import Transaction
from journal.store.writer import Store
from journal.tools import Tool

# A step whose dispatch ended with its process this often is held, so that one step cannot keep an agent dying.
QUARANTINE_STARTS = 3
# Held for another cause than "we do not know": everything else is an unknown outcome.
_KNOWN_OUTCOME = frozenset({"not_applied", "tool_missing", "missing_reference", "diverged", "restored_copy"})

Mode = Literal["task", "recover", "visit"]


class NotHere(StepkeeperError):
    """Only the agent's process has the tool or the credential that the step needs next. Nothing was changed."""


class AskFirst(StepkeeperError):
    """The next action is a status query. A visitor asks only after it has released the journal."""


@dataclass(frozen=True, slots=True)
class SettleContext:
    """What settling works with.

    `mode` "task" is a run of the handler and may sleep. "recover" runs no tool code but `status=` and keyed replays.
    "visit" is a writer that is not the agent: it leaves the work that needs the agent to the agent.
    """

    store: Store
    tools: Mapping[str, Tool]
    secrets: Secrets
    epoch: Callable[[], int]
    stopping: Callable[[], bool] = lambda: False
    mode: Mode = "task"
    max_wait: timedelta = timedelta(seconds=60)
    # Held while a step runs that ended twice with its process (see settle.quarantine).
    suspect: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class IntentSnapshot:
    """Everything the journal knows about one step, read together.

    `made` is its request as it was made; the intent's is marked with what its newest attempt was sent with.
    `unreadable` says why the intent's profile promises nothing: this version refuses the stored one.
    """

    step: Step
    intent: Intent
    attempts: list[Attempt]
    evidence: list[Evidence]
    now: Now
    made: FrozenRequest | None
    unreadable: str = ""


def load_intent(tx: Transaction, task_id: str, step_index: int) -> IntentSnapshot:
    """Read a step with its attempts, evidence, request, profile and unused approval."""
    step = steps.find_step(tx, task_id, step_index)
    assert step is not None
    step = replace(step, decision=decisions.find_unused_approval(tx, task_id, step_index))
    profile, unreadable = read_stored_profile(step.provider, steps.find_profile_json(tx, task_id, step_index))
    made = requests.find_request(tx, task_id, step_index, step.key_generation)
    sent = attempts.list_attempts(tx, task_id, step_index)
    doubt = boots.find_doubt(tx)
    return IntentSnapshot(
        step=step,
        intent=Intent(
            step=step,
            profile=profile,
            request=None if made is None else frozen_request.as_sent(made, _marks(tx, sent)),
        ),
        attempts=sent,
        evidence=evidence.list_evidence(tx, task_id, step_index),
        now=Now(clock.moment(), clock.parse(tx.newest) if tx.newest else None, tx.boot, doubt and doubt[0]),
        made=made,
        unreadable=unreadable,
    )


def _marks(tx: Transaction, sent: list[Attempt]) -> dict[str, str] | None:
    """The new marks of the newest attempt that may have arrived; None where none may have."""
    last = next((attempt for attempt in reversed(sent) if attempt.verdict != "not_sent"), None)
    return None if last is None else requests.find_sent_marks(tx, last.task_id, last.step_index, last.attempt)


def tool_lacks(context: SettleContext, intent: Intent, *, asks: bool = False) -> str | None:
    """Why this process cannot run, or with `asks` ask, what a Python step was begun with; None where it can.

    A name alone is no proof: running a tool that became another kind would record an effect that did not happen, and
    what was begun under a key is repeated under that key alone.
    """
    step, name = intent.step, intent.step.tool_name
    tool = context.tools.get(name)
    if tool is None and context.mode == "visit":
        return f"The tool {name} is code of its agent, and the agent is not running here."
    if tool is None:
        return f"The tool {name} is not among this agent's tools."
    if tool.transport != "python" or tool.effect != "mutating":
        return f"The tool {name} is another kind of tool now than when this step was begun."
    if asks:
        return f"The tool {name} no longer has status=." if tool.status is None else None
    if intent.profile.keyed and tool.keyed is None:
        return f"The tool {name} no longer has keyed=. The step began under a key, so it is not called without one."
    if intent.profile.keyed and not tool.takes_call:
        return f"The tool {name} takes no `call`, so it cannot pass on the step's key. It is not called."
    misfit = _misfit(tool, codec.loads(step.arguments_json or "{}"))
    return f"The tool {name} no longer takes the stored arguments: {misfit}; it was not called." if misfit else None


def _misfit(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Why stored arguments no longer bind to the tool's parameters; empty where they do."""
    named = [
        # Stored by name, they are given by place where they must be.
        one.replace(kind=one.POSITIONAL_OR_KEYWORD) if one.kind is one.POSITIONAL_ONLY else one
        for one in tool.signature.parameters.values()
    ]
    try:
        tool.signature.replace(parameters=named).bind(**arguments)
    except TypeError as error:
        return str(error)
    return ""


def hold(
    context: SettleContext,
    step: Step,
    reason: str,
    why: str,
    *,
    arrived: bool = True,
    cause: BaseException | None = None,
) -> Program[None]:
    """Hold the step, expire its overdue approvals, and raise StepHeld or OutcomeUnknown.

    `arrived`: whether an attempt may have arrived. If none may have, no outcome is unknown. `cause`: what it raised.
    """

    def put_aside(tx: Transaction) -> None:
        decisions.expire_approvals(tx, step.task_id, step.step_index)
        steps.hold_step(tx, step.task_id, step.step_index, reason, why)

    yield Write(context.store, put_aside, sync=True)
    kind = StepHeld if reason in _KNOWN_OUTCOME or not arrived else OutcomeUnknown
    raise kind(
        f"Step {step.step_index} of {step.task_id} ({step.tool_name}) is held: {reason}. {why}",
        task_id=step.task_id,
        step_index=step.step_index,
        reason=reason,
        hint="Decide it on the dashboard's pending page, or with python -m journal decide.",
    ) from cause


def waiting(step: Step, until: datetime, raised: Attempt | None = None) -> StepWaiting:
    """The error of a step that is due later. `raised`: its newest attempt, where its tool raised."""
    why = f" The tool raised {raised.detail}." if raised is not None else ""
    return StepWaiting(
        f"Step {step.step_index} of {step.task_id} ({step.tool_name}) is due again at {clock.text(until)}.{why}",
        task_id=step.task_id,
        step_index=step.step_index,
        until=until,
    )
