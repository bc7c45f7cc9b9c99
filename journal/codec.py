"""Strict JSON text: a stored value reads back equal, or is refused with the path of the wrong part.

The text is exactly `json.dumps(value, sort_keys=True)` of the encoded value.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from journal.errors import InvalidArguments

# The integers that 64-bit JSON readers, signed or unsigned, keep exact. Some readers make a float of any other.
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
# CPython's own encoder and decoder give up near 1,000 levels; other readers earlier.
_MAX_DEPTH = 200
# Longer outputs are kept as a stub with length and hash: SQLite's own limit is 1 GB for one row.
MAX_OUTPUT_BYTES = 64 * 1024 * 1024
# More values than this in an output that needs stubs are a graph whose parts repeat, not data.
_MAX_LOSSY_PARTS = 200_000
_STUB = "$unstorable"
_STUB_CHARACTERS = 200


def dumps(value: object, *, what: str = "arguments") -> str:
    """The canonical text of `value`.

    Dates and times become ISO-8601 text, Decimal and UUID text, an Enum its value, dataclasses and Pydantic models
    objects, tuples lists. Raises InvalidArguments naming the path (`$.items[2].price`) of the first value that would
    not read back equal: NaN, infinities, lone surrogates, bytes, sets, integers past 64 bits, non-string keys, cycles.
    """
    return json.dumps(_plain(value, "$", what, 0), sort_keys=True, allow_nan=False)


def loads(text: str) -> Any:
    """The value a stored text stands for."""
    return json.loads(text)


def typed(text: str, *, what: str) -> Any:
    """The value of JSON text that a person typed in.

    Raises ValueError for text that is no JSON. Raises InvalidArguments with the path for a value that `dumps` refuses,
    and for a repeated key, of which other readers silently take one.
    """
    try:
        value = json.loads(text, object_pairs_hook=_pairs)
    except RecursionError:
        raise _refusal("$", what, f"is nested deeper than {_MAX_DEPTH} levels") from None
    return _plain(value, "$", what, 0)


def dumps_output(value: object, *, hide: Callable[[str], str] = str) -> tuple[str, bool]:
    """The canonical text of an output, and whether it is complete.

    Never raises for the value: what cannot be stored is replaced by a typed stub, so that a step is not lost because
    its output was odd. `hide` is applied to the text that a stub shows, before that is cut.
    """
    try:
        text, complete = dumps(value, what="output"), True
    except Exception:  # also errors of a value's own methods: an odd output does not lose the step
        text, complete = _lossy_text(value, hide), False
    size = len(text.encode())
    if size > MAX_OUTPUT_BYTES:
        digest = hashlib.sha256(text.encode()).hexdigest()
        text, complete = json.dumps({_STUB: "too_large", "bytes": size, "sha256": digest}, sort_keys=True), False
    return text, complete


def escaped(text: str) -> str:
    """The text with lone surrogates written as escapes, so that it can be stored."""
    return text.encode("utf-8", "backslashreplace").decode()


class _Twice(str):
    """Stands for an object that has this key twice, until the walk knows the object's path."""

    __slots__ = ()


def _pairs(pairs: list[tuple[str, object]]) -> object:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            return _Twice(name)
        found[name] = value
    return found


def _plain(value: object, path: str, what: str, depth: int) -> object:
    if depth > _MAX_DEPTH:
        raise _refusal(path, what, f"is nested deeper than {_MAX_DEPTH} levels (or contains itself)")
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return _text(value, path, what)  # type: ignore[arg-type]
    if kind is int:
        return _integer(value, path, what)  # type: ignore[arg-type]
    if kind is float:
        return _number(value, path, what)  # type: ignore[arg-type]
    if isinstance(value, Mapping):
        return _object(value, path, what, depth)
    if isinstance(value, list | tuple):
        return [_plain(item, f"{path}[{place}]", what, depth + 1) for place, item in enumerate(value)]
    return _by_rule(value, path, what, depth)


