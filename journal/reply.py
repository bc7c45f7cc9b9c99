"""`Reply`: the return value of a model function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journal import codec
from journal.errors import InvalidArguments

_ONE_OBJECT = 'Give one JSON object with the arguments by name, such as {"path": "a.txt"}.'


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer: `content` as the handler uses it, `usage` as the provider reported it (raw).

    `calls` are the tool calls the model asks for, for `Task.act`: mappings with `name` (or `tool`) and `arguments`
    (an object, or JSON text of one). `model` and `service_tier` are the response's own, `request_model` what was
    asked for. On resume the same Reply comes from the journal and costs nothing.
    """

    content: Any
    usage: Any = None
    model: str | None = None
    response_id: str | None = None
    calls: Sequence[Any] = ()
    request_model: str | None = None
    service_tier: str | None = None


def call_name(call: Any) -> str:
    """The tool that one call of a Reply names."""
    if isinstance(call, Mapping):
        return str(call.get("name", call.get("tool")))
    return str(call[0]) if _is_pair(call) else repr(call)


def call_arguments(call: Any) -> Any:
    """The arguments of one call of a Reply as the model gave them: an object, JSON text, or nothing."""
    if isinstance(call, Mapping):
        return call.get("arguments")
    return call[1] if _is_pair(call) else call


def read_arguments(given: Any) -> dict[str, Any]:
    """The arguments by name. Nothing, `null` and blank text are no arguments, as many gateways send them.

    Raises InvalidArguments, in words that the model can use, for text that is not JSON, is not one object, has a key
    twice, or holds what a journal cannot: deep nesting, numbers out of range, lone surrogates.
    """
    found = given
    if isinstance(given, str):
        try:
            found = codec.typed(given, what="arguments") if given.strip() else None
        except ValueError as error:
            raise InvalidArguments(f"The arguments are not JSON: {error}.", path="$", hint=_ONE_OBJECT) from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        kind = type(found).__name__
        raise InvalidArguments(f"The arguments are a {kind}, not an object.", path="$", hint=_ONE_OBJECT)
    return found


def _is_pair(call: Any) -> bool:
    return isinstance(call, list | tuple) and len(call) == 2


def store_calls(calls: Any) -> tuple[list[Any], bool]:
    """The calls as they are stored, and whether each is as the model made it. Never raises: the answer was paid."""
    try:
        found = list(calls or ())
    except Exception as error:
        return [_refused(calls, f"The reply's calls cannot be read: {type(error).__name__}.", "$")], False
    stored = [_storable(call) for call in found]
    return stored, all(kept is call for kept, call in zip(stored, found, strict=True))


def _storable(call: Any) -> Any:
    """The call itself, or, where its arguments cannot be stored, its name and why they are refused.

    A stub in the place of a value must never reach a tool as if the model had said it.
    """
    try:
        codec.dumps(call)
    except InvalidArguments as error:
        return _refused(call, error.message, error.path)
    except Exception as error:
        return _refused(call, f"The call cannot be read: {type(error).__name__}.", "$")
    return call


def _refused(call: Any, why: str, path: str) -> dict[str, str]:
    try:
        name = call_name(call)
    except Exception:
        name = type(call).__name__
    return {"name": codec.escaped(name), "refused": why, "path": path}
