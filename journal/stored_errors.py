"""Failures as data: a tool's error, stored so that a resume raises the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice

from journal.codec import escaped
from journal.errors import StepAbandoned, StepFailed, leaves
from journal.models import describe_answer

# The type in the stored failure of a call whose arguments were refused.
REFUSED_ARGUMENTS = "journal.errors.InvalidArguments"

_CHAIN_LIMIT = 10
_TEXT_LIMIT = 4000


def dump_error(error: BaseException, *, hide: Callable[[str], str]) -> str:
    """Type, message and chain of an exception as strict JSON, each text as `hide` leaves it.

    The chain is what caused it, outermost first. Of a group, in the chain too, every error in it is named.
    """
    chain = [_named(cause, hide) for cause in islice(_causes(error, {id(error)}), _CHAIN_LIMIT)]
    return dump_failure(_name(error), error_text(error, hide=hide), chain)


def _causes(error: BaseException, seen: set[int]) -> Iterator[BaseException]:
    for one in (error, *(leaf for leaf in leaves(error) if leaf is not error)):
        cause = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        if cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            yield from _causes(cause, seen)


def _named(error: BaseException, hide: Callable[[str], str]) -> str:
    return f"{_name(error)}: {error_text(error, hide=hide)}"


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


def describe_error(error_json: str | None) -> str:
    """Type and message of a stored failure on one line, for people."""
    return ": ".join(filter(None, describe_failure(error_json)))


def load_step_abandoned(error_json: str | None, what: str) -> StepAbandoned:
    """The StepAbandoned an ended step stands for."""
    stored = json.loads(error_json) if error_json else {}
    reason = str(stored.get("message", ""))
    return StepAbandoned(f"{what}: an operator ended it: {reason}", reason=reason)


def _name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def error_text(error: BaseException, *, hide: Callable[[str], str]) -> str:
    """The error's own text, fit to be stored; a group's with the errors in it."""
    if isinstance(error, BaseExceptionGroup):
        members = [_named(leaf, hide) for leaf in leaves(error)[:_CHAIN_LIMIT]]
        return f"{hide(escaped(error.message))}: {'; '.join(members)}"[:_TEXT_LIMIT]
    try:
        text = str(error)
    except Exception as second:
        text = f"<its text raised {type(second).__name__}>"
    # Cut last: a part of a credential is not recognised.
    return hide(escaped(text))[:_TEXT_LIMIT]
