"""Text made safe for a terminal: control characters from a journal must not steer it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_LONGEST_CELL = 60


def clean(text: str) -> str:
    """The text with every control, format and surrogate character shown as its escape."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode("ascii")
        for char in text
    )


def short(text: str, width: int = _LONGEST_CELL) -> str:
    """The cleaned text, cut with an ellipsis."""
    seen = clean(text)
    return seen if len(seen) <= width else f"{seen[: width - 1]}…"


def age(then: datetime | None, now: datetime) -> str:
    """The time since a moment, in its largest unit: `3 min`; `in 3 min` for a moment to come."""
    if then is None:
        return "?"
    seconds = (now - then).total_seconds()
    size, name = next(((size, name) for size, name in _UNITS if abs(seconds) >= size), (1, "s"))
    count = f"{abs(int(seconds / size))} {name}"
    return f"in {count}" if seconds <= -1 else count


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with aligned columns."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
