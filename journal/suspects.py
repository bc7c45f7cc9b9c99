"""Suspects: steps that ended twice with their process run one at a time, so that a third death names one alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta

from journal import clock
from journal.desk import QUARANTINE_STARTS, Desk
from journal.ops import Sleep, Steps

_POLL = timedelta(seconds=0.1)


def turn(desk: Desk, deaths: int) -> Steps[AbstractContextManager[None]]:
    """Wait until no other suspect runs in this process and return what keeps it so, for a `with`.

    A step that ended fewer than two times with its process waits for nobody. Nor does anyone wait longer than
    `max_wait`: a suspect that hangs must not stop the others for good.
    """
    if deaths < QUARANTINE_STARTS - 1:
        return nullcontext()
    deadline = clock.wall() + desk.max_wait
    while not desk.suspect.acquire(blocking=False):
        if desk.stopping() or clock.wall() > deadline:
            return nullcontext()
        yield Sleep(clock.wall() + _POLL, desk.stopping)
    return _released(desk.suspect)


@contextmanager
def _released(taken: threading.Lock) -> Iterator[None]:
    try:
        yield
    finally:
        taken.release()
