"""A task's page: its sentence, its timeline, its children."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.urls import reverse

from agents import fleet
from agents.money import Money, known_sum
from dashboard import timeline
from dashboard.pages import held_again, task_words, usage
from dashboard.pages.opening import Opened
from dashboard.pages.task_rows import Material, Row, read, rows
from journal.models import Task

LIMIT = 200  # steps a page: a live one is sent anew every few seconds
_MOST_CHILDREN = 40
_LEDGER_LINES = 5
_TICK = 3  # seconds after which a page on which something runs, or is counted down to, counts as changed
ENDED = ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One line of the demo forge's own book: a pull request, how often its key was seen and how many it made.

    The title is a payload: empty for people who may not see those.
    """

    number: int
    title: str
    key: str
    applied_at: datetime
    requests: int
    effects: int
    ours: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A task's rows: the page's own first, each child below, indented."""

    task: Task
    href: str
    depth: int
    state: str
    rows: tuple[Row, ...]
    steps: int
    tokens: int | None
    cost: Money | None


@dataclass(frozen=True, slots=True)
class TaskPage:
    """What the task's page shows. `version` changes exactly when the part would look different."""

    journal_id: int
    agent: str
    task: Task
    state: str
    href: str
    sentence: str
    failure: task_words.Failure | None
    frame: timeline.Frame
    groups: tuple[Group, ...]
    parent_href: str
    next_href: str
    first_href: str
    own: Money | None
    children: Money | None
    tokens: int | None
    served: int
    version: str
    polls: bool
    more_children: int
    now: datetime
    ledger: tuple[LedgerLine, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.groups[0].rows

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


def build(opened: Opened, task: Task, *, after: int, reveal: bool, version: str) -> TaskPage:
    """The page of one task from one page of its steps; `reveal` shows what others wrote into it.

    `version` is the one from before the rows are read: what changes meanwhile makes the next poll another.
    """
    own = read(opened, task.task_id, after=after, limit=LIMIT)
    task = held_again.task(task, own.steps)
    children = opened.reader.children(task.task_id) if after < 0 else []
    materials = [(task, 0, own), *_descend(opened, children[:_MOST_CHILDREN], 1)]
    frame = _frame(opened, task, materials)
    groups = tuple(_group(opened, each, depth, material, frame, reveal) for each, depth, material in materials)
    state = derived(task, opened)
    polls = state not in ENDED
    href = reverse("task", args=[opened.file.pk, task.task_id])
    # Rows without a whole index stand before the page's own.
    last = own.steps[-1].step_index if len(own.steps) >= LIMIT else None
    return TaskPage(
        journal_id=opened.file.pk,
        agent=opened.name,
        task=task,
        state=state,
        href=href + (f"?after={after}" if after >= 0 else ""),
        sentence=_sentence(task, state, groups, materials, reveal=reveal),
        failure=task_words.failure(task, reveal=reveal),
        frame=frame,
        groups=groups,
        parent_href=reverse("task", args=[opened.file.pk, task.parent_id]) if task.parent_id is not None else "",
        next_href=f"{href}?after={last}" if last is not None else "",
        first_href=href if after >= 0 else "",
        own=groups[0].cost,
        children=_total(groups[1:]) if len(groups) > 1 else None,
        tokens=groups[0].tokens,
        served=sum(row.state == "reused" for row in groups[0].rows),
        version=version,
        polls=polls,
        more_children=max(0, len(children) - _MOST_CHILDREN),
        now=opened.now,
        ledger=_ledger(opened.name, task, opened, reveal=reveal) if settings.STEPKEEPER_DEMO else (),
    )


def _sentence(
    task: Task, state: str, groups: tuple[Group, ...], materials: list[tuple[Task, int, Material]], *, reveal: bool
) -> str:
    steps = [step for _, _, material in materials for step in material.steps]
    return task_words.sentence(
        task,
        state,
        groups[0].rows,
        [row for group in groups for row in group.rows],
        diverged=next((step for step in steps if step.hold_reason == "diverged"), None),
        total=_count(task, materials[0][2]),
        boots=len({run.boot for run in materials[0][2].runs}),
        reveal=reveal,
    )


def _ledger(agent: str, task: Task, opened: Opened, *, reveal: bool) -> tuple[LedgerLine, ...]:
    # The demo is not there where it does not run: it is imported only then.
    from agents.demo import story
    from agents.demo.paths import PULLS

    if agent != PULLS:
        return ()
    keys = {step.idempotency_key for step in opened.reader.steps(task.task_id) if step.idempotency_key}
    return tuple(
        LedgerLine(
            line.number,
            line.title if reveal else "",
            line.key or "",
            line.applied_at,
            line.requests,
            line.effects,
            line.key in keys,
        )
        for line in story.ledger(first=keys, limit=_LEDGER_LINES)
    )


def derived(task: Task, opened: Opened) -> str:
    """The stored status; `crashed` where it says running and its boot is gone; `unresolved` where no agent is known."""
    if task.derived and task.status == "running":
        return "unresolved"
    return "crashed" if task.status == "running" and (opened.live is None or task.boot != opened.live) else task.status


def version(opened: Opened, task: Task) -> str:
    """What a poll compares: the journal, and time itself while something runs or is due at a time of its own."""
    state = derived(task, opened)
    moves = state == "running" or (state == "waiting" and (task.wait_reason or "").startswith("due"))
    held = held_again.reasons(opened, task.task_id) if state not in ENDED else {}
    return digest(opened, sorted(held.items()), int(opened.now.timestamp()) // _TICK if moves else 0)


def digest(opened: Opened, *told: object) -> str:
    """The files' signature, who is live, and whatever else a page tells."""
    said = repr((opened.signature, opened.live, told))
    return hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _descend(opened: Opened, children: list[Task], depth: int) -> list[tuple[Task, int, Material]]:
    found: list[tuple[Task, int, Material]] = []
    for child in children:
        found.append((child, depth, read(opened, child.task_id, after=-1, limit=LIMIT)))
        if depth < 3:
            found += _descend(opened, opened.reader.children(child.task_id)[:_MOST_CHILDREN], depth + 1)
    return found[:_MOST_CHILDREN]


def _frame(opened: Opened, task: Task, materials: list[tuple[Task, int, Material]]) -> timeline.Frame:
    spans = [span for _, _, material in materials for step in material.steps for span in material.spans(step, opened)]
    marks = [
        decision.applied_at
        for _, _, material in materials
        for decisions in material.decisions.values()
        for decision in decisions
        if decision.applied_at
    ]
    state = derived(task, opened)
    return timeline.frame(
        spans,
        opened.boots,
        marks=marks,
        live=opened.live,
        now=opened.now,
        running=state == "running",
        open_=state == "crashed",
    )


def _group(opened: Opened, task: Task, depth: int, material: Material, frame: timeline.Frame, reveal: bool) -> Group:
    tokens, cost = _spent(opened, task, material)
    href = reverse("task", args=[opened.file.pk, task.task_id])
    made = rows(material, opened, frame.axis, reveal=reveal)
    return Group(task, href, depth, derived(task, opened), made, _count(task, material), tokens, cost)


def _count(task: Task, material: Material) -> int:
    """How many steps the task has; where they are more than a page, as the journal counts them."""
    return len(material.steps) if material.whole else max(task.steps or 0, len(material.steps))


def _spent(opened: Opened, task: Task, material: Material) -> tuple[int | None, Money | None]:
    """What the whole task used and cost; None where another maker's journal does not say."""
    if opened.file.is_foreign:
        return None, None
    if not material.whole and (line := fleet.task(opened.file.pk, task.task_id)):
        return known_sum(line.tokens_in, line.tokens_out), line.cost
    used = usage.of(call for calls in material.calls.values() for call in calls)
    return used.tokens, used.cost


def _total(groups: tuple[Group, ...]) -> Money:
    costs = [group.cost for group in groups if group.cost is not None]
    amounts = [cost.amount for cost in costs if cost.amount is not None]
    unpriced = sum(cost.unpriced_calls for cost in costs)
    return Money(sum(amounts, Decimal(0)) if amounts or not unpriced else None, unpriced)
