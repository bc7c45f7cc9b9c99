"""`Journal.serve`: one thread looks for messages and due tasks, and several threads run the handlers."""

from __future__ import annotations

import inspect
import logging
import signal
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from journal import codec, event_loop
from journal.errors import JournalFailed, StepHeld, StepkeeperError, StepUnwritten, TaskStop, UsageError, leaves
from journal.inbox.apply import Applied
from journal.models import TaskRow, WaitReason
from journal.runtime.context import JournalContext
from journal.runtime.task import Interrupted, Task, open_task
from journal.runtime.worker_pool import WorkerPool
from journal.settle.recovery import RecoveryReport
from journal.store.sql import intents, tasks

_log = logging.getLogger("journal")
_LOOK_SECONDS = 0.5
# A handler that blocks the shared event loop for this long is named in the log.
_BLOCKED_SECONDS = 1.0
_ALL = 1_000_000
# A full disk makes every errand in vain, and some ask a provider before they write.
_FULL_SECONDS = 5.0
# A step that is due later than this is scheduled instead of slept for: another task takes the place (law 9).
_SLEEP_IN_PLACE = timedelta(seconds=2)
# After SIGTERM a handler may finish its step within this time. A step that is cut short is recovered.
_GRACE_SECONDS = 4.0


class Server:
    """Runs every unfinished task that is queued, crashed, due or decided, until told to stop.

    Errands, which may wait for a provider, have hands of their own: what handlers can run does not wait for them.
    """

    def __init__(self, context: JournalContext, concurrency: int) -> None:
        if concurrency < 1:
            raise ValueError(f"serve: concurrency={concurrency} is not 1 or more.")
        self._context = context
        self._stopped = False
        self._wake = threading.Event()
        self._runs = WorkerPool(concurrency, failed=self._failed, done=self._wake.set)
        self._errands = WorkerPool(concurrency, failed=self._failed, done=self._wake.set)
        self._taken: deque[Applied] = deque()
        self._waiting: deque[tuple[str, Callable[[], object]]] = deque()
        self._settled: dict[str, str] = {}
        self._full_until = 0.0
        self._loop: event_loop.LoopThread | None = None
        self._blocker: str | None = None

    def run(self) -> None:
        """Recover, then serve until SIGTERM or SIGINT (in the main thread) or JournalFailed."""
        previous = self._catch_signals()
        self._context.max_wait = min(self._context.max_wait, _SLEEP_IN_PLACE)
        self._loop = event_loop.LoopThread()
        try:
            self._recover()
            while not self._stopped:
                self._look()
                self._name_blocker()
                self._wake.wait(_LOOK_SECONDS)
                self._wake.clear()
        finally:
            self._context.stopping = True
            deadline = time.monotonic() + _GRACE_SECONDS
            self._runs.wait_for_all(deadline)
            self._errands.wait_for_all(deadline)
            self._loop.close(max(deadline, time.monotonic() + _LOOK_SECONDS))
            for number, handler in previous.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        """Ask `run` to return; from any thread, never from a signal handler."""
        self._stopped = True
        self._wake.set()

    def _signalled(self, *_: object) -> None:
        # Nothing with a lock inside: a handler runs in the main thread, which may hold that lock and would wait for
        # itself for ever. No step begins from now on; the loop sees this within _LOOK_SECONDS.
        self._context.stopping = self._stopped = True

    def _recover(self) -> None:
        """Note the work that earlier boots left and that no run will do. Messages about it come first."""
        store = self._context.store
        due = {task.task_id for task in store.read(lambda tx: tasks.list_due_tasks(tx, _ALL))}
        roots = [self._root(task_id) for task_id, _ in store.read(intents.list_unresolved)]
        for task_id in dict.fromkeys(roots):
            # A step that an earlier boot held because of its clock, environment or code may be settled by this boot.
            if task_id not in due or not self._context.runs_by_itself(task_id):
                self._waiting.append((task_id, partial(self._context.recover_task, task_id)))

    def _look(self) -> None:
        try:
            # No message asks for this again, so the work stays listed here until it is an errand.
            self._taken += self._context.take_messages()
            while self._taken:
                self._waiting.append(self._errand(self._taken[0]))
                self._taken.popleft()
            self._settle_what_no_run_comes_by()
            due = self._due() if self._runs.free else []
        except sqlite3.OperationalError as error:
            # A full disk or a busy volume: nothing was lost, so look again in a moment.
            _log.warning("the journal cannot be used just now: %s", error)
            return
        # One hand at a time settles what belongs to one task.
        errands = len(self._waiting) if time.monotonic() >= self._full_until else 0
        for name, work in [self._waiting.popleft() for _ in range(errands)]:
            if self._runs.works_at(name) or not self._errands.start_work(name, partial(self._do, name, work)):
                self._waiting.append((name, work))
        for task in due:
            is_open = self._context.is_open(task.task_id) or self._context.has_open_branch(task.task_id)
            if not is_open and not self._errands.works_at(task.task_id):
                self._runs.start_work(task.task_id, partial(self._run_task, task))

    def _run_task(self, task: TaskRow) -> None:
        with event_loop.sharing(self._loop, task.task_id):
            run_task(self._context, task)

    def _name_blocker(self) -> None:
        """Say once which handler keeps the event loop from all the others."""
        blocker = None if self._loop is None else self._loop.find_blocker(_BLOCKED_SECONDS)
        if blocker is not None and blocker[0] != self._blocker:
            _log.warning(
                "task %s blocks the event loop that all async handlers share, at %s. Call what blocks in a thread"
                " (asyncio.to_thread), or make the handler a plain function.",
                *blocker,
            )
        self._blocker = None if blocker is None else blocker[0]

    def _settle_what_no_run_comes_by(self) -> None:
        """Settle the due intents of a script's task, or of one whose handler is gone: once for each due time."""
        for root, handler, at in self._context.store.read(intents.list_due):
            if handler not in self._context.handlers and self._settled.get(root) != at:
                self._settled[root] = at
                self._waiting.append((root, partial(self._context.recover_task, root)))

    def _do(self, name: str, work: Callable[[], object]) -> None:
        """Do an errand, again after a full disk: no message and no look comes by it a second time."""
        try:
            with event_loop.sharing(self._loop, name):
                work()
        except sqlite3.OperationalError:
            self._full_until = time.monotonic() + _FULL_SECONDS
            self._waiting.append((name, work))
            raise

    def _errand(self, applied: Applied) -> tuple[str, Callable[[], object]]:
        root = self._root(applied.task_id or "")
        # If a run settles the step, the errand only checks the status, which may go on beside the run.
        name = f"the status of {root}" if self._context.runs_by_itself(root) else root
        return name, partial(self._context.follow_message, applied, RecoveryReport())

    def _root(self, task_id: str) -> str:
        found = self._context.store.read(lambda tx: tasks.find_root(tx, task_id))
        return task_id if found is None else found.task_id

    def _due(self) -> list[TaskRow]:
        # Those that run already are among them.
        return self._context.store.read(lambda tx: tasks.list_due_tasks(tx, self._runs.free * 2 + self._runs.busy))

    def _failed(self, name: str, error: BaseException) -> None:
        if isinstance(error, JournalFailed):
            _log.critical("%s", error)
            self.stop()
            return
        # To settle it, to open it or to record its end: the task is unfinished on disk, and looked at again. An errand
        # that could not be written is among those that wait already, and is taken when this thread has ended.
        _log.error("work at %s stopped; it is unfinished\n%s", name, self._context.secrets.traceback(error))
        time.sleep(_LOOK_SECONDS)

    def _catch_signals(self) -> dict[int, Any]:
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {number: signal.signal(number, self._signalled) for number in (signal.SIGTERM, signal.SIGINT)}


