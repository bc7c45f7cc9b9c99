"""Whether the code still asks for the step the journal holds at this index."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from journal import codec
from journal.errors import InvalidArguments
from journal.models import Step
from journal.steps import NewStep

_SHOWN = 60
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference. `place` names it without values (it is stored), `sentence` shows them (it is raised)."""

    place: str
    sentence: str
    arguments_only: bool
    json: str


def difference(step: Step, new: NewStep, defaults: Mapping[str, Any]) -> Difference | None:
    """The first difference between the stored step and what the code asks for now; None when there is none.

    A parameter the stored arguments lack, whose value now equals its default, is no difference.
    """
    if step.tool_name != new.tool_name or step.effect != new.effect:
        stored, now = f"{step.effect} {step.tool_name}", f"{new.effect} {new.tool_name}"
        return _difference("tool", stored, now, arguments_only=False)
    if step.arguments_json == new.arguments_json:
        return None
    stored_arguments = codec.loads(step.arguments_json or "{}")
    arguments = codec.loads(new.arguments_json)
    for name, value in defaults.items():
        if name in arguments and name not in stored_arguments and _equals_default(arguments[name], value):
            del arguments[name]
    found = _first("$", stored_arguments, arguments)
    return None if found is None else _difference(*found, arguments_only=True)


def _first(path: str, stored: Any, now: Any) -> tuple[str, Any, Any] | None:
    if isinstance(stored, dict) and isinstance(now, dict):
        for name in sorted(stored.keys() | now.keys()):
            found = _first(f"{path}.{name}", stored.get(name, _MISSING), now.get(name, _MISSING))
            if found is not None:
                return found
        return None
    if isinstance(stored, list) and isinstance(now, list):
        for place in range(max(len(stored), len(now))):
            pair = [items[place] if place < len(items) else _MISSING for items in (stored, now)]
            found = _first(f"{path}[{place}]", *pair)
            if found is not None:
                return found
        return None
    same = type(stored) is type(now) and stored == now
    return None if same else (path, stored, now)


def _difference(place: str, stored: Any, now: Any, *, arguments_only: bool) -> Difference:
    sentence = f"{place} is {_shown(stored)} in the journal, and {_shown(now)} in the code."
    return Difference(place, sentence, arguments_only, json.dumps({"path": place}))


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
