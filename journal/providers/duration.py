"""Durations as text: `30s`, `15m`, `24h`, `7d`, `forever`."""

from __future__ import annotations

import re
from datetime import timedelta

# A window that never ends. `reconcile.replay_window.add_span` adds it to a time without an overflow.
FOREVER = timedelta.max

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_FORM = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
ACCEPTED = 'a number with s, m, h or d such as "24h"'


def parse_duration(text: object) -> timedelta:
    """The duration; `forever` is FOREVER. Raises ValueError for any other form, and for more than 100 years."""
    if text == "forever":
        return FOREVER
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    seconds = float(match[1]) * _UNITS[match[2]] if match else -1.0
    if not 0 <= seconds <= 36500 * 86400:
        raise ValueError(f"{text!r} is not a duration")
    return timedelta(seconds=seconds)


def format_duration(duration: timedelta) -> str:
    """An exact form that reads well: the largest unit that divides it, hours up to three days."""
    if duration == FOREVER:
        return "forever"
    seconds = duration.total_seconds()
    for unit in "dhm":
        if seconds and seconds % _UNITS[unit] == 0 and (unit != "d" or seconds >= 3 * _UNITS["d"]):
            return f"{int(seconds / _UNITS[unit])}{unit}"
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"
