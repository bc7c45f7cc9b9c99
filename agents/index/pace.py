"""How many rows a slice of reading takes, so that it stays well below the half second that watch promises."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

AIM = 0.2  # seconds of a slice: the machine may be busy with other work
FIRST = 50
MOST = 1000


class Pace:
    """The rows of the next slice: more after a quick one, fewer after a slow one."""

    def __init__(self) -> None:
        self.rows = FIRST

    @contextmanager
    def slice(self) -> Iterator[None]:
        """Measure one slice that took `rows` rows."""
        started = time.monotonic()
        yield
        self.rows = next_rows(self.rows, time.monotonic() - started)


def next_rows(rows: int, seconds: float) -> int:
    """The rows of the slice after one that took `seconds` for `rows`. Pure."""
    return max(1, min(MOST, int(rows * min(2.0, AIM / max(seconds, 0.001)))))
