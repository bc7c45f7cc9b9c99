"""Messages carried out by the writer: each once, with its checks and its effect in one transaction."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from journal import clock, codec, stored_errors
from journal.errors import InvalidArguments, TaskConflict, UsageError
from journal.hold_reasons import describe_outcome
from journal.http.secrets import Secrets
from journal.ids import check_task_id
from journal.inbox.mailbox import Message
from journal.models import Step
from journal.store.sql import attempts, boots, decisions, evidence, steps, tasks
from journal.store.transaction import Transaction

_SAID = ("actor", "reason", "reference", "detail", "output")
_NOTHING_TO_CANCEL = "the task had ended, or never was"
_TIMES = ("created_at", "expires_at")
_DECIDED_STEPS = ("replay", "mark_committed", "mark_not_applied", "abandon")
# Holds that no answer of a provider lifts.
_HELD_BY_MORE_THAN_DOUBT = ("quarantined", "diverged", "restored_copy")
# The asker read the same machine's clock a moment ago.
_AHEAD = timedelta(seconds=5)
# The errors of a malformed body. The last two come from a value of a type that SQLite cannot bind.
_MISSTATED = (KeyError, TypeError, ValueError, OverflowError, sqlite3.ProgrammingError, sqlite3.InterfaceError)


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of a message: a sentence, and the step to look at again, if any."""

    sentence: str
    task_id: str | None = None
    step_index: int | None = None
    ask: bool = False
    refused: bool = False


class Malformed(ValueError):
    """A message lacks what its kind needs."""


def apply_message(tx: Transaction, message: Message, *, agent: str, secrets: Secrets) -> Applied:
    """Apply one message. Applying it again changes nothing. Raises Malformed if its body does not fit its kind."""
    body = message.body
    if body is None:
        raise Malformed(message.problem)
    try:
        if message.kind == "submit":
            name = secrets.name_in(json.dumps([body.get(part) for part in ("task_id", "handler", "input")]))
            if name is not None:
                # Its sender could not know. The file is not set aside either, because it holds a credential.
                return Applied(f"submit: refused: the task holds the value of {name}", refused=True)
        return _KINDS[message.kind](tx, _hidden(body, secrets), agent)
    except (InvalidArguments, RecursionError, *_MISSTATED) as error:
        raise Malformed(f"a {message.kind} message lacks or misstates {error}") from error


def _hidden(body: dict[str, Any], secrets: Secrets) -> dict[str, Any]:
    """The message without credentials in its words and outputs. The fields that bind it to a step stay as they are."""
    said = {name: secrets.hide_value(body[name]) for name in _SAID if name in body}
    if isinstance(body.get("output_json"), str):
        said["output_json"] = secrets.hide_json(body["output_json"])
    return {**body, **said}


def _submit(tx: Transaction, body: dict[str, Any], agent: str) -> Applied:
    task_id, handler = _text(body, "task_id"), _text(body, "handler")
    try:
        check_task_id(task_id)
        input_json = codec.dumps(dict(body["input"]), what="input")
        tasks.submit_task(tx, task_id, handler, input_json, agent)
    except TaskConflict as error:
        tasks.note_conflict(tx, task_id, error.message)
        return Applied(f"submit {task_id}: conflict: {error.message}")
    except UsageError as error:
        raise Malformed(str(error)) from error
    return Applied(f"submit {task_id}: queued", task_id)


def _cancel(tx: Transaction, body: dict[str, Any], agent: str) -> Applied:
    task_id = _text(body, "task_id")
    if tasks.cancel_task(tx, task_id, f"{body.get('actor', '')}: {body.get('reason', '')}"):
        return Applied(f"cancel {task_id}: cancelled")
    return Applied(f"cancel {task_id}: refused: {_NOTHING_TO_CANCEL}", refused=True)


def _status(tx: Transaction, body: dict[str, Any], agent: str) -> Applied:
    task_id, index = _text(body, "task_id"), _index(body)
    step = steps.find_step(tx, task_id, index)
    if step is None or step.status != "pending" or attempts.is_in_flight(tx, task_id, index):
        return Applied(f"status of step {index} of {task_id}: nothing to ask")
    # A page bound this question to the facts it showed; other questions are about the step as it is.
    outdated = _outdated(tx, step, body) if "expires_at" in body else None
    if outdated is not None:
        return Applied(f"status of step {index} of {task_id}: nothing to ask: {outdated.why}", refused=True)
    return Applied(f"status of step {index} of {task_id}: asking", task_id, index, ask=True)


