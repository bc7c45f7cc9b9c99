"""A task as its handler sees it: `run`, `ask`, `act`, `branch`."""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from journal import codec, event_loop
from journal.effects import Program, drive, drive_async
from journal.errors import (
    ForkedTask,
    JournalFailed,
    StepDropped,
    StepFailed,
    StepUnwritten,
    TaskClosed,
    TaskStop,
    UnorderedStep,
    UsageError,
    leaves,
)
from journal.ids import check_task_id, check_text
from journal.reply import call_name
from journal.runtime.context import JournalContext
from journal.runtime.siblings import Siblings
from journal.runtime.task_end import dump_end, record_end
from journal.steps.model_step import build_prompt, model_step
from journal.steps.model_tool_call import called_step
from journal.steps.task_run import TaskRun
from journal.steps.tool_step import tool_step
from journal.store.sql import tasks
from journal.tools import Tool, refuse_generator, require_tool

T = TypeVar("T")
_POLL_SECONDS = 0.02
# How long an asyncio task that is cancelled with its branch may take to end.
_END_SECONDS = 5.0


class Interrupted(BaseException):
    """The process is stopping: the task takes no further step here. Never stored as an outcome."""


def open_task(context: JournalContext, task_id: str, *, parent: Task | None = None) -> Task:
    """Open a task or a branch: one opening at a time in this process. Raises StepUnwritten where the disk refuses."""
    try:
        task_run = context.begin_run(task_id, parent_id=None if parent is None else parent.task_id)
    except sqlite3.Error as error:
        raise _explain_unwritten(f"Task {task_id}: it could not be opened", error) from error
    return Task(context, task_run, parent=parent)


