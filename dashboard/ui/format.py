"""The format of numbers, times and states: one rule each, used by every page."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from django.utils import timezone

from agents.money import Money

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_BINARY = ("bytes", "KiB", "MiB", "GiB", "TiB")


def to_local_time(moment: datetime) -> datetime:
    """A time on the clock of the dashboard's zone; at the two ends of the calendar, which no zone may leave, UTC."""
    try:
        return timezone.localtime(moment)
    except OverflowError:
        return moment


def format_clock(moment: datetime, now: datetime) -> str:
    """A time as the clock of the dashboard's zone shows it, with the date where it is not today's."""
    shown, today = to_local_time(moment), to_local_time(now).date()
    return shown.strftime("%H:%M:%S" if shown.date() == today else "%Y-%m-%d %H:%M:%S")


def format_duration(seconds: float | None) -> str:
    """A length of time in at most two units: `340 ms`, `12 s`, `3 h 12 m`."""
    if seconds is None:
        return "—"
    if seconds < 0:
        return f"−{format_duration(-seconds)}"
    if seconds < 0.0995:
        return f"{seconds * 1000:.1f} ms" if seconds < 0.00995 else f"{seconds * 1000:.0f} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < _HOUR:
        return _format_two_units(whole, _MINUTE, "m", 1, "s")
    if whole < 2 * _DAY:
        return _format_two_units(whole, _HOUR, "h", _MINUTE, "m")
    return _format_two_units(whole, _DAY, "d", _HOUR, "h")


def _format_two_units(whole: int, big: int, big_name: str, small: int, small_name: str) -> str:
    rest = whole % big // small
    return f"{whole // big} {big_name}" + (f" {rest} {small_name}" if rest else "")


def format_age(moment: datetime | None, now: datetime) -> str:
    """The time since or until a moment, in words."""
    if moment is None:
        return "at an unknown time"
    seconds = (now - moment).total_seconds()
    if seconds < -1:
        return f"in {_format_rounded(-seconds)}"
    if seconds < 2:
        return "just now"
    return f"{_format_rounded(seconds)} ago"


def _format_rounded(seconds: float) -> str:
    """A length of time that moves by itself: calm past a minute, which has no seconds. static/ages.js says the same."""
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < 2 * _DAY:
        return _format_two_units(whole, _HOUR, "h", _MINUTE, "min")
    return _format_two_units(whole, _DAY, "d", _HOUR, "h")


def format_size(count: int | None) -> str:
    """Bytes with their unit, binary multiples from 10 KiB up; below that the exact count."""
    if count is None:
        return "—"
    if count == 1:
        return "1 byte"
    if count < 10 * 1024:
        return f"{count:,} bytes"
    amount, unit = float(count), 0
    while amount >= 1024 and unit < len(_BINARY) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_BINARY[unit]}" if amount < 100 else f"{amount:.0f} {_BINARY[unit]}"


def format_money(amount: Decimal | None) -> str:
    """US dollars; small sums have six places, an unknown price is never $0."""
    if amount is None:
        return "unpriced"
    if amount == 0:
        return "$0"
    if abs(amount) < Decimal("0.01"):
        return f"${amount:.6f}" if abs(amount) >= Decimal("0.000001") else "< $0.000001"
    return f"${amount:,.2f}" if abs(amount) >= 1 else f"${amount:.4f}"


def format_cost(cost: Money | None, *, incomplete: bool = False) -> str:
    """A sum of money. Calls without a price are told by "≥", and so are calls that nobody could read (`incomplete`)."""
    if cost is None:
        return "—"
    amount = format_money(cost.amount)
    return f"≥ {amount}" if cost.at_least or (incomplete and cost.amount is not None) else amount


def format_number(count: int | None) -> str:
    """A whole number with thousands' commas; an unknown number is a dash, not a zero."""
    return "—" if count is None else f"{count:,}"


def format_count(count: int, one: str, many: str | None = None) -> str:
    """`1 step`, `3 steps`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def describe_key_window(text: str, left: float | None) -> str:
    """How long a provider surely knows a key: the rest of its window, or why there is none."""
    if left is None:
        return text or "unknown: nothing says how long the key is kept"
    return f"key safe for {_format_rounded(left)}" if left > 0 else "closed: the provider may have forgotten the key"


def name_signal(state: str) -> str:
    """The word that stands beside a signal's shape."""
    return {"not_sent": "not sent", "unknown": "outcome unknown", "unread": "not read yet"}.get(state, state)
