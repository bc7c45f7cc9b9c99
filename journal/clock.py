"""The runtime's only clock, so that tests can move it.

`STEPKEEPER_TEST_CLOCK` names a file that holds a signed offset in seconds. Every process reads the file at each reading
of the clock, and the offset moves wall time and boot time alike.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime

_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
# Sleeps are cut into slices so that one started before the clock was moved still ends when it is due.
_SLICE = 0.2
_UNPINNED_SLICE = 3600.0


@dataclass(frozen=True, slots=True)
class Moment:
    """One reading: wall time (UTC), seconds since the machine started, and which start that was."""

    wall: datetime
    boot: float
    os_boot_id: str


def offset() -> float:
    """The test clock's offset in seconds; 0.0 where none is set or its file is not there yet."""
    path = os.environ.get("STEPKEEPER_TEST_CLOCK")
    if not path:
        return 0.0
    try:
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
    except FileNotFoundError:
        return 0.0
    try:
        return float(text or 0.0)
    except ValueError as error:
        raise ValueError(f"STEPKEEPER_TEST_CLOCK: {path} holds {text[:40]!r}, not a number of seconds.") from error


def is_pinned() -> bool:
    """Whether a test clock is in force in this process."""
    return bool(os.environ.get("STEPKEEPER_TEST_CLOCK"))


def wall() -> datetime:
    """The wall time, aware, in UTC."""
    return datetime.fromtimestamp(time.time() + offset(), UTC)


def boot_seconds() -> float:
    """Seconds since the machine started, suspend included (CLOCK_BOOTTIME)."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) + offset()


def os_boot_id() -> str:
    """The kernel's id of this start of the machine; empty if the kernel gives none."""
    try:
        with open(_BOOT_ID_FILE, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def moment() -> Moment:
    """Wall time, boot time and OS boot id, read together."""
    return Moment(wall(), boot_seconds(), os_boot_id())


def text(moment: datetime) -> str:
    """The stored form of a time: UTC ISO-8601, microseconds, `Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(value: str) -> datetime:
    """The time a stored text stands for. Raises ValueError for any other form than ISO-8601."""
    parsed = datetime.fromisoformat(value)
    try:
        parsed = parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{value[:40]!r} is no time of the years 1000 to 9999 in UTC.") from error
    if parsed.year < 1000:
        # Its stored form, and the order of stored texts, need four digits.
        raise ValueError(f"{value[:40]!r} is no time of the years 1000 to 9999 in UTC.")
    return parsed


def now_text() -> str:
    """The current wall time in its stored form."""
    return text(wall())


def slice_until(until: datetime) -> float:
    """Seconds to sleep before looking at the clock again; 0.0 once `until` is due."""
    left = (until - wall()).total_seconds()
    if left <= 0:
        return 0.0
    return min(left, _SLICE if is_pinned() else _UNPINNED_SLICE)
