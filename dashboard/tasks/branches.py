"""The groups of a task's page: its own rows, then those of each branch below it, with what each used and cost."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.urls import reverse

from agents.fleet import queries
from agents.money import Money, known_sum
from dashboard.derived_holds import derive_task_wait
from dashboard.journal_page import Opened
from dashboard.tasks.rows import Material, Row, build_rows, load_material
from dashboard.tasks.usage import sum_usage
from dashboard.timeline.axis import Axis
from journal.models import TaskRow

_MOST = 40  # branches a page: each is half a dozen questions to the journal, at every poll that finds a change
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Branch:
    """A task with what was read of its steps, and how deep it stands below the page's own, which is at 0."""

    task: TaskRow
    depth: int
    material: Material


@dataclass(frozen=True, slots=True)
class Group:
    """A task's rows: the page's own first, each branch below, indented. `more` of a branch's steps are not shown."""

    task: TaskRow
    href: str
    depth: int
    state: str
    rows: tuple[Row, ...]
    steps: int
    tokens: int | None
    cost: Money | None
    more: int = 0


def list_branches(opened: Opened, task_id: str, *, limit: int) -> tuple[list[Branch], int]:
    """The branches below a task, each with `limit` steps, and how many there are besides, at least.

    Nothing is read of those: what is below them is not counted.
    """
    found: list[Branch] = []
    left = 0
    waiting = [(child, 1) for child in reversed(opened.reader.children(task_id))]
    while waiting and len(found) < _MOST:
        task, depth = waiting.pop()
        material = load_material(opened, task.task_id, after=-1, limit=limit)
        found.append(Branch(derive_task_wait(opened, task, material.steps), depth, material))
        children = opened.reader.children(task.task_id)
        if depth < _DEEPEST:
            waiting += [(child, depth + 1) for child in reversed(children)]
        else:
            left += len(children)
    return found, left + len(waiting)


def build_group(opened: Opened, branch: Branch, axis: Axis, *, reveal: bool) -> Group:
    """The rows of one task, and its sums, which are those of all its steps."""
    task, material = branch.task, branch.material
    made, steps = build_rows(material, opened, axis, reveal=reveal), _count_steps(task, material)
    return Group(
        task,
        reverse("task", args=[opened.file.pk, task.task_id]),
        branch.depth,
        derive_task_state(task, opened),
        made,
        steps,
        *_sum_spent(opened, task, material),
        # A step that was refused before it was written leaves its index unused: there is one more, whatever the count.
        more=max(steps - len(made), 1) if branch.depth and material.more else 0,
    )


def derive_task_state(task: TaskRow, opened: Opened) -> str:
    """The stored status; `crashed` where it says running and its boot is gone; `unresolved` where no agent is known."""
    if task.derived and task.status == "running":
        return "unresolved"
    return "crashed" if task.status == "running" and (opened.live is None or task.boot != opened.live) else task.status


def sum_costs(groups: tuple[Group, ...]) -> Money:
    """What several groups cost together."""
    costs = [group.cost for group in groups if group.cost is not None]
    amounts = [cost.amount for cost in costs if cost.amount is not None]
    unpriced = sum(cost.unpriced_calls for cost in costs)
    return Money(sum(amounts, Decimal(0)) if amounts or not unpriced else None, unpriced)


def _count_steps(task: TaskRow, material: Material) -> int:
    """How many steps the task has; where they are more than a page, as the journal counts them."""
    return len(material.steps) if material.whole else max(task.steps or 0, len(material.steps))


def _sum_spent(opened: Opened, task: TaskRow, material: Material) -> tuple[int | None, Money | None]:
    """What the whole task used and cost; None where another maker's journal does not say."""
    if opened.file.is_foreign:
        return None, None
    if not material.whole and (line := queries.find_task(opened.file.pk, task.task_id)):
        return known_sum(line.tokens_in, line.tokens_out), line.cost
    used = sum_usage(call for calls in material.calls.values() for call in calls)
    return used.tokens, used.cost
