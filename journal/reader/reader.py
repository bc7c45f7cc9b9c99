"""The reader of one journal file: it opens the file, answers questions from one snapshot, and closes it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection
from datetime import datetime
from functools import partial, wraps
from types import FunctionType
from typing import Any, TypeVar

from journal.models import Attempt, Boot, Decision, Evidence, FrozenRequest, ModelCall, Run, Step, TaskRow
from journal.reader import changes, foreign, native, payloads, process, snapshot
from journal.reader.changes import Changes
from journal.reader.dialects import Dialect
from journal.reader.file_state import JournalState, inspect
from journal.reader.header import read_header, require_readable
from journal.reader.open import BUDGET, read_journal
from journal.reader.paging import Page
from journal.reader.snapshot import IntentSnapshot, StepSnapshot, TaskSnapshot
from journal.reader.stat import check_path

T = TypeVar("T")
_INTEGER_LIMIT = 2**63


R = TypeVar("R", bound=type)


def _answers_apart(reader: R) -> R:
    """Let every question of the class be answered by another process, in a process that reads apart."""

    def apart(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def ask(self: Reader, *arguments: object, **named: object) -> Any:
            if not process.is_apart():
                return method(self, *arguments, **named)
            asked = (self.path, self._budget, self._root_is_owner, name, arguments, named)
            return process.run(self.path, self._budget, _answer, *asked)

        return ask

    for name, method in list(vars(reader).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(reader, name, apart(name, method))
    return reader


def _answer(
    path: str, budget: float, root_is_owner: bool | None, name: str, arguments: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    return getattr(Reader(path, budget=budget, root_is_owner=root_is_owner), name)(*arguments, **named)


@_answers_apart
class Reader:
    """Reads one journal without leaving a trace on it or slowing its agent.

    `budget` is the wall-clock time in seconds that one method may take. Methods raise JournalUnreadable, its `kind`
    naming the reason (docs/reference/journals.md), when the file cannot be read; no connection outlives a method. In a
    process that reads apart (`process.read_apart`) another process does the reading, and is killed when it hangs.
    """

    __slots__ = ("_budget", "_root_is_owner", "path")

    def __init__(
        self, path: str | os.PathLike[str], *, budget: float = BUDGET, root_is_owner: bool | None = None
    ) -> None:
        # Absolute, so that a later chdir leads nowhere else; links are followed anew each time.
        name = os.fspath(path)
        self.path = name if os.path.isabs(name) else os.path.join(os.getcwd(), name)
        self._budget = budget
        self._root_is_owner = root_is_owner

    @property
    def state(self) -> JournalState:
        """The state of the file now; never raises."""
        look = partial(inspect, self.path, root_is_owner=self._root_is_owner, budget=self._budget)
        return process.run(self.path, self._budget, look)

    def tasks(
        self, *, after: str | None = None, limit: int = 100, status: str | None = None, text: str | None = None
    ) -> Page[TaskRow]:
        """Tasks, newest first, without input and output. `text` is looked for in task id and handler.

        `after` is a page's `next_cursor`; UsageError for any other text.
        """
        return self._read(
            lambda c: native.list_tasks(c, after=after, limit=limit, status=status, text=text),
            lambda c, dialect: foreign.list_tasks(c, dialect, after=after, limit=limit, status=status, text=text),
        )

    def task(self, task_id: str, *, cap: int | None = payloads.CAP) -> TaskRow | None:
        """One task with input, output and error; without input and output where `cap` is None.

        None where there is no such task.
        """
        if not _is_text(task_id):
            return None
        return self._read(
            lambda c: native.find_task(c, task_id, cap=cap),
            lambda c, dialect: next(iter(foreign.derive_tasks(c, dialect, task_id=task_id)), None),
        )

    def children(self, task_id: str, *, limit: int = 1000) -> list[TaskRow]:
        """The task's branches, oldest first."""
        if not _is_text(task_id):
            return []
        return self._read(lambda c: native.list_branches(c, [task_id], limit=limit), lambda c, dialect: [])

    def runs(self, task_id: str, *, limit: int = 1000) -> list[Run]:
        """Each opening of the task by a process, in order; the newest `limit` of them."""
        if not _is_text(task_id):
            return []
        return self._read(lambda c: native.list_runs(c, [task_id], limit=limit), lambda c, dialect: [])

    def steps(self, task_id: str, *, after: int = -1, limit: int = 500, cap: int | None = None) -> list[Step]:
        """Steps past index `after`, in order, without payloads. Rows with an odd index come first, as index -1.

        With `cap` each step carries its payloads, as `step` reads them.
        """
        if not _is_text(task_id) or not _is_integer(after):
            return []
        return self._read(
            lambda c: native.list_steps(c, task_id, after=after, limit=limit, cap=cap),
            lambda c, dialect: foreign.list_steps(c, dialect, task_id, after=after, limit=limit, cap=cap),
        )

    def step(self, task_id: str, index: int, *, cap: int = payloads.CAP) -> Step | None:
        """One step with its payloads. Of one over `cap` bytes only the beginning, named in `previewed`."""
        if not _is_text(task_id) or not _is_integer(index):
            return None
        return self._read(
            lambda c: native.find_step(c, task_id, index, cap=cap),
            lambda c, dialect: foreign.find_step(c, dialect, task_id, index, cap=cap),
        )

    def load_task(
        self,
        task_id: str,
        *,
        after: int | None = -1,
        limit: int,
        most_branches: int = 0,
        named: Collection[native.Place] = (),
    ) -> TaskSnapshot:
        """All that a task's page shows: steps past index `after`; None stands for the newest steps.

        The first page and the newest have the branches below the task. `named` are further steps to read, by their
        places.
        """
        if not _is_text(task_id) or not (after is None or _is_integer(after)):
            return TaskSnapshot()
        return self._read(
            lambda c: snapshot.load_task(
                c,
                task_id,
                after=after,
                limit=limit,
                most_branches=most_branches,
                named=named,
            ),
            lambda c, dialect: snapshot.load_foreign_task(
                c, dialect, task_id, after=-1 if after is None else after, limit=limit
            ),
        )

    def load_step(
        self,
        task_id: str,
        index: int,
        *,
        cap: int = payloads.CAP,
        request_cap: int = payloads.CAP,
    ) -> StepSnapshot:
        """All that a step's page shows."""
        if not _is_text(task_id) or not _is_integer(index):
            return StepSnapshot()
        return self._read(
            lambda c: snapshot.load_step(c, task_id, index, cap=cap, request_cap=request_cap),
            lambda c, dialect: snapshot.load_foreign_step(c, dialect, task_id, index, cap=cap),
        )

    def load_pending(self, *, after: str | None = None, limit: int = 100) -> Page[IntentSnapshot]:
        """One page of the pending steps of all tasks, least recently changed first, with what recovery decides by.

        `after` is a page's `next_cursor`. A step that changes between two pages is met again, never missed. A journal
        of another maker gives its first `limit` steps and no further page.
        """

        def own(connection: sqlite3.Connection) -> Page[IntentSnapshot]:
            page = native.list_pending(connection, after=after, limit=limit)
            return Page(tuple(snapshot.load_intents(connection, page.items)), page.next_cursor)

        return self._read(
            own,
            lambda c, dialect: Page(tuple(map(IntentSnapshot, foreign.list_pending(c, dialect, limit=limit)))),
        )

    def load_intents(self, places: Collection[native.Place]) -> list[IntentSnapshot]:
        """The steps of ours at these places that there are, with what recovery decides about them by."""
        return self._read(
            lambda c: snapshot.load_intents(c, native.find_steps(c, places)),
            lambda c, dialect: [],
        )

    def load_tasks(self, task_ids: Collection[str]) -> list[TaskRow]:
        """The tasks of ours of these ids that there are, with their errors, without input and output."""
        return self._read(lambda c: native.find_tasks(c, task_ids), lambda c, dialect: [])

    def load_steps(self, places: Collection[native.Place]) -> list[Step]:
        """The steps of ours at these places that there are, without payloads."""
        return self._read(lambda c: native.find_steps(c, places), lambda c, dialect: [])

    def stored(self, task_id: str, index: int, name: payloads.Name) -> bytes | None:
        """All bytes of one payload exactly as they are stored; None where there is none.

        JournalUnreadable (`too_big`) for one that is longer than an output may be: never a part of it.
        """
        if not _is_text(task_id) or not _is_integer(index):
            return None
        return self._read(
            lambda c: native.read_stored_bytes(c, task_id, index, name),
            lambda c, dialect: foreign.read_stored_bytes(c, dialect, task_id, index, name),
        )

    def attempts(self, task_id: str, index: native.Steps = None) -> list[Attempt]:
        """Every dispatch of a step (with its output), or of a range or all of a task's steps (without)."""
        return self._history(native.list_attempts, task_id, index)

    def evidence(self, task_id: str, index: native.Steps = None) -> list[Evidence]:
        """Every status answer about a step (with its output), or about all steps of a task (without)."""
        return self._history(native.list_evidence, task_id, index)

    def decisions(self, task_id: str, index: native.Steps = None) -> list[Decision]:
        """The decisions about a step, or about a task and all its steps, oldest first."""
        return self._history(native.list_decisions, task_id, index)

    def model_calls(self, task_id: str, index: native.Steps = None) -> list[ModelCall]:
        """Every provider response of a model step, or of a range or all of a task's steps."""
        return self._history(native.list_model_calls, task_id, index)

    def by_decision(self, message_id: str) -> Decision | None:
        """The decision this message became; None while it has not been applied."""
        if not _is_text(message_id):
            return None
        return self._read(lambda c: native.find_decision(c, message_id), lambda c, dialect: None)

    def request(self, task_id: str, index: int, *, cap: int = payloads.CAP) -> FrozenRequest | None:
        """The step's frozen HTTP request; None for a Python tool's. A body over `cap` is cut: see `body_bytes`."""
        if not _is_text(task_id) or not _is_integer(index):
            return None
        return self._read(lambda c: native.find_request(c, task_id, index, cap=cap), lambda c, dialect: None)

    def sent_with(self, task_id: str, index: int, attempt: int) -> dict[str, str]:
        """The marks of an attempt's variables, by name, where those are others than the request was made with."""
        if not _is_text(task_id) or not _is_integer(index):
            return {}
        return self._read(lambda c: native.find_sent_marks(c, task_id, index, attempt), lambda c, dialect: {})

    def profile_json(self, task_id: str, index: int) -> str | None:
        """The provider profile frozen with the step, as JSON text."""
        if not _is_text(task_id) or not _is_integer(index):
            return None
        return self._read(
            lambda c: native.find_profiles(c, [(task_id, index)]).get((task_id, index)), lambda c, dialect: None
        )

    def pending(self, *, limit: int = 1000) -> list[Step]:
        """Pending steps of all tasks without payloads, least recently changed first."""
        return self._read(
            lambda c: list(native.list_pending(c, limit=limit).items),
            lambda c, dialect: foreign.list_pending(c, dialect, limit=limit),
        )

    def diverged(self, *, limit: int = 1000) -> list[Step]:
        """The steps instead of which the code of a waiting task asks for others, without payloads."""
        return self._read(lambda c: native.list_diverged(c, limit=limit), lambda c, dialect: [])

    def boots(self, *, limit: int = 1000) -> list[Boot]:
        """The newest `limit` takings of the writer's lock, in order."""
        return self._read(lambda c: native.list_boots(c, limit=limit), lambda c, dialect: [])

    def next_due(self) -> datetime | None:
        """The earliest time at which a waiting task or a step of an unfinished one is due; None where none is."""
        return self._read(native.find_next_due, lambda c, dialect: None)

    def counts(self) -> dict[str, int]:
        """How many tasks, unfinished, steps, pending, …; COUNT_CAP + 1 stands for "more than COUNT_CAP"."""
        return self._read(native.count_rows, lambda c, dialect: foreign.count_rows(c, dialect))

    def changes(self, since_revision: int, *, limit: int = 5000) -> Changes:
        """Rows past a revision, by revision. A journal without revisions gives its first `limit` steps each time."""
        return self._read(
            lambda c: changes.read_changes(c, since_revision, limit=limit),
            lambda c, dialect: Changes(
                tasks=tuple(foreign.derive_tasks(c, dialect)),
                steps=tuple(foreign.list_every_step(c, dialect, limit=limit)),
            ),
        )

    def _history(
        self,
        question: Callable[[sqlite3.Connection, str, native.Steps], list[T]],
        task_id: str,
        index: native.Steps,
    ) -> list[T]:
        bounds = (index.start, index.stop) if isinstance(index, range) else (index or 0,)
        if not _is_text(task_id) or not all(map(_is_integer, bounds)):
            return []
        return self._read(lambda c: question(c, task_id, index), lambda c, dialect: [])

    def _read(
        self,
        own: Callable[[sqlite3.Connection], T],
        other: Callable[[sqlite3.Connection, Dialect], T],
    ) -> T:
        path = check_path(self.path, root_is_owner=self._root_is_owner).path

        def work(connection: sqlite3.Connection) -> T:
            dialect = require_readable(read_header(connection, self.path), self.path)
            return own(connection) if dialect is None else other(connection, dialect)

        return read_journal(path, work, budget=self._budget)


def _is_text(value: str) -> bool:
    # A lone surrogate is in no journal, and SQLite cannot be asked for one.
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_integer(value: int) -> bool:
    return -_INTEGER_LIMIT <= value < _INTEGER_LIMIT
