"""Event loops, and their threads, that end with their process."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar, cast

from journal.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")
# As many sync calls of one async handler block at a time; the journal's own writes wait among them.
MOST_THREADS = 32
_TICK_SECONDS = 0.25
_name: ContextVar[str] = ContextVar("name", default="")
_shared: ContextVar[LoopThread | None] = ContextVar("shared", default=None)


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


class LoopThread:
    """One event loop in a daemon thread, for the coroutines of many threads: they may share a client.

    Every asyncio task knows the name that its coroutine was given to `run` under.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(DaemonThreads())
        self._loop.set_task_factory(self._make_task)
        self._names: weakref.WeakKeyDictionary[asyncio.Task[Any], str] = weakref.WeakKeyDictionary()
        self._ended = False
        self._beat = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="event loop", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], name: str) -> T:
        """Run the coroutine to its end; from any thread but the loop's own."""

        async def named() -> T:
            _name.set(name)
            self._names[cast("asyncio.Task[Any]", asyncio.current_task())] = name
            return await coroutine

        try:
            return asyncio.run_coroutine_threadsafe(named(), self._loop).result()
        except CancelledError as error:
            # Between threads a cancellation is told by an Exception, which it must not become.
            raise asyncio.CancelledError from error

    def find_blocker(self, longest: float) -> tuple[str, str] | None:
        """The name that has kept the loop from turning for `longest` seconds, and the line it is at; None if none."""
        if time.monotonic() - self._beat < longest:
            return None
        task = asyncio.current_task(self._loop)
        frame = sys._current_frames().get(self._thread.ident or 0)
        place = "" if frame is None else "".join(traceback.format_stack(frame)[-1:]).strip()
        return ("" if task is None else self._names.get(task, "")), place

    def close(self, deadline: float) -> None:
        """Cancel what still runs, end the loop, and wait for it until `deadline` (monotonic) at most."""

        async def end() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for other in others:
                other.cancel()
            if others:
                await asyncio.wait(others, timeout=max(0.0, deadline - time.monotonic()))
            await self._loop.shutdown_asyncgens()

        # A handler that blocks the loop lets nothing end; its thread keeps no stopped process alive.
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(end(), self._loop).result(max(0.0, deadline - time.monotonic()))
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._tick()
        while not self._ended:
            # An exit in any asyncio task leaves the loop too; the task that raised it has it as its outcome.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()
        self._loop.close()

    def _stop(self) -> None:
        self._ended = True
        self._loop.stop()

    def _tick(self) -> None:
        self._beat = time.monotonic()
        self._loop.call_later(_TICK_SECONDS, self._tick)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
        self._names[task] = _name.get()
        return task


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the loop that `sharing` names, else in one of its own."""
    shared = _shared.get()
    return run_alone(coroutine) if shared is None else shared.run(coroutine, _name.get())


@contextlib.contextmanager
def sharing(loop: LoopThread | None, name: str) -> Iterator[None]:
    """In this thread, `run_coroutine` uses the loop, under the name."""
    tokens = _shared.set(loop), _name.set(name)
    try:
        yield
    finally:
        _shared.reset(tokens[0])
        _name.reset(tokens[1])


def run_alone(coroutine: Coroutine[Any, Any, T]) -> T:
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
