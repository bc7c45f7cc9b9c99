"""What happens at one step, written once: generators of `ops` that either driver runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from journal import codec, ids
from journal.effects import Read, Steps, Write
from journal.errors import Diverged
from journal.http import frozen_request
from journal.models import Step
from journal.providers.parse import python_profile
from journal.settle.context import Desk
from journal.settle.dispatch import Intent, dispatch
from journal.settle.settle import settle
from journal.steps.divergence import difference
from journal.steps.read_step import again, read
from journal.steps.task_run import Session, settled_outcome, stored_outcome
from journal.store.sql import attempts, steps
from journal.store.transaction import Transaction
from journal.tools import Tool


def tool_step(session: Session, tool: Tool, index: int, arguments: dict[str, Any], text: str) -> Steps[Any]:
    """One `run`: serve the step from the journal, settle what is pending, or make it happen for the first time.

    `text` is the canonical text of `arguments`.
    """
    # The tool at hand may be none of the journal's own: a script need not register what it runs.
    desk = session.desk if tool.name in session.desk.tools else replace(session.desk, tools=_with(session.desk, tool))
    stored: Step | None = None
    was_pending = False
    if index < session.stored:
        stored = yield Read(desk.store, lambda tx: steps.find_step(tx, session.task_id, index))
        was_pending = stored is not None and stored.status == "pending"
        if stored is not None and was_pending and stored.effect == "mutating":
            # From its stored bytes first, whatever the code now says.
            stored = yield from settle(desk, session.task_id, index)
    new = _described(session, tool, index, text)
    if stored is not None:
        if (yield from check_divergence(session, stored, new, tool.defaults())):
            arguments = codec.loads(stored.arguments_json or "{}")
        if stored.status != "pending":
            return settled_outcome(session, stored) if was_pending else stored_outcome(session, stored)
        new = _prepared(session, tool, new, arguments)
        return (yield from again(session, stored, read(session, tool, new, arguments)))
    new = _prepared(session, tool, new, arguments)
    if tool.effect == "mutating":
        return (yield from _first_dispatch(session, desk, tool, new))
    yield Write(desk.store, lambda tx: _insert(session, tx, new))
    return (yield from read(session, tool, new, arguments))


def _with(desk: Desk, tool: Tool) -> Mapping[str, Tool]:
    return {**desk.tools, tool.name: tool}


def check_divergence(
    session: Session, step: Step, new: steps.NewStep, defaults: Mapping[str, Any], *, registered: bool = True
) -> Steps[bool]:
    """Raise Diverged, naming the first difference, unless the code asks for the step the journal holds.

    True where the arguments differ and the tool takes the stored ones (`drift="stored"`).
    """
    found = difference(step, new, defaults, registered=registered)
    if found is None:
        if step.hold_reason == "diverged":
            yield Write(session.desk.store, lambda tx: steps.clear_divergence(tx, step.task_id, step.step_index))
        return False
    if found.arguments_only and new.drift == "stored":
        if step.drift_json != found.json:
            yield Write(session.desk.store, lambda tx: steps.note_drift(tx, step.task_id, step.step_index, found.json))
        return True
    yield Write(session.desk.store, lambda tx: steps.mark_diverged(tx, step.task_id, step.step_index, found.place))
    raise Diverged(
        f"Step {step.step_index} of {step.task_id}: the code and the journal disagree: {found.sentence}",
        hint="Nothing was sent. Restore the code this task began with, or submit a new task.",
    )


def _described(session: Session, tool: Tool, index: int, text: str) -> steps.NewStep:
    return steps.NewStep(
        task_id=session.task_id,
        step_index=index,
        tool_name=tool.name,
        effect=tool.effect,
        key=ids.step_key(session.task_id, index, text),
        arguments_json=text,
        transport=tool.transport,
        drift=tool.drift,
    )


def _prepared(session: Session, tool: Tool, new: steps.NewStep, arguments: dict[str, Any]) -> steps.NewStep:
    """The step with its profile and its frozen request; every refusal comes before anything is written."""
    secrets = session.desk.secrets
    request = None
    profile = None
    if tool.transport == "http":
        profile = session.profiles.get(tool.provider or "") or session.profiles["generic_none"]
        request = frozen_request.freeze_request(
            tool.request(arguments), profile=profile, key=new.key, environ=secrets.environ
        )
        names = frozen_request.list_references(request)
        frozen_request.resolve_request(request, secrets.environ)
        secrets.learn(names)
    elif tool.effect == "mutating":
        profile = python_profile(tool.keyed, tool.status is not None, tool.horizon)
    secrets.refuse(new.arguments_json, f"Step {new.step_index} ({tool.name})")
    if profile is None:
        return new
    return replace(new, profile=profile, request=request)


def _insert(session: Session, tx: Transaction, new: steps.NewStep) -> None:
    session.begin(tx)
    steps.insert_step(tx, new)


def _first_dispatch(session: Session, desk: Desk, tool: Tool, new: steps.NewStep) -> Steps[Any]:
    def begin(tx: Transaction) -> tuple[attempts.Mark | None, Step]:
        _insert(session, tx, new)
        # Law 8: under a clock that went back nothing is sent, not even for the first time.
        right = tx.now >= tx.newest
        mark = attempts.mark_dispatch(tx, new.task_id, new.step_index, generation=0) if right else None
        step = steps.find_step(tx, new.task_id, new.step_index)
        assert step is not None
        return mark, step

    # Payload, key and mark are on the platter when this returns; if they are not, the tool is not called.
    mark, step = yield Write(desk.store, begin, sync=True)
    assert new.profile is not None
    intent = Intent(step=step, profile=new.profile, request=new.request)
    if mark is not None:
        text = yield from dispatch(desk.store, desk.secrets, tool, intent, mark)
        if text is not None:
            return codec.loads(text)
    settled = yield from settle(desk, new.task_id, new.step_index)
    return settled_outcome(session, settled)
