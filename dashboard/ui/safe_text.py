"""Hostile text made visible: control characters, bidi marks and invisible characters become tokens."""

from __future__ import annotations

import copy
import logging
import re
import unicodedata
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

# Characters that reorder, hide or break text. Tab and newline pass where the text stands in a <pre>.
_CONTROLS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff"
)
_BLOCK = re.compile(f"([{_CONTROLS}])")
_LINE = re.compile(f"([{_CONTROLS}\t\n])")
_NEWLINES = {"\n": "↵", "\t": "⇥", "\r": "␍"}


def mark_block(text: str, limit: int | None = None) -> SafeString:
    """Text for a <pre>: line breaks and tabs stay, every other control character shows its code point."""
    return _cut_text(text, limit, _BLOCK)


def mark_line(text: str, limit: int | None = None) -> SafeString:
    """Text for one line; what `limit` cuts off is counted, not hidden."""
    return _cut_text(text, limit, _LINE)


def mark_attribute(text: str) -> str:
    """Text for an attribute, which holds no marks of its own: control characters show as `[U+202E]`."""
    return _LINE.sub(lambda found: f"[{_name_code(found[0])}]", text)


def _cut_text(text: str, limit: int | None, pattern: re.Pattern[str]) -> SafeString:
    if limit is None or len(text) <= limit:
        return _mark_controls(text, pattern)
    rest = len(text) - limit
    return format_html(
        '{}<span class="cut">… {} more character{}</span>',
        _mark_controls(text[:limit], pattern),
        f"{rest:,}",
        "s" if rest > 1 else "",
    )


def _mark_controls(text: str, pattern: re.Pattern[str]) -> SafeString:
    pieces = pattern.split(text)
    # Odd places hold the captured character. Both branches go through format_html: nothing here trusts the text.
    return mark_safe(
        "".join(_make_token(piece) if place % 2 else format_html("{}", piece) for place, piece in enumerate(pieces))
    )


def _make_token(character: str) -> SafeString:
    code = _name_code(character)
    name = "a byte that is not UTF-8" if code.startswith("0x") else unicodedata.name(character, "control character")
    return format_html('<span class="ctl" title="{}">{}</span>', f"{code} {name}", _NEWLINES.get(character, code))


def _name_code(character: str) -> str:
    byte = 0xDC80 <= ord(character) <= 0xDCFF
    return f"0x{ord(character) - 0xDC00:02X}" if byte else f"U+{ord(character):04X}"


_TOKEN = re.compile(r"(sign-in/link/+)[A-Za-z0-9_-]+")


class LogLine(logging.Formatter):
    """One line for each record, whatever journals, paths and requests contain, and without a valid sign-in token.

    Control characters show their code point, so that no text acts on the reader's terminal or forges a further line.
    A traceback follows its line indented; a refused request has none.
    """

    def format(self, record: logging.LogRecord) -> str:
        record = copy.copy(record)
        record.exc_text = None
        if record.name.startswith("django.security"):  # what somebody sent, no fault of ours
            record.exc_info = None
        record.msg, record.args = mark_attribute(record.getMessage()), ()
        return _TOKEN.sub(r"\1<token>", super().format(record))

    def formatException(self, ei: Any) -> str:
        return "\n".join("    " + mark_attribute(line) for line in super().formatException(ei).split("\n"))
