"""The body of an answer: strict JSON, a path into it, and a short excerpt for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

_EXCERPT = 300


class NotJSON(ValueError):
    """The body is not the strict JSON it should be."""


_BLANK = b"\xef\xbb\xbf \t\r\n"


def declares_json(headers: Mapping[str, str]) -> bool:
    """Whether the answer declares JSON."""
    kind = _kind(headers)
    return kind == "application/json" or kind.endswith("+json")


def is_web_page(headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the answer is a web page. A single word labelled as HTML is not a page."""
    return _kind(headers) in ("text/html", "application/xhtml+xml") and body.lstrip(_BLANK).startswith(b"<")


def _kind(headers: Mapping[str, str]) -> str:
    return find_header(headers, "content-type").partition(";")[0].strip().lower()


def find_header(headers: Mapping[str, str], name: str) -> str:
    """A header's value, by its name in any case; empty if it is missing."""
    return next((value for key, value in headers.items() if key.lower() == name.lower()), "")


def parse_json(body: bytes) -> object:
    """The JSON value. Raises NotJSON for anything else, NaN and Infinity among it."""
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotJSON(str(error)) from error


def _refuse(name: str) -> object:
    raise NotJSON(f"{name} is not JSON")


def value_at(value: object, path: str) -> tuple[object, bool]:
    """The value at a dotted path (`data.items.0.id`) and whether it is there; the empty path is the value itself."""
    for part in path.split(".") if path else []:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isascii() and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None, False
    return value, True


def cut_excerpt(body: bytes, hide: Callable[[str], str]) -> str:
    """The beginning of a body on one line, printable characters only; `hide` takes out what must not be shown."""
    # The text is cut last, because a part of a credential is not recognised.
    text = hide(body.decode("utf-8", "replace"))[: _EXCERPT * 4]
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if len(line) <= _EXCERPT else f"{line[:_EXCERPT]}…"