def _evidence(tx: Transaction, body: dict[str, Any], agent: str) -> Applied:
    task_id, index = _text(body, "task_id"), _index(body)
    found = evidence.read_message(body, index)
    answered = body.get("answered_at")
    if found.asked_at is None or found.asked_at > clock.parse(tx.now) + _AHEAD:
        raise Malformed(f"asked_at {body['asked_at']!r}, which is not in the past")
    step = steps.find_step(tx, task_id, index)
    if step is None:
        return Applied(f"evidence on step {index} of {task_id}: no such step")
    answered_at = None if answered is None else clock.parse(answered)
    evidence.append_evidence(tx, found, message_id=body["message_id"], answered_at=answered_at)
    if step.status != "pending":
        return Applied(f"evidence on step {index} of {task_id}: kept; the step was settled before")
    if step.hold_reason not in _HELD_BY_MORE_THAN_DOUBT:
        steps.release_step(tx, task_id, index)
    tasks.requeue_task(tx, task_id)
    return Applied(f"evidence on step {index} of {task_id}: {found.answer}", task_id, index)


def _decision(tx: Transaction, body: dict[str, Any], agent: str) -> Applied:
    kind = _text(body, "decision")
    task_id = "" if kind == "accept_journal" else _text(body, "task_id")
    seen = decisions.find_decision(tx, body["message_id"])
    if seen is not None:
        return Applied(f"{kind} of {task_id}: was applied before: {describe_outcome(seen)}")
    # SQL compares stored times as texts, so they are stored in one form.
    times = {name: clock.text(clock.parse(body[name])) for name in _TIMES if body.get(name) is not None}
    body = {**body, **times}
    if kind == "cancel_task":
        body = {**body, "step_index": None}
        late = _over(tx, body) if body.get("expires_at") is not None else None
        if late is not None:
            decisions.insert_decision(tx, body, late.outcome, late.why)
            return Applied(f"cancel {task_id}: {late.outcome}: {late.why}", refused=True)
        cancelled = _cancel(tx, body, agent)
        if cancelled.refused:
            decisions.insert_decision(tx, body, "refused", _NOTHING_TO_CANCEL)
        else:
            decisions.insert_decision(tx, body, "applied")
        return cancelled
    if kind == "accept_journal":
        return _accept_journal(tx, body)
    if kind == "retry_task":
        return _retry(tx, {**body, "step_index": None, "output": None}, task_id)
    index = _index(body)
    step = steps.find_step(tx, task_id, index)
    decisions.expire_approvals(tx, task_id, index)
    refusal = _refusal(tx, step, body, kind)
    output = body.get("output")
    if refusal is None and kind == "mark_committed":
        try:
            output = codec.dumps(output, what="output")
        except InvalidArguments as error:
            refusal = _Refusal(f"the output cannot be stored: {error.message}")
    if refusal is not None:
        decisions.insert_decision(tx, {**body, "output": None}, refusal.outcome, refusal.why)
        return Applied(f"{kind} of step {index} of {task_id}: {refusal.outcome}: {refusal.why}", refused=True)
    assert step is not None
    decisions.supersede_approval(tx, task_id, index, f"{kind} by {body.get('actor', '')}")
    decisions.insert_decision(tx, body, "applied")
    _carry_out(tx, step, kind, body, output)
    tasks.requeue_task(tx, task_id)
    return Applied(f"{kind} of step {index} of {task_id}: applied", task_id, index)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a message is not applied."""

    why: str
    outcome: Literal["refused", "expired"] = "refused"


def _retry(tx: Transaction, body: dict[str, Any], task_id: str) -> Applied:
    """Run a failed task again. The step that failed it is pending anew, under its key; the others stay as they are."""
    refusal = _over(tx, body)
    task = tasks.find_task(tx, task_id)
    if task is None or task.status != "failed":
        refusal = _Refusal("the task has not failed, or never was")
    elif task.parent_id is not None:
        refusal = _Refusal("it is a branch: retry the task it is a branch of")
    if refusal is not None:
        decisions.insert_decision(tx, body, refusal.outcome, refusal.why)
        return Applied(f"retry {task_id}: {refusal.outcome}: {refusal.why}", refused=True)
    decisions.insert_decision(tx, body, "applied")
    for member in tasks.requeue_failed(tx, task_id):
        index = steps.reopen_last(tx, member)
        if index is not None:
            # Its attempts surely had no effect; sending it once more is this person's approval.
            approval = {"message_id": f"{body['message_id']}/{member}/{index}", "task_id": member, "step_index": index}
            bound = {"decision": "replay", "expires_at": None}
            decisions.insert_decision(tx, {**body, **approval, **bound}, "applied")
    return Applied(f"retry {task_id}: applied", task_id)


def _accept_journal(tx: Transaction, body: dict[str, Any]) -> Applied:
    """Lift the doubt about a restored or copied file, and decide anew every step that only the doubt held."""
    doubt = boots.find_doubt(tx)
    refusal = _over(tx, body)
    if doubt is None:
        refusal = _Refusal("nothing about this journal is in doubt")
    elif (body.get("uuid"), body.get("boot")) != (boots.read_meta(tx, "uuid"), doubt[1]):
        refusal = _Refusal("the journal is not in the state that was shown")
    body = {**body, "task_id": "", "step_index": None, "output": None}
    if refusal is not None:
        decisions.insert_decision(tx, body, refusal.outcome, refusal.why)
        return Applied(f"accept_journal: {refusal.outcome}: {refusal.why}", refused=True)
    boots.lift_doubt(tx)
    decisions.insert_decision(tx, body, "applied")
    for task_id, index in steps.list_held(tx, "restored_copy"):
        steps.release_step(tx, task_id, index)
        tasks.requeue_task(tx, task_id)
    return Applied("accept_journal: applied")


def _over(tx: Transaction, body: dict[str, Any]) -> _Refusal | None:
    """Why a message's time is over; None while it is good."""
    expires = body.get("expires_at")
    if expires is None:
        return _Refusal("it does not say until when it counts")
    if clock.parse(expires) <= clock.parse(tx.now):
        return _Refusal("its time was over before the journal's writer took it in", "expired")
    return None


