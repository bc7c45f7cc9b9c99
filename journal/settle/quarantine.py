"""The queue of suspects: steps with two deaths run one at a time, so that a third death names one of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta

from journal import clock
from journal.effects import Program, Sleep
from journal.models import Step
from journal.settle.context import QUARANTINE_STARTS, SettleContext, waiting

_POLL = timedelta(seconds=0.1)
# After this time a suspect runs beside the one before it, because a suspect that hangs must not stop the others.
_LONGEST_WAIT = timedelta(seconds=60)


def take_turn(context: SettleContext, step: Step, deaths: int) -> Program[AbstractContextManager[None]]:
    """Wait until no other suspect runs in this process and return what keeps it so, for a `with`.

    A step that ended fewer than two times with its process does not wait. Raises StepWaiting where the process is
    stopping: the step is not begun.
    """
    if deaths < QUARANTINE_STARTS - 1:
        return nullcontext()
    deadline = clock.wall() + _LONGEST_WAIT
    while not context.suspect.acquire(blocking=False):
        if context.stopping():
            raise waiting(step, clock.wall())
        if clock.wall() > deadline:
            return nullcontext()
        yield Sleep(clock.wall() + _POLL, context.stopping)
    return _released(context.suspect)


@contextmanager
def _released(taken: threading.Lock) -> Iterator[None]:
    try:
        yield
    finally:
        taken.release()
