"""`Journal.serve`: one thread looks after messages and due tasks, a few run the handlers."""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from journal import codec, steps, tasks
from journal.errors import JournalFailed, StepkeeperError, StepUnwritten
from journal.models import Task as TaskRow
from journal.task import Interrupted, Task

if TYPE_CHECKING:
    from journal.api import Journal

_log = logging.getLogger("journal")
_LOOK_SECONDS = 0.5
# A step that is due later than this is scheduled instead of slept for: another task takes the place (law 9).
_SLEEP_IN_PLACE = timedelta(seconds=2)
# How long handlers may finish the step they are in after SIGTERM; whatever is cut short is recovered.
_GRACE_SECONDS = 4.0


class Server:
    """Runs every unfinished task that is queued, crashed, due or decided, until told to stop."""

    def __init__(self, journal: Journal, concurrency: int) -> None:
        if concurrency < 1:
            raise ValueError(f"serve: concurrency={concurrency} is not 1 or more.")
        self._journal = journal
        self._concurrency = concurrency
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._threads: dict[str, threading.Thread] = {}
        self._recovering: list[str] = []

    def run(self) -> None:
        """Recover, then serve until SIGTERM or SIGINT (in the main thread) or JournalFailed."""
        previous = self._catch_signals()
        self._journal.max_wait = min(self._journal.max_wait, _SLEEP_IN_PLACE)
        try:
            self._recover()
            while not self._stop.is_set():
                self._look()
                self._wake.wait(_LOOK_SECONDS)
                self._wake.clear()
        finally:
            self._journal.stopping = True
            self._finish()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def stop(self, *_: object) -> None:
        """Ask `run` to return; from any thread, or as a signal handler."""
        self._stop.set()
        self._wake.set()

    def _recover(self) -> None:
        """Settle what the boots before left: beside each other, so that one slow provider delays only its own tasks."""
        self._journal.apply_inbox()
        unresolved = self._journal.store.read(steps.unresolved)
        for task_id in dict.fromkeys(task_id for task_id, _ in unresolved):
            root = self._journal.store.read(partial(tasks.root, task_id=task_id))
            if root is None or root.handler not in self._journal.handlers:
                # No handler's run will come by it.
                self._recovering.append(task_id)

    def _look(self) -> None:
        try:
            self._journal.apply_inbox()
            free = self._concurrency - len(self._threads)
            while free > 0 and self._recovering:
                task_id = self._recovering.pop(0)
                self._begin(task_id, partial(self._journal.recover_task, task_id))
                free -= 1
            if free <= 0:
                return
            due = self._journal.store.read(lambda tx: tasks.due(tx, self._concurrency * 2 + len(self._threads)))
        except sqlite3.OperationalError as error:
            # A full disk or a busy volume: nothing was lost, so look again in a moment.
            _log.warning("the journal cannot be used just now: %s", error)
            return
        for task in due:
            if free <= 0:
                break
            if task.task_id not in self._threads and not self._journal.is_open(task.task_id):
                self._begin(task.task_id, partial(run_task, self._journal, task))
                free -= 1

    def _begin(self, task_id: str, work: Callable[[], object]) -> None:
        # Daemon threads: a handler stuck in a call must not keep a stopped process alive. It is recovered.
        thread = threading.Thread(target=self._work, args=(task_id, work), name=f"task {task_id}", daemon=True)
        self._threads[task_id] = thread
        thread.start()

    def _work(self, task_id: str, work: Callable[[], object]) -> None:
        try:
            work()
        except JournalFailed as error:
            _log.critical("%s", error)
            self.stop()
        except Exception:
            # The task's own record of its end failed; it stays unfinished on disk and is run again.
            _log.exception("task %s could not be ended", task_id)
            time.sleep(_LOOK_SECONDS)
        finally:
            self._threads.pop(task_id, None)
            self._wake.set()

    def _finish(self) -> None:
        deadline = time.monotonic() + _GRACE_SECONDS
        for thread in list(self._threads.values()):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _catch_signals(self) -> dict[int, Any]:
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {number: signal.signal(number, self.stop) for number in (signal.SIGTERM, signal.SIGINT)}


def run_task(journal: Journal, row: TaskRow) -> None:
    """Run a submitted task's handler once, and record how that ended. Raises only what could not be recorded."""
    current = journal.store.read(lambda tx: tasks.find(tx, row.task_id))
    if current is None or current.status not in ("queued", "running", "waiting"):
        return  # it ended between the look and this start
    function = journal.handlers.get(row.handler or "")
    if function is None:
        text = f"missing: handler {row.handler!r} is not among this agent's handlers"
        journal.store.write(lambda tx: tasks.wait(tx, row.task_id, text, None), sync=False)
        return
    # What an older boot left of this task and its branches comes first, from the stored bytes, whatever the code says.
    journal.recover_task(row.task_id)
    arguments: dict[str, Any] = codec.loads(current.input_json or "{}")
    if inspect.iscoroutinefunction(function):
        asyncio.run(_run_async(journal, row.task_id, function, arguments))
        return
    task = journal.open_task(row.task_id)
    try:
        output = function(task, **arguments)
    except BaseException as error:
        _leave(task, error)
    else:
        task.leave(None, output)


async def _run_async(journal: Journal, task_id: str, function: Any, arguments: dict[str, Any]) -> None:
    task = journal.open_task(task_id)
    try:
        output = await function(task, **arguments)
    except BaseException as error:
        _leave(task, error)
    else:
        task.leave(None, output)


def _leave(task: Task, error: BaseException) -> None:
    task.leave(error)
    if isinstance(error, JournalFailed):
        raise error
    if isinstance(error, StepUnwritten):
        _log.warning("%s", error)
    elif isinstance(error, StepkeeperError | Interrupted):
        _log.info("task %s: %s", task.task_id, error)
    elif isinstance(error, Exception):
        _log.error("task %s failed", task.task_id, exc_info=error)