def _object(value: Mapping[Any, object], path: str, what: str, depth: int) -> dict[str, object]:
    plain: dict[str, object] = {}
    for name, item in value.items():
        if not isinstance(name, str) or type(name) is not str:
            raise _refusal(path, what, f"has the key {name!r}, which is {_name(name)}, not text")
        _text(name, f"{path}.{name!r}", what)
        plain[name] = _plain(item, f"{path}.{name}", what, depth + 1)
    return plain


def _by_rule(value: object, path: str, what: str, depth: int) -> object:
    """One rule per known type; the imports are made only when such a value is met."""
    if isinstance(value, _Twice):
        raise _refusal(f"{path}.{value}", what, "stands twice")
    import enum
    from datetime import date, datetime, time
    from decimal import Decimal
    from uuid import UUID

    if isinstance(value, enum.Enum):
        return _plain(value.value, path, what, depth + 1)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise _refusal(path, what, f"is {value}, which JSON cannot hold")
        return str(value)
    if isinstance(value, UUID):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _plain(fields, path, what, depth + 1)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and hasattr(type(value), "model_fields"):
        return _plain(dump(mode="json"), path, what, depth + 1)
    if isinstance(value, str):
        return _text(str.__str__(value), path, what)
    if isinstance(value, int):
        return _integer(int(value), path, what)
    if isinstance(value, float):
        return _number(float(value), path, what)
    raise _refusal(path, what, f"is {_name(value)}, which has no JSON form")


def _text(value: str, path: str, what: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _refusal(path, what, f"has a lone surrogate at character {error.start}") from error
    return value


def _integer(value: int, path: str, what: str) -> int:
    if not _INT_MIN <= value <= _INT_MAX:
        raise _refusal(path, what, "is an integer past 64 bits, which JSON readers round", hint="Pass it as text.")
    return value


def _number(value: float, path: str, what: str) -> float:
    if not math.isfinite(value):
        raise _refusal(path, what, f"is {value}, which JSON cannot hold", hint="Pass None or text.")
    return value


def _refusal(path: str, what: str, cause: str, *, hint: str = "") -> InvalidArguments:
    shown = escaped(path)
    return InvalidArguments(f"{what.capitalize()} {shown}: {cause}.", path=shown, hint=hint or "Nothing was written.")


def _name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _lossy_text(value: object, hide: Callable[[str], str]) -> str:
    try:
        return json.dumps(_lossy(value, (), [0], hide), sort_keys=True, allow_nan=False)
    except Exception as error:
        return json.dumps(_stub(value, type(error).__name__, hide), sort_keys=True)


def _lossy(value: object, within: tuple[int, ...], parts: list[int], hide: Callable[[str], str]) -> object:
    """`value` with every part that cannot be stored replaced by a stub; the rest is kept as it is.

    `within` are the ids of the containers around it: a value that contains itself ends there.
    """
    parts[0] += 1
    if len(within) > _MAX_DEPTH or id(value) in within or parts[0] > _MAX_LOSSY_PARTS:
        return {_STUB: _name(value), "why": "contains itself, or is nested or repeated too often"}
    inside = (*within, id(value))
    try:
        if isinstance(value, Mapping):
            found: dict[str, object] = {}
            for name, item in value.items():
                found[_lossy_name(name, found)] = _lossy(item, inside, parts, hide)
            return found
        if isinstance(value, list | tuple):
            return [_lossy(item, inside, parts, hide) for item in value]
        if isinstance(value, str):
            return escaped(str.__str__(value))
        return _plain(value, "$", "output", len(within))
    except InvalidArguments as error:
        return _stub(value, error.message, hide)
    except Exception as error:
        return _stub(value, type(error).__name__, hide)


def _lossy_name(name: object, taken: Mapping[str, object]) -> str:
    shown = escaped(str(name))
    return f"{shown} ({_name(name)}, {len(taken)})" if shown in taken else shown


def _stub(value: object, why: str, hide: Callable[[str], str]) -> dict[str, str]:
    try:
        shown = hide(escaped(repr(value)))[:_STUB_CHARACTERS]
    except Exception as error:
        shown = f"<repr raised {type(error).__name__}>"
    return {_STUB: _name(value), "why": why, "repr": shown}
