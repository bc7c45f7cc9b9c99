"""A task and its branches as they are open in this process: work that goes on beside a branch that must wait."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# A pool's thread or a semaphore may just be handing its place to a branch that has not begun.
_HANDOVER_SECONDS = 0.25
# A sibling that begins no step for this long may wait for the very branch that must wait.
_PATIENCE_SECONDS = 5.0
_POLL_SECONDS = 0.02


class Siblings:
    """Counts the openings of one task and its branches, and their steps under way.

    An error that leaves a branch makes an asyncio.TaskGroup cancel the others, and a pool drop what it has not begun.
    So the error of a branch that must wait is kept back until the other branches have done what they can.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._going: dict[object, object] = {}
        self._steps = 0
        self._changed = time.monotonic()

    def note_opened(self, opening: object, owner: object) -> None:
        """The opening may take steps; `owner` is the thread or asyncio task that asks for them."""
        with self._lock:
            self._going[opening] = owner
            self._changed = time.monotonic()

    def note_stopped(self, opening: object) -> None:
        """The opening takes no further step, or was left."""
        with self._lock:
            self._going.pop(opening, None)
            self._changed = time.monotonic()

    @contextmanager
    def step(self) -> Iterator[None]:
        """One step is under way."""
        self._count_step(1)
        try:
            yield
        finally:
            self._count_step(-1)

    def wait_until_rest(self, owner: object, given_up: Callable[[], bool]) -> None:
        """Return when no opening of another owner goes on. Not for a thread whose event loop runs those."""
        while not (self._rests(owner) or given_up()):
            time.sleep(_POLL_SECONDS)

    async def wait_until_rest_async(self, owner: object, given_up: Callable[[], bool]) -> None:
        """`wait_until_rest` for an asyncio task."""
        while not (self._rests(owner) or given_up()):
            await asyncio.sleep(_POLL_SECONDS)

    def has_step(self) -> bool:
        """Whether a step of any opening is under way."""
        return self._steps > 0

    def _count_step(self, more: int) -> None:
        with self._lock:
            self._steps += more
            self._changed = time.monotonic()

    def _rests(self, owner: object) -> bool:
        with self._lock:
            if self._steps > 0:
                return False
            others = any(other != owner for other in self._going.values())
            return time.monotonic() - self._changed >= (_PATIENCE_SECONDS if others else _HANDOVER_SECONDS)
