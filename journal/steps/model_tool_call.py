"""The step of a model's call. One that is refused is committed as failed, so that it has an answer on resume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from journal import codec, ids, stored_errors
from journal.effects import Read, Steps, Write
from journal.errors import InvalidArguments
from journal.models import Step
from journal.reply import read_call
from journal.settle.settle import settle
from journal.steps.task_run import Session, stored_outcome
from journal.steps.tool_step import check_divergence, tool_step
from journal.store.sql import steps
from journal.store.transaction import Transaction
from journal.tools import Tool

# A model may answer with any text where a tool's name should be.
_NAME_CHARACTERS = 200


def called_step(session: Session, tool: Tool | None, index: int, call: Any) -> Steps[Any]:
    """Run one call of a Reply; an unknown tool or refused arguments fail the step it would have been."""
    name, given = read_call(call)
    try:
        if isinstance(call, Mapping) and "refused" in call:
            raise InvalidArguments(str(call["refused"]), path=str(call.get("path", "$")))
        if tool is None:
            raise InvalidArguments(f"Tool {name!r}: not among this agent's tools.", path="$")
        if not isinstance(given, dict):
            raise InvalidArguments(f"Tool {name}: its arguments are not an object.", path="$")
        arguments = tool.bind((), given)
        return (yield from tool_step(session, tool, index, arguments, codec.dumps(arguments)))
    except InvalidArguments as error:
        refusal = error
    # Not inside the `except`: the failure's traceback would show the refusal as the model worded it.
    return (yield from _refused_step(session, name, tool, index, given, refusal))


def _refused_step(
    session: Session, name: str, tool: Tool | None, index: int, arguments: Any, error: InvalidArguments
) -> Steps[Any]:
    """Store the refusal as this step's failure and raise it; a resume raises the same from the journal."""
    desk = session.desk
    text = desk.secrets.stored(arguments)[0]
    name = desk.secrets.hide(codec.escaped(name))[:_NAME_CHARACTERS] or "(no name)"
    failure = stored_errors.dump_error(error, hide=desk.secrets.hide)
    new = steps.NewStep(
        task_id=session.task_id,
        step_index=index,
        tool_name=name,
        effect="read_only" if tool is None else tool.effect,
        key=ids.step_key(session.task_id, index, text),
        arguments_json=text,
    )

    stored: Step | None = None
    if index < session.stored:
        stored = yield Read(desk.store, lambda tx: steps.find_step(tx, session.task_id, index))
        if stored is not None and stored.status == "pending" and stored.effect == "mutating":
            stored = yield from settle(desk, session.task_id, index)
        if stored is not None:
            # What became a credential since is hidden in the text to be stored, and not in the stored one.
            shown = replace(stored, arguments_json=desk.secrets.hide_json(stored.arguments_json or "{}"))
            yield from check_divergence(session, shown, new, {}, registered=tool is not None)
            if stored.status != "pending":
                return stored_outcome(session, stored)

    def commit(tx: Transaction) -> None:
        session.begin(tx)
        if stored is None:
            steps.insert_step(tx, new)
        steps.end_step(tx, new.task_id, index, "failed", failure)

    yield Write(desk.store, commit)
    raise stored_errors.load_step_failed(failure, new.label)
