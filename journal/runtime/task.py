"""A task as its handler sees it: `run`, `ask`, `act`, `branch`."""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

from journal import codec, event_loop
from journal.effects import Program, drive, drive_async
from journal.errors import (
    Diverged,
    ForkedTask,
    JournalFailed,
    StepFailed,
    StepHeld,
    StepUnwritten,
    StepWaiting,
    TaskCancelled,
    TaskClosed,
    UnorderedStep,
    UsageError,
    leaves,
)
from journal.http.frozen_request import MissingReference
from journal.ids import check_task_id, check_text
from journal.reply import call_name
from journal.runtime.task_end import record_end, stored_end
from journal.steps.model_step import build_prompt, model_step
from journal.steps.model_tool_call import called_step
from journal.steps.task_run import TaskRun
from journal.steps.tool_step import tool_step
from journal.store.sql import tasks
from journal.tools import Tool, require_tool

if TYPE_CHECKING:
    from journal.runtime.journal import Journal

T = TypeVar("T")


class Interrupted(BaseException):
    """The process is stopping: the task takes no further step here. Never stored as an outcome."""


class Task:
    """One opening of a task. Program are numbered in the order they are asked for.

    Only the thread or asyncio task that opened it may ask for steps; `branch` gives others a child task of their own.
    """

    def __init__(self, journal: Journal, task_id: str, task_run: TaskRun) -> None:
        self.task_id = task_id
        self._journal = journal
        self._task_run = task_run
        self._owner = _current()
        self._next = 0
        self._ended_by: BaseException | None = None
        self._left = False
        self._branches: set[str] = set()
        task_run.is_closed = lambda: self._ended_by is not None or journal.stopping

    def run(self, tool: Callable[..., Any] | Tool, /, *args: Any, **kwargs: Any) -> Any:
        """Do the next step with a declared tool; its output, from the journal where it is there already.

        Returns an awaitable for an async tool. Raises InvalidArguments before anything is written, StepFailed,
        StepAbandoned, Diverged, and, when the outcome must wait, StepHeld, OutcomeUnknown or StepWaiting.
        """
        declared = require_tool(tool)
        registered = self._journal.tools.get(declared.name, declared)
        if registered is not declared:
            raise UsageError(
                f"run({declared.name}): this journal's tools hold another tool of that name.",
                hint="Recovery would run the other one. Give one of them name=.",
            )
        # Refused arguments take no index: a handler that goes on without them does so on a resume too.
        text = codec.dumps(declared.bind(args, kwargs))
        index = self._take_index(declared.name)
        return self._drive(tool_step(self._task_run, declared, index, text), asynchronous=declared.is_async)

    def ask(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Do the next step by calling a model: `function` returns a Reply. On resume nothing is called or paid.

        Returns an awaitable for an async function.
        """
        if isinstance(function, Tool):
            raise UsageError(f"ask({function.name}): it is a tool.", hint="Use task.run for tools.")
        prompt = build_prompt(function, args, kwargs)
        index = self._take_index(getattr(function, "__name__", "ask"))
        asynchronous = inspect.iscoroutinefunction(function)
        return self._drive(model_step(self._task_run, function, index, prompt), asynchronous=asynchronous)

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
        if self._journal.store.read(lambda tx: tasks.find_task(tx, child_id)) is None:
            self._task_run.context.secrets.refuse(name, f"Branch of {self.task_id}")
        self._branches.add(name)
        return self._journal.open_task(child_id, parent_id=self.task_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.leave(error)

    def leave(self, error: BaseException | None, output: object = None) -> None:
        """Record how this opening of the task ended: completed with `output`, waiting, failed or interrupted."""
        cause = self._ended_by or error
        self._ended_by = cause or TaskClosed(f"Task {self.task_id}: it was left.")
        self._left = True
        try:
            # Else nothing can be written, or not by us.
            if not any(isinstance(one, JournalFailed | ForkedTask) for one in leaves(cause)):
                stored = stored_end(self._task_run, cause, output)
                self._journal.store.write(lambda tx: record_end(tx, self._task_run, cause, stored), sync=False)
        finally:
            # Only now may another thread of this process open the task again.
            self._journal.forget_task(self.task_id)

    def _answer(self, call: Any) -> Any:
        """Run one call of a Reply; a tool that fails, or a call that is refused, is answered with StepFailed."""
        name = call_name(call)
        tool = self._journal.tools.get(name)
        index = self._take_index(name)
        try:
            return self._drive(
                called_step(self._task_run, tool, index, call), asynchronous=tool is not None and tool.is_async
            )
        except StepFailed as error:
            return error

    def _take_index(self, name: str) -> int:
        if _current() != self._owner:
            raise UnorderedStep(
                f"Task {self.task_id}: {name} was asked for by another thread or asyncio task than opened it.",
                hint="Give it a child task of its own: `with task.branch(name) as child: child.run(…)`.",
            )
        if self._journal.stopping:
            raise Interrupted(f"Task {self.task_id}: the process is stopping.")
        self._refuse_after_end()
        index, self._next = self._next, self._next + 1
        return index

    def _refuse_after_end(self) -> None:
        if self._ended_by is not None:
            why = str(self._ended_by) or type(self._ended_by).__name__
            raise TaskClosed(
                f"Task {self.task_id}: takes no further step in this process, after: {why}",
                hint="Let the error leave the handler; the task goes on when the step is settled.",
            )

    def _drive(self, steps: Program[T], *, asynchronous: bool) -> Any:
        if asynchronous:
            return self._drive_async(steps)
        with self._ending():
            return drive(self._watched(steps))

    async def _drive_async(self, steps: Program[T]) -> T:
        event_loop.refuse_other_loops()
        with self._ending():
            return await drive_async(self._watched(steps))

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Note a cancellation or interrupt, also one that came in the last write, when the step had ended well."""
        try:
            yield
        except (Exception, GeneratorExit):
            raise
        except BaseException as error:
            self._ended_by = self._ended_by or error
            raise

    def _watched(self, steps: Program[T]) -> Program[T]:
        if self._left:
            # The handler did not await this awaitable in time. Another run of the task may be at this step by now.
            raise TaskClosed(
                f"Task {self.task_id}: it was left before this step began; nothing was called.",
                hint="Await each step inside the task's `with`.",
            )
        try:
            return (yield from steps)
        except (StepHeld, StepWaiting, Diverged, MissingReference, TaskCancelled, JournalFailed) as error:
            self._ended_by = self._ended_by or error
            raise
        except sqlite3.Error as error:
            # The tools' own errors are StepFailed by now: this is the journal's, and no failure of the task.
            unwritten = StepUnwritten(
                f"Task {self.task_id}: a step could not be written to the journal, so nothing was called: {error}.",
                hint="Free disk space or mend the volume; the task goes on by itself.",
            )
            self._ended_by = self._ended_by or unwritten
            raise unwritten from error


def _current() -> tuple[object, object]:
    # The objects themselves: ids of ended threads and asyncio tasks are given out again.
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.current_thread(), task
