"""`Reply`: the return value of a model function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journal import codec
from journal.errors import InvalidArguments


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


def read_call(call: Any) -> tuple[str, Any]:
    """(tool name, arguments) of one call of a Reply; JSON text is read, anything else is left to refusal."""
    if isinstance(call, Mapping):
        name, arguments = call.get("name", call.get("tool")), call.get("arguments", {})
    elif isinstance(call, list | tuple) and len(call) == 2:
        name, arguments = call
    else:
        return repr(call), None
    if isinstance(arguments, str):
        try:
            arguments = codec.loads(arguments)
        except ValueError:
            return str(name), None
    return str(name), arguments


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
        name = read_call(call)[0]
    except Exception:
        name = type(call).__name__
    return {"name": codec.escaped(name), "refused": why, "path": path}