class Task:
    """One opening of a task. Steps are numbered in the order they are asked for.

    Only the thread or asyncio task that opened it may ask for steps; `branch` gives others a child task of their own.
    A TaskStop or a cancellation ends the numbering of this task and of each task it is a branch of, whatever was caught
    in between. Other branches go on.
    """

    def __init__(self, context: JournalContext, task_run: TaskRun, *, parent: Task | None = None) -> None:
        self.task_id = task_run.task_id
        self._context = context
        self._task_run = task_run
        self._parent = parent
        self._siblings: Siblings = Siblings() if parent is None else parent._siblings
        self._owner = _current()
        self._next = 0
        self._asked: dict[int, str] = {}  # steps without an end, by index
        self._stops: list[BaseException] = []
        self._stops_below: list[BaseException] = []
        self._left = False
        self._branches: dict[str, Task | None] = {}
        task_run.is_closed = lambda: bool(self._stops) or context.stopping
        self._siblings.note_opened(self, self._owner)

    def run(self, tool: Callable[..., Any] | Tool, /, *args: Any, **kwargs: Any) -> Any:
        """Do the next step with a declared tool; its output, from the journal where it is there already.

        Returns an awaitable for an async tool. Raises InvalidArguments before anything is written, StepFailed,
        StepAbandoned, Diverged, and, when the outcome must wait, StepHeld, OutcomeUnknown or StepWaiting.
        """
        declared = require_tool(tool)
        registered = self._context.tools.get(declared.name, declared)
        if registered is not declared:
            raise UsageError(
                f"run({declared.name}): this journal's tools hold another tool of that name.",
                hint="Recovery would run the other one. Give one of them name=.",
            )
        # Refused arguments take no index: a handler that goes on without them does so on a resume too.
        text = codec.dumps(declared.bind(args, kwargs))
        index = self._take_index(declared.name)
        program = tool_step(self._task_run, declared, index, text)
        return self._drive(program, index, asynchronous=declared.is_async)

    def ask(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Do the next step by calling a model: `function` returns a Reply. On resume nothing is called or paid.

        Returns an awaitable for an async function.
        """
        if isinstance(function, Tool):
            raise UsageError(f"ask({function.name}): it is a tool.", hint="Use task.run for tools.")
        refuse_generator(function)
        prompt = build_prompt(function, args, kwargs)
        index = self._take_index(getattr(function, "__name__", "ask"))
        program = model_step(self._task_run, function, index, prompt)
        return self._drive(program, index, asynchronous=inspect.iscoroutinefunction(function))

    def act(self, choose: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """`ask(choose)`, then `run` each call of its Reply. Returns the outputs in the order of the calls.

        A call whose tool is unknown or whose arguments are refused commits its step as failed; that and a tool that
        fails stand in the result as StepFailed, so that every call has an answer. The model is not asked again.
        Returns an awaitable when `choose` is async; then async tools run one after the other too.
        """
        if inspect.iscoroutinefunction(choose):
            return self._act_async(choose, args, kwargs)
        reply = self.ask(choose, *args, **kwargs)
        return [self._finished(self._answer(call)) for call in reply.calls]

    def _finished(self, output: Any) -> Any:
        """The output itself, also of an async tool that a handler without an event loop acts with."""
        if not inspect.iscoroutine(output):
            return output
        try:
            if _current()[1] is not None:
                raise UsageError(
                    f"Task {self.task_id}: act met an async tool inside an event loop.",
                    hint="Make the function that chooses async too, and await act.",
                )
            return event_loop.run_coroutine(output)
        except StepFailed as error:
            return error
        finally:
            output.close()

    async def _act_async(self, choose: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        reply = await self.ask(choose, *args, **kwargs)
        outputs = []
        for call in reply.calls:
            try:
                output = self._answer(call)
                outputs.append(await output if inspect.isawaitable(output) else output)
            except StepFailed as error:
                outputs.append(error)
        return outputs

    def branch(self, name: str) -> Task:
        """Open the child task `<task_id>/<name>` with steps of its own, for this thread or asyncio task.

        Use it with `with`. Raises TaskClosed after a step that must wait, as `run` does. Raises UsageError for a name
        that this run of the task used before, and InvalidArguments for a new name that holds a credential.
        """
        self._refuse_after_end()
        check_text(name, "Branch")
        if not name or name in self._branches:
            raise UsageError(
                f"Branch {name!r} of {self.task_id}: names are not empty and used once.", hint="Number the branches."
            )
        child_id = f"{self.task_id}/{name}"
        check_task_id(child_id)
        try:
            is_new = self._context.store.read(lambda tx: tasks.find_task(tx, child_id)) is None
            if is_new:
                self._context.secrets.refuse(name, f"Branch of {self.task_id}")
            self._branches[name] = None
            self._branches[name] = child = open_task(self._context, child_id, parent=self)
        except sqlite3.Error as error:
            unwritten = _explain_unwritten(f"Task {child_id}: it could not be looked up", error)
            self._stop(unwritten)
            raise unwritten from error
        except TaskStop as error:
            self._stop(error)
            raise
        return child

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            try:
                self.require_all_ended()
            except StepDropped as dropped:
                self.leave(dropped)
                raise
        self.leave(error)

    def take_over(self) -> None:
        """Let the thread or asyncio task that calls this ask for the steps from now on."""
        self._owner = _current()
        self._siblings.note_opened(self, self._owner)

    async def end_branches(self) -> None:
        """Let the steps under way in open branches finish, then cancel the asyncio tasks that work in them."""
        self._left = True
        while self._siblings.has_step() and not self._context.stopping:
            await asyncio.sleep(_POLL_SECONDS)
        owners = {owner for owner in self._list_asyncio_owners() if owner is not asyncio.current_task()}
        for owner in owners:
            owner.cancel()
        if owners:
            await asyncio.wait(owners, timeout=_END_SECONDS)

    def _list_asyncio_owners(self) -> list[asyncio.Task[Any]]:
        found = []
        for child in self._branches.values():
            if child is not None and not child._left:
                found += child._list_asyncio_owners()
                if isinstance(child._owner[1], asyncio.Task):
                    found.append(child._owner[1])
        return found

    def require_all_ended(self) -> None:
        """Raise StepDropped where a step that was asked for has no end, or a branch is open still."""
        if self._stops or self._stops_below:
            return
        if self._asked:
            index, name = min(self._asked.items())
            raise StepDropped(
                f"Step {index} of {self.task_id} ({name}): it was asked for and not awaited to its end.",
                hint="Await what task.run and task.ask return for an async function.",
            )
        opened = [name for name, child in self._branches.items() if child is not None and not child._left]
        if opened:
            raise StepDropped(
                f"Branch {opened[0]!r} of {self.task_id}: it is still open.",
                hint="Wait for the thread or asyncio task that works in it before the handler ends.",
            )

    def leave(self, error: BaseException | None, output: object = None) -> None:
        """Record how this opening of the task ended: completed with `output`, waiting, failed or interrupted."""
        if isinstance(error, StepDropped):
            self._stop(error)
        self._left = True
        causes = self._find_causes(error)
        try:
            # Else nothing can be written, or not by us.
            if not any(isinstance(cause, JournalFailed | ForkedTask) for cause in causes):
                stored = dump_end(
                    self._task_run, self._stops[0] if self._stops else error or next(iter(causes), None), output
                )
                self._context.store.write(lambda tx: record_end(tx, self._task_run, causes, stored), sync=False)
        finally:
            # Only now may another thread of this process open the task again.
            self._context.forget_run(self.task_id)
            self._siblings.note_stopped(self)

    def _find_causes(self, error: BaseException | None) -> list[BaseException]:
        """Why this opening ended: an own stop before a branch's, and both before the error that came of them.

        What was only cancelled, by a group for example, has no reason of its own where another is known.
        """
        stops = [*self._stops, *self._stops_below]
        return (
            [stop for stop in stops if isinstance(stop, Exception | TaskStop)]
            or self._stops
            or leaves(error)
            or self._stops_below
        )

    def _answer(self, call: Any) -> Any:
        """Run one call of a Reply; a tool that fails, or a call that is refused, is answered with StepFailed."""
        name = call_name(call)
        tool = self._context.tools.get(name)
        index = self._take_index(name)
        program = called_step(self._task_run, tool, index, call)
        try:
            return self._drive(program, index, asynchronous=tool is not None and tool.is_async)
        except StepFailed as error:
            return error

    def _take_index(self, name: str) -> int:
        if _current() != self._owner:
            unordered = UnorderedStep(
                f"Task {self.task_id}: {name} was asked for by another thread or asyncio task than opened it.",
                hint="Give it a child task of its own: `with task.branch(name) as child: child.run(…)`.",
            )
            self._stop(unordered)
            raise unordered
        if self._context.stopping:
            raise Interrupted(f"Task {self.task_id}: the process is stopping.")
        self._refuse_after_end(*self._stops_below)
        index, self._next = self._next, self._next + 1
        self._asked[index] = name
        return index

    def _refuse_after_end(self, *below: BaseException) -> None:
        """Raise TaskClosed where this task has stopped, or any of the tasks it is a branch of was left.

        `below`: the stops of branches, after which this task itself takes no step. It may still open other branches.
        """
        stopped = [*self._stops, *below]
        if stopped:
            why = str(stopped[0]) or type(stopped[0]).__name__
            raise TaskClosed(
                f"Task {self.task_id}: takes no further step in this process, after: {why}",
                hint="Let the error leave the handler; the task goes on when the step is settled.",
            )
        opening: Task | None = self
        while opening is not None:
            if opening._left:
                what = "it" if opening is self else f"{opening.task_id}, of which it is a branch,"
                raise TaskClosed(
                    f"Task {self.task_id}: {what} was left, so it takes no further step.",
                    hint="Take every step inside the task's `with`, and wait for its threads and asyncio tasks.",
                )
            opening = opening._parent

    def _stop(self, error: BaseException) -> None:
        """From now on this task, and each that it is a branch of, takes no further step in this process."""
        opening: Task | None = self
        while opening is not None:
            self._siblings.note_stopped(opening)
            (opening._stops if opening is self else opening._stops_below).append(error)
            opening = opening._parent

    def _drive(self, program: Program[T], index: int, *, asynchronous: bool) -> Any:
        if asynchronous:
            return self._drive_async(program, index)
        try:
            with self._ending(index):
                return drive(self._watched(program))
        except TaskStop:
            if _current()[1] is None:
                # In a thread whose event loop runs, the siblings that it would wait for could not go on.
                self._siblings.wait_until_rest(self._owner, self._is_alone)
            raise

    async def _drive_async(self, program: Program[T], index: int) -> T:
        event_loop.refuse_other_loops()
        try:
            with self._ending(index):
                return await drive_async(self._watched(program))
        except TaskStop:
            await self._siblings.wait_until_rest_async(self._owner, self._is_alone)
            raise

    def _is_alone(self) -> bool:
        """Whether nothing is to be waited for: no branch was opened, or the process is stopping."""
        return self._context.stopping or self._left or (self._parent is None and not self._branches)

    @contextmanager
    def _ending(self, index: int) -> Iterator[None]:
        """Note the end of a step, and a cancellation or interrupt, also one that came after its last write."""
        with self._siblings.step():
            try:
                yield
            except GeneratorExit:
                raise
            except (Exception, TaskStop):
                self._asked.pop(index, None)
                raise
            except BaseException as error:
                self._asked.pop(index, None)
                self._stop(error)
                raise
            self._asked.pop(index, None)

    def _watched(self, program: Program[T]) -> Program[T]:
        if self._left:
            # The handler did not await this awaitable in time. Another run of the task may be at this step by now.
            raise TaskClosed(
                f"Task {self.task_id}: it was left before this step began; nothing was called.",
                hint="Await each step inside the task's `with`.",
            )
        try:
            return (yield from program)
        except (TaskStop, JournalFailed) as error:
            self._stop(error)
            raise
        except sqlite3.Error as error:
            # The tools' own errors are StepFailed by now: this is the journal's, and no failure of the task.
            unwritten = _explain_unwritten(f"Task {self.task_id}: a step could not be written to the journal", error)
            self._stop(unwritten)
            raise unwritten from error


def _explain_unwritten(what: str, error: sqlite3.Error) -> StepUnwritten:
    return StepUnwritten(
        f"{what}, so nothing was called: {error}.",
        hint="Free disk space or mend the volume; the task goes on by itself.",
    )


def _current() -> tuple[object, object]:
    # The objects themselves: ids of ended threads and asyncio tasks are given out again.
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.current_thread(), task
