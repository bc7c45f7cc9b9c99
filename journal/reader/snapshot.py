"""Snapshots: all that one page shows of a journal, read as one question, so that no part disagrees with another."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from journal.models import Attempt, Boot, Decision, Evidence, FrozenRequest, ModelCall, Run, Step, TaskRow
from journal.reader import foreign, native
from journal.reader.dialects import Dialect
from journal.reader.native import Place

BOOTS = 1000
RUNS = 1000
BRANCHES = 1000  # of one level below a task
_DEEPEST = 3
_INPUT_SHOWN = 2000  # characters of a task's input beside one of its steps

_Item = TypeVar("_Item", Attempt, Evidence, ModelCall, Decision)


@dataclass(frozen=True, slots=True)
class TaskSteps:
    """One page of a task's steps with what belongs to them, each by its step's index."""

    steps: tuple[Step, ...] = ()
    attempts: dict[int, list[Attempt]] = field(default_factory=dict)
    calls: dict[int, list[ModelCall]] = field(default_factory=dict)
    decisions: dict[int, list[Decision]] = field(default_factory=dict)
    evidence: dict[int, list[Evidence]] = field(default_factory=dict)
    runs: tuple[Run, ...] = ()
    whole: bool = True  # whether these are all steps of the task
    more: bool = False  # whether more follow

    @property
    def last(self) -> int:
        """The index past which the next page begins."""
        return max((step.step_index for step in self.steps if _is_numbered(step)), default=-1)


@dataclass(frozen=True, slots=True)
class Branch:
    """A task below another, `depth` levels down, with its first steps."""

    task: TaskRow
    depth: int
    content: TaskSteps


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """One task at one instant. `task` None: the journal has no such task.

    `before` is the last step of the page before, alone, and `after` its index: -1 on the first page. `named` are the
    steps that were asked for by their places.
    """

    boots: tuple[Boot, ...] = ()
    task: TaskRow | None = None
    after: int = -1
    content: TaskSteps = field(default_factory=TaskSteps)
    before: TaskSteps = field(default_factory=TaskSteps)
    branches: tuple[Branch, ...] = ()
    more_branches: int = 0
    named: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class StepSnapshot:
    """One step at one instant. `step` None: the journal has no such step. It may hold decisions about it."""

    boots: tuple[Boot, ...] = ()
    step: Step | None = None
    task: TaskRow | None = None
    attempts: tuple[Attempt, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    decisions: tuple[Decision, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    runs: tuple[Run, ...] = ()
    request: FrozenRequest | None = None
    profile_json: str | None = None


@dataclass(frozen=True, slots=True)
class IntentSnapshot:
    """One unresolved step at one instant, with what recovery decides about it by. Nothing carries an output."""

    step: Step
    task: TaskRow | None = None
    attempts: tuple[Attempt, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    profile_json: str | None = None
    host: str = ""  # of its frozen request


def load_task(
    connection: sqlite3.Connection,
    task_id: str,
    *,
    after: int | None,
    limit: int,
    most_branches: int,
    named: Collection[Place],
) -> TaskSnapshot:
    """A task with `limit` steps past `after`; None stands for its newest steps.

    The first page and the newest have the branches below the task, each with `limit` steps.
    """
    boots = tuple(native.list_boots(connection, limit=BOOTS))
    head = TaskSnapshot(boots, native.find_task(connection, task_id, cap=None))
    if head.task is None:
        return head
    has_branches = after is None or after < 0
    after = native.find_start_of_newest(connection, task_id, limit=limit) if after is None else after
    below, left = _walk_branches(connection, task_id, most=most_branches) if has_branches else ([], 0)
    first = native.list_first_steps(connection, [task.task_id for task, _ in below], limit=limit + 1)
    pages = {task.task_id: _cut_page(first.get(task.task_id, []), limit) for task, _ in below}
    own = _cut_page(native.list_steps(connection, task_id, after=after, limit=limit + 1), limit)
    gathered = _gather(connection, {**pages, task_id: own})
    before = native.find_steps(connection, [(task_id, after)]) if after >= 0 else []
    return replace(
        head,
        after=after,
        content=replace(gathered[task_id], whole=after < 0 and not own[1]),
        before=_gather(connection, {task_id: (before, False)})[task_id],
        branches=tuple(Branch(task, depth, gathered[task.task_id]) for task, depth in below),
        more_branches=left,
        named=tuple(native.find_steps(connection, named)),
    )


def load_foreign_task(
    connection: sqlite3.Connection,
    dialect: Dialect,
    task_id: str,
    *,
    after: int,
    limit: int,
) -> TaskSnapshot:
    """A task of another maker's journal, which holds steps and nothing else."""
    head = TaskSnapshot((), next(iter(foreign.derive_tasks(connection, dialect, task_id=task_id)), None))
    if head.task is None:
        return head
    steps, more = _cut_page(foreign.list_steps(connection, dialect, task_id, after=after, limit=limit + 1), limit)
    before = foreign.list_steps(connection, dialect, task_id, after=after - 1, limit=1) if after >= 0 else []
    return replace(
        head,
        after=after,
        content=TaskSteps(tuple(steps), whole=after < 0 and not more, more=more),
        before=TaskSteps(tuple(step for step in before if step.step_index == after)),
    )


