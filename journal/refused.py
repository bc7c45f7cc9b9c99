"""The step of a call that was refused: committed as failed, so that the model's call has an answer on resume."""

from __future__ import annotations

from typing import Any

from journal import codec, failures, keys, steps
from journal.errors import InvalidArguments
from journal.models import Step
from journal.ops import Read, Steps, Write
from journal.protocol import check_divergence
from journal.session import Session, stored_outcome
from journal.settle import settle
from journal.transaction import Transaction

# A model may answer with any text where a tool's name should be.
_NAME_CHARACTERS = 200


def refused_step(
    session: Session, name: str, effect: str, index: int, arguments: Any, error: InvalidArguments
) -> Steps[Any]:
    """Store the refusal as this step's failure and raise it; a resume raises the same from the journal."""
    desk = session.desk
    text = desk.secrets.hide_json(codec.dumps_output(arguments)[0])
    name = desk.secrets.hide(codec.escaped(name))[:_NAME_CHARACTERS] or "(no name)"
    failure = desk.secrets.hide(failures.to_json(error))
    new = steps.NewStep(
        task_id=session.task_id,
        step_index=index,
        tool_name=name,
        effect=effect,
        key=keys.key(session.task_id, index, text),
        arguments_json=text,
    )

    if index < session.stored:
        stored: Step | None = yield Read(desk.store, lambda tx: steps.find(tx, session.task_id, index))
        if stored is not None and stored.status == "pending" and stored.effect == "mutating":
            stored = yield from settle(desk, session.task_id, index)
        if stored is not None:
            yield from check_divergence(session, stored, new, {})
            return stored_outcome(session, stored)

    def commit(tx: Transaction) -> None:
        session.begin(tx)
        steps.insert(tx, new)
        steps.end(tx, new.task_id, index, "failed", failure)

    yield Write(desk.store, commit)
    raise failures.to_error(failure, new.label)
