"""A limited number of threads, each known by the task it works on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class WorkerPool:
    """At most `limit` threads at a time, one for each name.

    `failed` is told in its thread of the exception, SystemExit too, that ended a piece of work; `done` is called after
    each.
    """

    def __init__(self, limit: int, *, failed: Callable[[str, BaseException], None], done: Callable[[], None]) -> None:
        self._limit = limit
        self._failed = failed
        self._done = done
        self._threads: dict[str, threading.Thread] = {}

    @property
    def busy(self) -> int:
        """The number of threads at work."""
        return len(self._threads)

    @property
    def free(self) -> int:
        """The number of threads that may still be started."""
        return self._limit - len(self._threads)

    def works_at(self, name: str) -> bool:
        """Whether one works at `name`."""
        return name in self._threads

    def start_work(self, name: str, work: Callable[[], object]) -> bool:
        """Begin the work in a thread; False, and nothing begun, where none is free or one works at `name` already."""
        if self.free <= 0 or name in self._threads:
            return False
        # Daemon threads: a handler stuck in a call must not keep a stopped process alive. It is recovered.
        thread = threading.Thread(target=self._run, args=(name, work), name=f"task {name}", daemon=True)
        self._threads[name] = thread
        thread.start()
        return True

    def wait_for_all(self, deadline: float) -> None:
        """Wait for all of them, until `deadline` (monotonic) at most."""
        for thread in list(self._threads.values()):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self, name: str, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            # A thread that SystemExit ends prints nothing by itself.
            self._failed(name, error)
        finally:
            self._threads.pop(name, None)
            self._done()
