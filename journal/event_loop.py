"""Threads of an event loop that end with their process."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from journal.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")
# As many sync calls of one async handler block at a time; the journal's own writes wait among them.
MOST_THREADS = 32


class DaemonThreads(ThreadPoolExecutor):
    """A loop's default executor whose threads keep no stopped process alive.

    The interpreter's end joins the threads of the executor this is one of, which is a class because a loop takes no
    other; its threads and its queue are not used.
    """

    def __init__(self, limit: int = MOST_THREADS) -> None:
        super().__init__(limit)
        self._limit = limit
        self._given: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._free = threading.Semaphore(0)
        self._behind = 0  # calls that wait for a busy thread: the one that comes to them is not free before
        self._begun: list[threading.Thread] = []
        self._guard = threading.Lock()
        self._over = False

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `function` in a thread, as soon as one is free."""
        done: Future[T] = Future()
        with self._guard:
            if self._over:
                raise RuntimeError("these threads were shut down")
            if not (self._free.acquire(blocking=False) or self._begin()):
                self._behind += 1
            self._given.put(partial(_run, done, partial(function, *args, **kwargs)))
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take nothing more and, with `wait`, return when all that was given is done."""
        with self._guard:
            self._over = True
            self._given.put(None)
        for thread in self._begun if wait else ():
            thread.join()

    def _begin(self) -> bool:
        """Start one thread more; False where none may be, or none can be had beside those there are."""
        if len(self._begun) == self._limit:
            return False
        thread = threading.Thread(target=self._work, name=f"loop {len(self._begun)}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # A busy one comes to it: what a call came to must be written.
            if not self._begun:
                raise
            return False
        self._begun.append(thread)
        return True

    def _work(self) -> None:
        while (work := self._given.get()) is not None:
            work()
            del work
            with self._guard:
                if self._behind:
                    self._behind -= 1
                else:
                    self._free.release()
        # For the next one.
        self._given.put(None)


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, with threads that keep no stopped process alive. Raises UsageError where gevent took them over."""
    refuse_gevent()
    runner = asyncio.Runner()
    try:
        runner.get_loop().set_default_executor(DaemonThreads())
        return runner.run(coroutine)
    finally:
        # What it came to is told, also where no thread can be had to wait for the others.
        with contextlib.suppress(RuntimeError):
            runner.close()


def refuse_gevent() -> None:
    """Raise UsageError in a process whose threads gevent replaced: two event loops would share one thread there."""
    patched = sys.modules.get("gevent.monkey")
    if patched is not None and patched.is_module_patched("threading"):
        raise UsageError(
            "Async tools and handlers need asyncio alone: this process is patched by gevent.",
            hint="Make them plain functions, or do not call monkey.patch_all().",
        )


def refuse_other_loops() -> None:
    """Raise UsageError where an awaitable is awaited outside asyncio, for example by trio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "An async step is awaited outside asyncio.", hint="Run its task in asyncio; trio is not supported."
        ) from None


def _run(done: Future[Any], work: Callable[[], Any]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:
        done.set_exception(error)
    else:
        done.set_result(result)
