"""The comparison of the code's step with the journal's step of the same number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from journal import codec, stored_errors
from journal.errors import InvalidArguments
from journal.models import Step
from journal.store.sql.steps import NewStep

# The stored failure of a refused call.
_REFUSAL = "journal.errors.InvalidArguments"
_SHOWN = 60
_MISSING = object()

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference. `place` names it without values (it is stored), `sentence` shows them (it is raised).

    `parameter` is the place down to the parameter's name: what stands below is made of the payload's own keys.
    """

    place: str
    parameter: str
    sentence: str
    arguments_only: bool
    json: str


def find_difference(
    step: Step, new: NewStep, defaults: Mapping[str, Any], *, registered: bool = True
) -> Difference | None:
    """The first difference between the stored step and what the code asks for now; None when there is none.

    A parameter the stored arguments lack, whose value now equals its default, is no difference. A call that was
    refused, and one of a tool that is not `registered` now, may have no effect that anybody knows, nor defaults: such
    calls are compared by name and by the arguments that were given.
    """
    stored_effect = "refused" if _was_refused(step) else step.effect
    effect = new.effect if registered else "unregistered"
    counts = (stored_effect, effect) == (step.effect, new.effect) or "model" in (stored_effect, effect)
    if step.tool_name != new.tool_name or (counts and stored_effect != effect):
        stored, now = f"{stored_effect} {step.tool_name}", f"{effect} {new.tool_name}"
        return _difference((), stored, now, arguments_only=False)
    if step.arguments_json == new.arguments_json:
        return None
    stored_arguments = codec.loads(step.arguments_json or "{}")
    arguments = codec.loads(new.arguments_json)
    if not registered and isinstance(stored_arguments, dict) and isinstance(arguments, dict):
        # A missing argument was a default of the tool that no longer exists.
        stored_arguments = {name: value for name, value in stored_arguments.items() if name in arguments}
    for name, value in defaults.items():
        if name in arguments and name not in stored_arguments and _equals_default(arguments[name], value):
            del arguments[name]
    found = _first((), stored_arguments, arguments)
    return None if found is None else _difference(*found, arguments_only=True)


def _was_refused(step: Step) -> bool:
    return (
        step.status == "failed"
        and step.effect != "model"
        and stored_errors.describe_failure(step.error_json)[0] == _REFUSAL
    )


def _first(path: _Path, stored: Any, now: Any) -> tuple[_Path, Any, Any] | None:
    if isinstance(stored, dict) and isinstance(now, dict):
        for name in sorted(stored.keys() | now.keys()):
            found = _first((*path, f".{name}"), stored.get(name, _MISSING), now.get(name, _MISSING))
            if found is not None:
                return found
        return None
    if isinstance(stored, list) and isinstance(now, list):
        for place in range(max(len(stored), len(now))):
            pair = [items[place] if place < len(items) else _MISSING for items in (stored, now)]
            found = _first((*path, f"[{place}]"), *pair)
            if found is not None:
                return found
        return None
    same = type(stored) is type(now) and stored == now
    return None if same else (path, stored, now)


def _difference(path: _Path, stored: Any, now: Any, *, arguments_only: bool) -> Difference:
    place = "".join(("$", *path)) if arguments_only else "tool"
    parameter = "".join(("$", *path[:1])) if arguments_only else "tool"
    sentence = f"{place} is {_shown(stored)} in the journal, and {_shown(now)} in the code."
    return Difference(place, parameter, sentence, arguments_only, json.dumps({"path": place}))


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "missing"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def _equals_default(value: Any, default: Any) -> bool:
    try:
        return bool(codec.loads(codec.dumps(default)) == value)
    except InvalidArguments:
        return False