def _refusal(tx: Transaction, step: Step | None, body: dict[str, Any], kind: str) -> _Refusal | None:
    """Why the decision may not be applied: it is bound to the bytes, the key and the dispatches that were shown."""
    if kind not in _DECIDED_STEPS:
        return _Refusal(f"{kind} is not a decision this version applies")
    if step is None:
        return _Refusal("there is no such step")
    if step.status != "pending":
        return _Refusal(f"the step is {step.status} already")
    outdated = _outdated(tx, step, body)
    if outdated is not None:
        return outdated
    if attempts.is_in_flight(tx, step.task_id, step.step_index):
        return _Refusal("an attempt is in flight")
    if kind == "mark_committed" and step.effect == "model":
        return _Refusal("a model's answer is not made by hand; replay or abandon the step")
    if kind == "mark_not_applied" and step.effect != "mutating":
        return _Refusal(f"a {step.effect} step has no effect to deny; replay or abandon it")
    if kind in ("replay", "mark_not_applied") and step.hold_reason == "key_seen_before":
        return _Refusal(
            "the provider knew the key before anything was sent: mark it committed if it is ours, or abandon it"
        )
    if kind == "replay":
        return _replay_refusal(tx, step)
    return None


def _outdated(tx: Transaction, step: Step, body: dict[str, Any]) -> _Refusal | None:
    """Why a message does not fit the step as it is now, or came too late."""
    if body.get("key") != step.idempotency_key:
        return _Refusal("the key is not the one that was shown")
    if body.get("payload_sha256") != step.payload_sha256:
        return _Refusal("the payload is not the one that was shown")
    if body.get("dispatches") != attempts.count_dispatches(tx, step.task_id, step.step_index):
        return _Refusal("it was dispatched again meanwhile")
    return _over(tx, body)


def _replay_refusal(tx: Transaction, step: Step) -> _Refusal | None:
    task = tasks.find_task(tx, step.task_id)
    if task is not None and task.status in ("cancelled", "completed", "failed"):
        return _Refusal(f"the task is {task.status}: nothing of it is sent any more")
    if decisions.find_unused_approval(tx, step.task_id, step.step_index) is not None:
        return _Refusal("another approval waits to be used")
    return None


def _carry_out(tx: Transaction, step: Step, kind: str, body: dict[str, Any], output: Any) -> None:
    task_id, index = step.task_id, step.step_index
    by = f"{body.get('actor', '')}: {body.get('reason', '')}"
    if kind == "replay":
        steps.release_step(tx, task_id, index)
        steps.reset_starts(tx, task_id, index)
        if step.effect != "mutating":
            # A quarantined read or model step starts afresh. No attempt will use this approval up.
            decisions.consume_approval(tx, body["message_id"], 0)
    elif kind == "mark_committed":
        steps.commit_step(tx, task_id, index, output, reference=body.get("reference"))
    elif kind == "mark_not_applied":
        attempts.settle_unknown_as_no_effect(tx, task_id, index, f"an operator said so: {by}")
        steps.hold_step(tx, task_id, index, "not_applied", "An operator said that nothing happened; a replay sends it.")
    else:
        steps.end_step(
            tx, task_id, index, "abandoned", stored_errors.dump_failure("Abandoned", str(body.get("reason", "")))
        )


_KINDS = {
    "submit": _submit,
    "decision": _decision,
    "status": _status,
    "evidence": _evidence,
    "cancel": _cancel,
}


def _text(body: dict[str, Any], name: str) -> str:
    value = body[name]
    if not isinstance(value, str) or not value:
        raise Malformed(name)
    return value


def _index(body: dict[str, Any]) -> int:
    value = body["step_index"]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise Malformed("step_index")
    return value