def load_step(
    connection: sqlite3.Connection,
    task_id: str,
    index: int,
    *,
    cap: int,
    request_cap: int,
) -> StepSnapshot:
    """A step with its payloads and its history."""
    return StepSnapshot(
        boots=tuple(native.list_boots(connection, limit=BOOTS)),
        step=native.find_step(connection, task_id, index, cap=cap),
        attempts=tuple(native.list_attempts(connection, task_id, index)),
        task=native.find_task(connection, task_id, cap=_INPUT_SHOWN),
        evidence=tuple(native.list_evidence(connection, task_id, index)),
        decisions=tuple(native.list_decisions(connection, task_id, index)),
        calls=tuple(native.list_model_calls(connection, task_id, index)),
        runs=tuple(native.list_runs(connection, [task_id], limit=RUNS)),
        request=native.find_request(connection, task_id, index, cap=request_cap),
        profile_json=native.find_profiles(connection, [(task_id, index)]).get((task_id, index)),
    )


def load_foreign_step(
    connection: sqlite3.Connection, dialect: Dialect, task_id: str, index: int, *, cap: int
) -> StepSnapshot:
    """A step of another maker's journal."""
    task = next(iter(foreign.derive_tasks(connection, dialect, task_id=task_id)), None)
    return StepSnapshot(step=foreign.find_step(connection, dialect, task_id, index, cap=cap), task=task)


def load_intents(connection: sqlite3.Connection, steps: Collection[Step]) -> list[IntentSnapshot]:
    """The steps with what recovery decides about them by, each kind of it in one statement."""
    places = [(step.task_id, step.step_index) for step in steps]
    spans = native.spans_of(places)
    tasks = {task.task_id: task for task in native.find_tasks(connection, {task_id for task_id, _ in places})}
    attempts = _by_step(native.find_attempts(connection, spans))
    evidence = _by_step(native.find_evidence(connection, spans))
    profiles, hosts = native.find_profiles(connection, places), native.find_hosts(connection, places)
    return [
        IntentSnapshot(
            step,
            tasks.get(step.task_id),
            tuple(attempts.get(step.task_id, {}).get(step.step_index, ())),
            tuple(evidence.get(step.task_id, {}).get(step.step_index, ())),
            profiles.get((step.task_id, step.step_index)),
            hosts.get((step.task_id, step.step_index), ""),
        )
        for step in steps
    ]


def _walk_branches(connection: sqlite3.Connection, task_id: str, *, most: int) -> tuple[list[tuple[TaskRow, int]], int]:
    """The branches below a task, each before those below it, and how many there are besides, at least.

    Each level is one statement. What is below the branches that are left out is not counted.
    """
    below: dict[str, list[TaskRow]] = {}
    level = [task_id]
    for _ in range(_DEEPEST + 1):
        for task in native.list_branches(connection, level, limit=BRANCHES) if level else ():
            below.setdefault(task.parent_id or "", []).append(task)
        level = [task.task_id for parent in level for task in below.get(parent, ())][:most]
    found: list[tuple[TaskRow, int]] = []
    left, waiting = 0, [(task, 1) for task in reversed(below.get(task_id, []))]
    while waiting and len(found) < most:
        task, depth = waiting.pop()
        found.append((task, depth))
        if depth < _DEEPEST:
            waiting += [(child, depth + 1) for child in reversed(below.get(task.task_id, []))]
        else:
            left += len(below.get(task.task_id, ()))
    return found, left + len(waiting)


def _gather(connection: sqlite3.Connection, pages: dict[str, tuple[list[Step], bool]]) -> dict[str, TaskSteps]:
    """Each task's page of steps with what belongs to them; every kind of it is one statement for all tasks."""
    spans = []
    for task_id, (steps, _) in pages.items():
        # A row whose index is not a number says nothing about where the page begins and ends.
        if numbers := [step.step_index for step in steps if _is_numbered(step)]:
            spans.append((task_id, min(numbers), max(numbers)))
    attempts = _by_step(native.find_attempts(connection, spans))
    calls = _by_step(native.find_model_calls(connection, spans))
    decisions = _by_step(native.find_decisions(connection, spans))
    evidence = _by_step(native.find_evidence(connection, spans))
    runs = native.list_runs(connection, list(pages), limit=RUNS)
    return {
        task_id: TaskSteps(
            tuple(steps),
            attempts.get(task_id, {}),
            calls.get(task_id, {}),
            decisions.get(task_id, {}),
            evidence.get(task_id, {}),
            tuple(run for run in runs if run.task_id == task_id),
            whole=not more,
            more=more,
        )
        for task_id, (steps, more) in pages.items()
    }


def _cut_page(found: list[Step], limit: int) -> tuple[list[Step], bool]:
    """Of `limit` steps and one more those of this page, and whether others follow.

    Rows without a number that stand before the first step are on it besides. It ends between two numbers: in a journal
    of another maker several rows may share one, and the next page begins past it.
    """
    first = next((at for at, step in enumerate(found) if _is_numbered(step)), len(found))
    if len(found) - first <= limit:
        return found, False
    page, beyond = found[first : first + limit], found[first + limit].step_index
    return found[:first] + ([step for step in page if step.step_index != beyond] or page), True


def _is_numbered(step: Step) -> bool:
    return "step_index" not in step.odd


def _by_step(items: Iterable[_Item]) -> dict[str, dict[int, list[_Item]]]:
    by: dict[str, dict[int, list[_Item]]] = {}
    for item in items:
        if item.step_index is not None:
            by.setdefault(item.task_id, {}).setdefault(item.step_index, []).append(item)
    return by
