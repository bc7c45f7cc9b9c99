"""Failures as data: a tool's error, stored so that a resume raises the same."""

from __future__ import annotations

import json
from collections.abc import Callable

from journal.codec import escaped
from journal.errors import StepAbandoned, StepFailed
from journal.models import describe_answer

_CHAIN_LIMIT = 10
_TEXT_LIMIT = 4000


def dump_error(error: BaseException, *, hide: Callable[[str], str]) -> str:
    """Type, message and chain of an exception as strict JSON, each text as `hide` leaves it."""
    chain: list[str] = []
    seen = {id(error)}
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while cause is not None and id(cause) not in seen and len(chain) < _CHAIN_LIMIT:
        seen.add(id(cause))
        chain.append(f"{_name(cause)}: {error_text(cause, hide=hide)}")
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return dump_failure(_name(error), error_text(error, hide=hide), chain)


def dump_failure(type_name: str, message: str, chain: list[str] | None = None) -> str:
    """A stored failure of the given words."""
    return json.dumps({"type": type_name, "message": message, "chain": chain or []}, sort_keys=True)


def dump_rejection(http_status: int | None, detail: str) -> str:
    """The stored failure of a request that was refused."""
    return dump_failure("Rejected", describe_answer(http_status, detail))


def load_step_failed(error_json: str | None, what: str) -> StepFailed:
    """The StepFailed a stored failure stands for."""
    stored = json.loads(error_json) if error_json else {}
    message = f"{what}: {stored.get('type', 'error')}: {stored.get('message', 'no message was stored')}"
    return StepFailed(message, type=str(stored.get("type", "")), chain=tuple(stored.get("chain", ())))


def describe_failure(error_json: str | None) -> tuple[str, str]:
    """(type, message) of a stored failure, for people; empty where it cannot be read or holds none. Never raises."""
    try:
        stored = json.loads(error_json or "{}")
    except (ValueError, RecursionError):
        return "", error_json or ""
    if not isinstance(stored, dict):
        return "", str(stored)
    return str(stored.get("type") or ""), str(stored.get("message") or "")


def load_step_abandoned(error_json: str | None, what: str) -> StepAbandoned:
    """The StepAbandoned an ended step stands for."""
    stored = json.loads(error_json) if error_json else {}
    reason = str(stored.get("message", ""))
    return StepAbandoned(f"{what}: an operator ended it: {reason}", reason=reason)


def _name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def error_text(error: BaseException, *, hide: Callable[[str], str]) -> str:
    """The error's own text, fit to be stored."""
    try:
        text = str(error)
    except Exception as second:
        text = f"<its text raised {type(second).__name__}>"
    # Cut last: a part of a credential is not recognised.
    return hide(escaped(text))[:_TEXT_LIMIT]
