"""The comparison of the code's step with the journal's step of the same number."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from journal import codec, stored_errors
from journal.errors import InvalidArguments
from journal.ids import sha256_hex
from journal.models import Step
from journal.store.sql.steps import NewStep

_SHOWN = 80
# Characters shown before and after the first difference of two texts.
_AROUND = 40
# A prompt is compared in pieces of this many characters, a long one in this many pieces.
_PIECE, _MOST_PIECES, _PIECE_DIGITS = 64, 512, 8
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
    if new.prompt is not None and isinstance(stored_arguments, dict):
        return _prompt_difference(stored_arguments, step.prompt_hashes, new.prompt)
    arguments = codec.loads(new.arguments_json)
    if not registered and isinstance(stored_arguments, dict) and isinstance(arguments, dict):
        # A missing argument was a default of the tool that no longer exists.
        stored_arguments = {name: value for name, value in stored_arguments.items() if name in arguments}
    for name, value in defaults.items():
        if name in arguments and name not in stored_arguments and _equals_default(arguments[name], value):
            del arguments[name]
    found = _first((), stored_arguments, arguments)
    return None if found is None else _difference(*found, arguments_only=True)


def hash_pieces(prompt: str) -> str:
    """Short hashes of the prompt's pieces, so that a resume can say where another prompt first differs from it."""
    size = max(_PIECE, -(-len(prompt) // _MOST_PIECES))
    pieces = (prompt[at : at + size] for at in range(0, len(prompt), size))
    return json.dumps({"size": size, "hashes": [sha256_hex(piece)[:_PIECE_DIGITS] for piece in pieces]})


def _prompt_difference(stored: dict[str, Any], hashes: str | None, now: str) -> Difference | None:
    """Where the prompt differs: from its stored text, its preview, or the first piece that has another hash."""
    if stored.get("prompt_sha256") == sha256_hex(now):
        return None
    text = str(stored.get("prompt", stored.get("preview", "")))
    if "prompt" in stored or now[: len(text)] != text:
        return _difference((".prompt",), text, now, arguments_only=True)
    start, size = _first_other_piece(hashes, now) if hashes else (len(text), len(now))
    asked = json.dumps(now[max(0, start - _AROUND) : start + max(size, 2 * _AROUND)], ensure_ascii=False)
    sentence = (
        f"the prompts differ first between characters {start} and {start + size} of {stored.get('prompt_bytes')} bytes."
        f" The code asks there: {asked}. The journal keeps a hash of that part, not its text."
    )
    place = f"$.prompt[{start}:{start + size}]"
    return Difference(place, "$.prompt", sentence, arguments_only=True, json=json.dumps({"path": place}))


def _first_other_piece(hashes: str, now: str) -> tuple[int, int]:
    """Where the first piece that has another hash begins, and how long a piece is."""
    known = codec.loads(hashes)
    size: int = known["size"]
    pieces = (sha256_hex(now[at : at + size])[:_PIECE_DIGITS] for at in range(0, len(now), size))
    same = takewhile(lambda pair: pair[0] == pair[1], zip(known["hashes"], pieces, strict=False))
    return size * sum(1 for _ in same), size


def _was_refused(step: Step) -> bool:
    return (
        step.status == "failed"
        and step.effect != "model"
        and stored_errors.describe_failure(step.error_json)[0] == stored_errors.REFUSED_ARGUMENTS
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
    before, after = _show_pair(stored, now) if arguments_only else (stored, now)
    sentence = f"{place} is {before} in the journal, and {after} in the code.{_form(stored, now)}"
    return Difference(place, parameter, sentence, arguments_only, json.dumps({"path": place}))


def _show_pair(stored: Any, now: Any) -> tuple[str, str]:
    """Both values as JSON, long texts around their first difference; in ASCII where they would look alike."""
    if isinstance(stored, str) and isinstance(now, str):
        at = _first_difference(stored, now)
        start = max(0, at - _AROUND)
        ascii_only = _form(stored, now) != "" or not (stored + now).isprintable()
        return _show_text(stored, start, ascii_only=ascii_only), _show_text(now, start, ascii_only=ascii_only)
    return _show(stored), _show(now)


def _show(value: Any) -> str:
    if value is _MISSING:
        return "missing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def _show_text(text: str, start: int, *, ascii_only: bool) -> str:
    shown = json.dumps(text[start : start + 2 * _AROUND], ensure_ascii=ascii_only)
    if start == 0 and len(text) <= 2 * _AROUND:
        return shown
    before, after = "…" if start else "", "…" if start + 2 * _AROUND < len(text) else ""
    return f"{before}{shown}{after} (from character {start} of {len(text)})"


def _first_difference(stored: str, now: str) -> int:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(stored, now, strict=False))
    return sum(1 for _ in same)


def _form(stored: Any, now: Any) -> str:
    """A sentence where two values differ in their form alone, which a person easily overlooks."""
    if not isinstance(stored, str) or not isinstance(now, str):
        if _MISSING in (stored, now):
            return ""
        alike = len({one if isinstance(one, str) else json.dumps(one) for one in (stored, now)}) == 1
        return " They differ only in their type." if alike else ""
    if unicodedata.normalize("NFC", stored) == unicodedata.normalize("NFC", now):
        return " They differ only in their Unicode form (NFC or NFD)."
    if stored.strip() == now.strip():
        return " They differ only in blanks at the ends."
    if _visible(stored) == _visible(now):
        return " They differ only in characters that cannot be seen."
    return ""


def _visible(text: str) -> str:
    return "".join(one for one in text if one.isprintable() and not unicodedata.category(one).startswith("C"))


def _equals_default(value: Any, default: Any) -> bool:
    try:
        return bool(codec.loads(codec.dumps(default)) == value)
    except InvalidArguments:
        return False
