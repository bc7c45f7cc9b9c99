"""Whether a machine may send again under the key while an earlier attempt's outcome is unknown. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from journal.clock import Moment
from journal.models import Attempt
from journal.providers.profile import Profile

_LATEST = datetime.max.replace(tzinfo=UTC)
_BACKOFF_CAP = 300.0
# 2 ** 9 s is past the cap. A larger exponent would overflow.
_BACKOFF_STEPS = 9


@dataclass(frozen=True, slots=True)
class WindowCheck:
    """Open where `reason` is empty; else the hold reason that closes it, and why as the end of a sentence."""

    reason: str = ""
    why: str = ""

    @property
    def open(self) -> bool:
        return not self.reason


def add_span(moment: datetime, span: timedelta) -> datetime:
    """The sum, or the latest possible time, because a window may be forever."""
    try:
        return moment + span
    except OverflowError:
        return _LATEST


def measure_elapsed(started: Moment | None, now: Moment) -> tuple[timedelta, timedelta]:
    """The smaller and the larger reading of the time since `started` (law 8).

    Boot time counts only within one start of the machine. What cannot be read is 0 for a horizon, forever for a window.
    """
    if started is None:
        return timedelta(0), timedelta.max
    by_wall = now.wall - started.wall
    if not started.os_boot_id or started.os_boot_id != now.os_boot_id:
        return by_wall, by_wall
    by_boot = timedelta(seconds=min(max(now.boot - started.boot, -1e9), 1e9))
    return min(by_wall, by_boot), max(by_wall, by_boot)


def read_start(attempt: Attempt) -> Moment | None:
    """When an attempt was marked on disk; None where its cells cannot be read."""
    if attempt.started_at is None:
        return None
    if attempt.started_boottime is None:
        return Moment(attempt.started_at, 0.0, "")
    return Moment(attempt.started_at, attempt.started_boottime, attempt.os_boot_id or "")


def compute_backoff(key: str, n: int) -> timedelta:
    """The n-th wait, n from 0: at most 1 s × 2ⁿ and 5 minutes, with full jitter that is the same at each reading."""
    fraction = int.from_bytes(hashlib.sha256(f"{key}/{n}".encode()).digest()[:8]) / 2**64
    longest = min(2.0 ** min(max(n, 0), _BACKOFF_STEPS), _BACKOFF_CAP)
    return timedelta(seconds=longest * fraction)


def first_that_may_have_arrived(attempts: tuple[Attempt, ...]) -> Attempt | None:
    """The first attempt not proven unsent: windows and ages are measured from it."""
    return next((attempt for attempt in attempts if attempt.verdict != "not_sent"), None)


def find_window_end(attempts: tuple[Attempt, ...], profile: Profile) -> datetime | None:
    """When automatic replay ends, by wall time; None where there is no window or nothing was dispatched."""
    first = first_that_may_have_arrived(attempts)
    if profile.window is None or first is None or first.started_at is None:
        return None
    return add_span(first.started_at, profile.window)


def measure_age(attempts: tuple[Attempt, ...], now: Moment) -> timedelta:
    """The larger reading of the time since the first dispatch that may have arrived; 0 before any."""
    first = first_that_may_have_arrived(attempts)
    return measure_elapsed(read_start(first), now)[1] if first is not None else timedelta(0)


def check_window(attempts: tuple[Attempt, ...], profile: Profile, *, due: datetime, now: Moment) -> WindowCheck:
    """Whether the key still helps at `due` or now, whichever is later."""
    if not profile.keyed:
        return WindowCheck("no_key_no_status", "this tool has no idempotency key")
    if profile.window is None:
        return WindowCheck("key_window_unknown", "the profile does not say how long the provider keeps the key")
    wait = max(due - now.wall, timedelta(0))
    old = measure_age(attempts, now)
    # Both may be timedelta.max, so nothing is added to the window.
    if profile.window != timedelta.max and (old > profile.window or old + wait + profile.timeout > profile.window):
        return WindowCheck("key_window_closed", f"the key's window of {profile.window} has no room for another request")
    if old > profile.max_age:
        return WindowCheck("too_old", f"the first dispatch is older than {profile.max_age}")
    return _budget(attempts, profile)


def _budget(attempts: tuple[Attempt, ...], profile: Profile) -> WindowCheck:
    used = sum(attempt.verdict != "not_sent" for attempt in attempts)
    if used >= profile.max_attempts:
        return WindowCheck("attempts_used", f"{used} of {profile.max_attempts} dispatches are used")
    return WindowCheck()


def check_budget(attempts: tuple[Attempt, ...], profile: Profile, now: Moment) -> WindowCheck:
    """Check the attempts and the age alone, for a dispatch that needs no key because no effect is outstanding."""
    if measure_age(attempts, now) > profile.max_age:
        return WindowCheck("too_old", f"the first dispatch is older than {profile.max_age}")
    return _budget(attempts, profile)
