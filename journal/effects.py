"""The operations of a step. A step is a generator of them; `drive` or `drive_async` carries them out."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from journal import clock, event_loop
from journal.deferred_signals import DeferredSignals
from journal.store.transaction import Transaction
from journal.store.writer import Store

T = TypeVar("T")
Program = Generator["Operation", Any, T]
# A sleep looks this often for a message that wakes it, so a message is acted on within this time.
_WAKE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Write:
    """Run a change in a transaction. An `outcome` write is repeated until it is on disk."""

    store: Store
    change: Callable[[Transaction], Any]
    sync: bool = False
    outcome: bool = False

    def perform(self) -> Any:
        write = self.store.write_outcome if self.outcome else self.store.write
        return write(self.change, sync=self.sync)


@dataclass(frozen=True, slots=True)
class Read:
    """Look at the journal, outside any transaction."""

    store: Store
    look: Callable[[Transaction], Any]

    def perform(self) -> Any:
        return self.store.read(self.look)


@dataclass(frozen=True, slots=True)
class Invoke:
    """Call something outside the journal. `blocking` marks a sync function that async tasks run in a thread."""

    function: Callable[[], Any]
    blocking: bool = True


@dataclass(frozen=True, slots=True)
class Sleep:
    """Sleep until a time, or until `woken` says that something changed."""

    until: datetime
    woken: Callable[[], bool]


class NotCalled(asyncio.CancelledError):
    """A cancellation or an interrupt that arrived before the call it is thrown at: that call was surely not made."""


Operation = Write | Read | Invoke | Sleep


def drive(program: Program[T]) -> T:
    """Run a protocol to its end in this thread.

    An interrupt does not cut a write short: it arrives after it, and before the next call or sleep.
    """
    interrupts = DeferredSignals()
    try:
        operation = next(program)
        while True:
            try:
                value = _perform(operation, interrupts)
            except BaseException as error:
                operation = program.throw(error)
            else:
                operation = program.send(value)
    except NotCalled as error:
        raise error.__cause__ or error from None
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        # The step's outcome is on disk. An interrupt that waited for it is raised now, even if the step failed.
        interrupts.act()


def _perform(operation: Operation, interrupts: DeferredSignals) -> Any:
    if isinstance(operation, Write):
        # Until the next operation: what arrives on the way to it finds the protocol where it can be told.
        interrupts.put_off()
        return operation.perform()
    if isinstance(operation, Read):
        interrupts.give_back()
        return operation.perform()
    try:
        interrupts.act()
    except BaseException as error:
        raise NotCalled from error
    if isinstance(operation, Sleep):
        while (left := clock.slice_until(operation.until)) > 0 and not operation.woken():
            time.sleep(min(left, _WAKE_SECONDS))
        return None
    value = operation.function()
    return _finished(_awaited(value)) if _is_unfinished(value) else value


def _is_unfinished(value: Any) -> bool:
    return inspect.isawaitable(value) or isinstance(value, Future)


async def _awaited(value: Any) -> Any:
    """The outcome of a call. An awaitable is awaited first, because its work may not have begun."""
    while _is_unfinished(value):
        result = await (asyncio.wrap_future(value) if isinstance(value, Future) else value)
        if result is value:
            break
        value = result
    return value


def _finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return event_loop.run_coroutine(coroutine)
    # A loop that runs cannot be entered again: recovery in an async script, a sync step in an async handler.
    done: Future[Any] = Future()

    def run() -> None:
        try:
            done.set_result(context.run(event_loop.run_alone, coroutine))
        except BaseException as error:
            done.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=run, daemon=True).start()
    return done.result()


async def drive_async(program: Program[T]) -> T:
    """Run a protocol to its end in an event loop; what blocks runs in a thread.

    A cancellation, that of the loop's end too, does not cut a write or a thread short: it arrives after them, and
    before the next call or sleep.
    """
    cancelled: list[asyncio.CancelledError] = []
    try:
        operation = next(program)
        while True:
            try:
                if cancelled and not isinstance(operation, Write | Read):
                    raise NotCalled from cancelled.pop()
                value = await _perform_async(operation, cancelled)
            except BaseException as error:
                operation = program.throw(error)
            else:
                operation = program.send(value)
    except NotCalled as error:
        raise error.__cause__ or error from None
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        if cancelled:
            raise cancelled[0] from None


async def _perform_async(operation: Operation, cancelled: list[asyncio.CancelledError]) -> Any:
    if isinstance(operation, Write | Read):
        return await _in_thread(operation.perform, cancelled)
    if isinstance(operation, Sleep):
        while (left := clock.slice_until(operation.until)) > 0 and not operation.woken():
            await asyncio.sleep(min(left, _WAKE_SECONDS))
        return None
    if not operation.blocking:
        value = operation.function()
    else:
        value = await _in_thread(operation.function, cancelled)
    return await _awaited(value)


async def _in_thread(function: Callable[[], Any], cancelled: list[asyncio.CancelledError]) -> Any:
    # No asyncio task: the end of a loop cancels every task, and with it the work a thread has not begun.
    context = contextvars.copy_context()
    running = asyncio.get_running_loop().run_in_executor(None, context.run, function)
    while not running.done():
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError as error:
            # A thread cannot be stopped, so its end is awaited: otherwise its outcome would be unknown.
            cancelled.append(error)
        except BaseException:
            break
    return running.result()
