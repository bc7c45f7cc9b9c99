"""Untrusted rows: each cell is converted alone, and a cell that does not fit is named, never raised."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import UTC, datetime

from journal import clock

# Epoch readings by magnitude: seconds reach these sizes in the year 5138, milliseconds and microseconds likewise.
_EPOCHS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (float("inf"), 1e9))
_INTEGERS_END = 2**63
_SHORTEST_EPOCH_TEXT = 9  # eight digits are a date: 20261101


class OddText(str):
    """Text that was not valid UTF-8: replacement signs stand for the broken bytes."""

    __slots__ = ()


def decode_text(raw: bytes) -> str:
    """The text factory of every reading connection: never raises."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return OddText(raw.decode("utf-8", "replace"))


def parse_time(value: object) -> datetime | None:
    """The time a cell stands for: ISO-8601 text (UTC where it names no zone) or an epoch in s, ms, µs or ns.

    None for a value that is not a time.
    """
    if isinstance(value, str):
        text = value.strip()
        if len(text) >= _SHORTEST_EPOCH_TEXT and text.replace(".", "", 1).isdigit() and text.isascii():
            return parse_time(float(text))
        try:
            return clock.parse(text)
        except (ValueError, OverflowError):
            return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        scale = next(scale for limit, scale in _EPOCHS if abs(value) < limit or limit == float("inf"))
        try:
            return datetime.fromtimestamp(value / scale, UTC)
        except (ValueError, OverflowError, OSError):
            return None
    return None


class UntrustedRow:
    """One row by column name; `odd` names the columns whose cells did not fit."""

    __slots__ = ("_odd", "_row")

    def __init__(self, row: Mapping[str, object]) -> None:
        self._row = row
        self._odd: dict[str, None] = {}

    @property
    def odd(self) -> tuple[str, ...]:
        return tuple(self._odd)

    def mark(self, name: str) -> None:
        """Name a column as odd."""
        self._odd[name] = None

    def raw(self, name: str) -> object:
        """The cell as SQLite gave it; None for a column the query did not ask for."""
        return self._row.get(name)

    def text(self, name: str) -> str | None:
        """Text or None; numbers and bytes become text and are odd."""
        value = self._row.get(name)
        if value is None:
            return None
        if isinstance(value, OddText):
            self.mark(name)
            return str(value)
        if isinstance(value, str):
            return value
        self.mark(name)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return str(value)

    def needed_text(self, name: str, default: str = "") -> str:
        """Text; NULL is odd and becomes `default`."""
        value = self.text(name)
        if value is None:
            self.mark(name)
            return default
        return value

    def integer(self, name: str) -> int | None:
        """A whole number or None; anything else is odd and None."""
        value = self._row.get(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        self.mark(name)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return None

    def needed_integer(self, name: str, default: int) -> int:
        """A whole number that SQLite can be asked for; NULL and anything else is odd and becomes `default`."""
        value = self.integer(name)
        if value is None or not -_INTEGERS_END <= value < _INTEGERS_END:
            self.mark(name)
            return default
        return value

    def number(self, name: str) -> float | None:
        """A number or None; anything else is odd and None."""
        value = self._row.get(name)
        if value is None:
            return None
        if isinstance(value, int | float) and abs(value) < float("inf"):
            return float(value)
        self.mark(name)
        return None

    def flag(self, name: str) -> bool | None:
        """A truth value or None; a cell that is not a whole number is odd and None."""
        value = self.integer(name)
        return None if value is None else value != 0

    def time(self, name: str) -> datetime | None:
        """A time or None; a cell that is not a time is odd and None."""
        value = self._row.get(name)
        if value is None:
            return None
        found = parse_time(value)
        if found is None:
            self.mark(name)
        return found

    def word(self, name: str, words: Container[str]) -> str | None:
        """One of the known words or None; another word is kept and odd."""
        value = self.text(name)
        if value is not None and value not in words:
            self.mark(name)
        return value

    def choice(self, name: str, words: Container[str], other: str | None = None) -> str | None:
        """One of the known words or None; anything else is odd and becomes `other`."""
        value = self.text(name)
        if value is None:
            return None
        if value in words:
            return value
        self.mark(name)
        return other