def run_task(context: JournalContext, row: TaskRow) -> None:
    """Settle what is open of a submitted task, run its handler once, and record how that ended.

    Raises the error that kept the task from being settled or opened, or its end from being recorded.
    """
    current = context.store.read(lambda tx: tasks.find_task(tx, row.task_id))
    if current is None or current.status not in ("queued", "running", "waiting"):
        return  # it ended between the look and this start
    function = context.handlers.get(row.handler or "")
    if function is None:
        reason = WaitReason("no_handler", detail=row.handler)
        context.store.write(lambda tx: tasks.put_task_aside(tx, row.task_id, reason, None), sync=False)
        return
    # The pending steps of older boots in this task and its branches come first, from their stored bytes.
    try:
        context.recover_task(row.task_id)
    except (Exception, TaskStop):
        raise
    except BaseException as error:
        # What a tool's code does here counts like a handler's: it runs again after a pause that grows.
        _leave(context, open_task(context, row.task_id), error)
        return
    arguments: dict[str, Any] = codec.loads(current.input_json or "{}")
    task = open_task(context, row.task_id)
    try:
        if inspect.iscoroutinefunction(function):
            output = event_loop.run_coroutine(_call_async(task, function, arguments))
        else:
            output = function(task, **arguments)
            _refuse_unfinished(task, output)
    except BaseException as error:
        _leave(context, task, error)
    else:
        task.leave(None, output)


async def _call_async(task: Task, function: Any, arguments: dict[str, Any]) -> Any:
    task.take_over()
    try:
        output = await function(task, **arguments)
        _refuse_unfinished(task, output)
        return output
    finally:
        # The loop goes on without this handler, so what the handler leaves open must end here.
        await task.end_branches()


def _refuse_unfinished(task: Task, output: object) -> None:
    """Raise StepDropped or UsageError where the handler returned before all its work was done."""
    task.require_all_ended()
    if inspect.isawaitable(output) or inspect.isgenerator(output) or inspect.isasyncgen(output):
        raise UsageError(
            f"Task {task.task_id}: its handler returned {type(output).__name__}, which has done nothing yet.",
            hint="Declare the handler with `async def`, await what it calls, and return the whole output.",
        )


def _leave(context: JournalContext, task: Task, error: BaseException) -> None:
    if isinstance(error, Exception):
        # A failed branch makes a group cancel the others, in each run anew: what they had begun is finished here.
        context.finish_intents(task.task_id)
    task.leave(error)
    causes = leaves(error)
    for one in causes:
        if isinstance(one, JournalFailed):
            raise one
    ours = [one for one in causes if isinstance(one, StepkeeperError | TaskStop | Interrupted)]
    for one in ours:
        # A person reads why a tool raised without raising the level of the log.
        told = isinstance(one, StepUnwritten | StepHeld) or one.__cause__ is not None
        level = logging.WARNING if told else logging.INFO
        _log.log(level, "task %s: %s", task.task_id, context.secrets.hide(str(one)))
    if len(ours) < len(causes):
        ended = "failed" if isinstance(error, Exception) and not ours else "was left unfinished"
        # As text, because a traceback would show the texts of the handler's own errors.
        _log.error("task %s %s\n%s", task.task_id, ended, context.secrets.traceback(error))
