"""The facts that a decision's page showed, signed into its form and checked against the journal when it is sent."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta

from django.conf import settings
from django.core import signing

from agents.models.job import QUERY_STATUS
from journal import clock

_SALT = "stepkeeper.decision"
EXPIRED = "The page is older than a decision may be."
EXPIRED_QUESTION = "The page is older than a question may be."


class BindingError(ValueError):
    """The form's binding is not one this dashboard made for this person and step."""


@dataclass(frozen=True, slots=True)
class Binding:
    """One confirmation page: what it showed, to whom, and when. `nonce` makes its decision single-use."""

    journal_id: int
    task_id: str
    step_index: int
    kind: str
    key: str
    payload_sha256: str
    dispatches: int
    user_id: int
    made_at: str
    nonce: str

    @property
    def expires_at(self) -> datetime:
        """The end of the decision: the setting's time after the page was made."""
        return clock.parse(self.made_at) + timedelta(seconds=load_lifetime())


def load_lifetime() -> float:
    """The lifetime of a decision, in seconds."""
    return float(settings.STEPKEEPER_DECISION_TTL)


def make_binding(
    *,
    journal_id: int,
    task_id: str,
    step_index: int,
    kind: str,
    key: str,
    payload_sha256: str,
    dispatches: int,
    user_id: int,
) -> Binding:
    """A binding made now."""
    return Binding(
        journal_id,
        task_id,
        step_index,
        kind,
        key,
        payload_sha256,
        dispatches,
        user_id,
        clock.now_text(),
        secrets.token_hex(16),
    )


def seal_binding(binding: Binding) -> str:
    """The signed text that stands in the form."""
    values = asdict(binding)
    # A task id may hold bytes that are no UTF-8; the signed JSON carries them as escapes.
    return signing.dumps(values, salt=_SALT)


def unseal_binding(text: str) -> Binding:
    """The binding a form brought back. Raises BindingError for anything that was not sealed here."""
    try:
        values = signing.loads(text, salt=_SALT)
        return Binding(**{field.name: values[field.name] for field in fields(Binding)})
    except (signing.BadSignature, KeyError, TypeError, ValueError) as error:
        raise BindingError("The form was not made by this dashboard, or was changed on the way.") from error


def find_changes(binding: Binding, *, key: str, payload_sha256: str, dispatches: int, status: str) -> tuple[str, ...]:
    """The changes since the page was shown, one sentence each; empty if there are none."""
    found: list[str] = []
    if status != "pending":
        found.append(f"The step is not pending any more: it is {status}.")
    if key != binding.key:
        found.append("The idempotency key is another one.")
    if payload_sha256 != binding.payload_sha256:
        found.append("The payload is another one: its SHA-256 differs from the one you were shown.")
    if dispatches != binding.dispatches:
        found.append(f"It was dispatched {binding.dispatches} times when you were shown it; now it is {dispatches}.")
    if clock.wall() >= binding.expires_at:
        found.append(EXPIRED_QUESTION if binding.kind == QUERY_STATUS else EXPIRED)
    return tuple(found)
