"""The groups of a task's page: the task's own rows, then those of each branch, with use and cost."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.urls import reverse

from agents.fleet import queries
from agents.money import Money, known_sum
from dashboard.journal_page import Opened
from dashboard.tasks.rows import Row, build_rows
from dashboard.tasks.usage import sum_usage
from dashboard.timeline.axis import Axis
from journal.models import TaskRow
from journal.reader.snapshot import Branch, TaskSteps


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


def build_group(opened: Opened, branch: Branch, axis: Axis, *, reveal: bool) -> Group:
    """The rows of one task, and its sums, which are those of all its steps."""
    task, content = branch.task, branch.content
    made, steps = build_rows(content, opened, axis, reveal=reveal), _count_steps(task, content)
    return Group(
        task,
        reverse("task", args=[opened.file.pk, task.task_id]),
        branch.depth,
        derive_task_state(task, opened),
        made,
        steps,
        *_sum_spent(opened, task, content),
        # A step that was refused before it was written leaves its index unused, so the last index can exceed the count.
        more=max(steps - len(made), 1) if branch.depth and content.more else 0,
    )


def derive_task_state(task: TaskRow, opened: Opened) -> str:
    """The stored status; `crashed` where it says running and its boot is gone; `unresolved` where no agent is known."""
    if task.derived and task.status == "running":
        return "unresolved"
    return "crashed" if task.status == "running" and (opened.live is None or task.boot != opened.live) else task.status


def sum_costs(groups: tuple[Group, ...]) -> Money:
    """The cost of several groups together."""
    costs = [group.cost for group in groups if group.cost is not None]
    amounts = [cost.amount for cost in costs if cost.amount is not None]
    unpriced = sum(cost.unpriced_calls for cost in costs)
    return Money(sum(amounts, Decimal(0)) if amounts or not unpriced else None, unpriced)


def _count_steps(task: TaskRow, content: TaskSteps) -> int:
    """The number of the task's steps. If they fill more than a page, the journal counts them."""
    return len(content.steps) if content.whole else max(task.steps or 0, len(content.steps))


def _sum_spent(opened: Opened, task: TaskRow, content: TaskSteps) -> tuple[int | None, Money | None]:
    """The usage and cost of the whole task; None for another maker's journal."""
    if opened.file.is_foreign:
        return None, None
    if not content.whole and (line := queries.find_task(opened.file.pk, task.task_id)):
        return known_sum(line.tokens_in, line.tokens_out), line.cost
    used = sum_usage(call for calls in content.calls.values() for call in calls)
    return used.tokens, used.cost
