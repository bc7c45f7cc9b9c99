"""A task's page: its sentence, its timeline, its children."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents.fleet.queries import find_task
from agents.money import Money
from dashboard.derived_holds import Holds, derive_step_hold, derive_task_wait, load_holds
from dashboard.journal_page import Opened, digest_journal, find_lasting_version, name_version, with_journal
from dashboard.tasks.branches import Group, build_group, derive_task_state, sum_costs
from dashboard.tasks.rows import Row, measure_step_spans
from dashboard.tasks.words import Failure, describe_failure, describe_task
from dashboard.timeline.layout import Frame, lay_out_frame
from dashboard.timeline.status import describe_waiting_task
from dashboard.ui.access import can_decide, can_see_payloads, require_role
from dashboard.ui.forms import FIRST, LAST, parse_cursor_index
from dashboard.ui.render import page_or_part
from journal.models import TaskRow
from journal.reader.snapshot import Branch, TaskSnapshot, TaskSteps

LIMIT = 200  # steps a page: a live one is sent anew every few seconds
BRANCHES = 40  # branches a page, each with as many steps
ENDED = ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class TaskPage:
    """What the task's page shows. `version` changes exactly when the part would look different."""

    journal_id: int
    agent: str
    task: TaskRow
    state: str
    href: str
    sentence: str
    failure: Failure | None
    frame: Frame
    groups: tuple[Group, ...]
    changed_at: datetime | None
    parent_href: str
    next_href: str
    first_href: str
    current_href: str
    last_href: str
    cancel_href: str
    retry_href: str
    own: Money | None
    children: Money | None
    tokens: int | None
    served: int
    version: str
    polls: bool
    more_children: int  # at least so many branches are neither shown nor in `children`
    now: datetime

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.groups[0].rows

    @property
    def signal(self) -> str:
        """The state's word alone: what the task waits for is said once, by its sentence or on the row that waits."""
        if self.state != "waiting":
            return self.state
        waits = any(row.waits for group in self.groups for row in group.rows)
        return "held" if waits else describe_waiting_task(self.task.wait, self.task.task_id).state

    @property
    def decide_href(self) -> str:
        """The oldest step that waits for a person's decision; empty where none of the shown steps does."""
        waiting = (row for group in self.groups for row in group.rows if row.waits and not row.diverged)
        return next((row.href for row in waiting), "")

    @property
    def has_rows(self) -> bool:
        """Whether there is a step to draw, of the task or of a branch: a task may only fan out."""
        return any(group.rows for group in self.groups)

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


def build_task_page(
    opened: Opened,
    found: TaskSnapshot,
    task: TaskRow,
    holds: Holds,
    *,
    place: str,
    reveal: bool,
    decides: bool,
) -> TaskPage:
    """The page of one task from its snapshot; `reveal` shows what others wrote into it.

    `place` is what the address asked for: an index, an end of the steps, or nothing.
    """
    named = [derive_step_hold(opened, step, holds) for step in found.named]

    def derive_branch(task: TaskRow, depth: int, content: TaskSteps) -> Branch:
        steps = tuple(derive_step_hold(opened, step, holds) for step in content.steps)
        return Branch(derive_task_wait(task, steps, named, holds), depth, replace(content, steps=steps))

    own = derive_branch(task, 0, found.content)
    task = own.task
    shown = [own, *(derive_branch(each.task, each.depth, each.content) for each in found.branches)]
    frame = _lay_out_frame(opened, task, shown, since=_find_end(opened, found.before))
    groups = tuple(build_group(opened, each, frame.axis, reveal=reveal) for each in shown)
    state = derive_task_state(task, opened)
    polls = state not in ENDED
    href = reverse("task", args=[opened.file.pk, task.task_id])
    return TaskPage(
        journal_id=opened.file.pk,
        agent=opened.name,
        task=task,
        state=state,
        href=f"{href}?after={place}" if place else href,
        sentence=_describe_task(state, groups, shown, reveal=reveal),
        failure=describe_failure(task, reveal=reveal),
        frame=frame,
        groups=groups,
        changed_at=_find_last_change(opened, task, own.content),
        parent_href=reverse("task", args=[opened.file.pk, task.parent_id]) if task.parent_id is not None else "",
        next_href=f"{href}?after={own.content.last}" if own.content.more else "",
        first_href=f"{href}?after={FIRST}" if found.after >= 0 else "",
        current_href=_find_current(href, task, own.content),
        last_href=f"{href}?after={LAST}" if own.content.more else "",
        cancel_href=_find_cancel(opened, task, state) if decides else "",
        retry_href=_find_retry(opened, task, state) if decides else "",
        own=groups[0].cost,
        children=sum_costs(groups[1:]) if len(groups) > 1 else None,
        tokens=groups[0].tokens,
        served=sum(row.state == "reused" for row in groups[0].rows),
        version=name_task_version(opened, task, holds),
        polls=polls,
        more_children=found.more_branches,
        now=opened.now,
    )


def _find_last_change(opened: Opened, task: TaskRow, content: TaskSteps) -> datetime | None:
    """When the task or one of its steps moved last: the rule of the index, so that the list says the same time."""
    moved = [task.updated_at, *(step.updated_at for step in content.steps)]
    moved += [one.ended_at or one.started_at for some in content.attempts.values() for one in some]
    moved += [one.ended_at or one.started_at for some in content.calls.values() for one in some]
    if not content.whole and (line := find_task(opened.file.pk, task.task_id)):
        moved.append(line.updated_at)
    return max((moment for moment in moved if moment), default=None)


def _describe_task(state: str, groups: tuple[Group, ...], shown: list[Branch], *, reveal: bool) -> str:
    own, steps = shown[0], [step for each in shown for step in each.content.steps]
    return describe_task(
        own.task,
        state,
        groups[0].rows,
        held=next(((group.task.task_id, row) for group in groups for row in group.rows if row.waits), None),
        diverged=next((step for step in steps if step.hold_reason == "diverged"), None),
        total=groups[0].steps,
        boots=len({run.boot for run in own.content.runs}),
        reveal=reveal,
    )


def _find_current(href: str, task: TaskRow, content: TaskSteps) -> str:
    """The page of the step that the task waits for, where that is a step of its own on another page."""
    index = task.wait_step_index
    if index is None or task.wait_step_task != task.task_id or not content.steps:
        return ""
    is_here = any(step.step_index == index for step in content.steps)
    return "" if is_here else f"{href}?after={max(index - 1, 0) if index else FIRST}"


def _find_cancel(opened: Opened, task: TaskRow, state: str) -> str:
    """The page that cancels the task; empty where nothing can."""
    if state in ENDED or opened.file.dialect != "stepkeeper" or opened.file.undecidable:
        return ""
    return reverse("cancel_task", args=[opened.file.pk, task.task_id])


def _find_retry(opened: Opened, task: TaskRow, state: str) -> str:
    """The page that retries the task; empty where nothing can."""
    if (
        state != "failed"
        or task.parent_id is not None
        or opened.file.dialect != "stepkeeper"
        or opened.file.undecidable
    ):
        return ""
    return reverse("retry_task", args=[opened.file.pk, task.task_id])


def name_task_version(opened: Opened, task: TaskRow, holds: Holds) -> str:
    """The version of a task's page: time itself moves it while the task runs, or is due at a time of its own."""
    moves = task.status == "running" or (task.status == "waiting" and task.wait_kind == "due")
    return name_version(opened, _digest_task(opened, holds), moves=moves)


def _digest_task(opened: Opened, holds: Holds) -> str:
    return digest_journal(opened, sorted(holds.reasons.items()))


def _find_end(opened: Opened, before: TaskSteps) -> float | None:
    """When the last step of the page before ended: what happened between two pages stands on the later one."""
    spans = (span for step in before.steps for span in measure_step_spans(step, before, opened))
    return max((span.end for span in spans), default=None)


def _lay_out_frame(opened: Opened, task: TaskRow, shown: list[Branch], *, since: float | None) -> Frame:
    spans = [
        span for each in shown for step in each.content.steps for span in measure_step_spans(step, each.content, opened)
    ]
    contents = [each.content for each in shown]
    marks = [one.applied_at for content in contents for some in content.decisions.values() for one in some]
    marks += [one.asked_at for content in contents for some in content.evidence.values() for one in some]
    state = derive_task_state(task, opened)
    return lay_out_frame(
        spans,
        opened.boots,
        since=since,
        marks=[mark for mark in marks if mark],
        live=opened.live,
        now=opened.now,
        running=state == "running",
        open_=state == "crashed",
    )


@require_safe
@require_role("viewer")
@with_journal
def show_task(request: HttpRequest, opened: Opened, task_id: str) -> HttpResponse:
    """One task's timeline, live while it is unfinished."""
    holds, place = load_holds(opened), request.GET.get("after", "")
    after = _choose_page(opened, task_id, place)

    def build() -> TaskPage:
        found = opened.reader.load_task(
            task_id, after=after, limit=LIMIT, most_branches=BRANCHES, named=holds.list_places(task_id)
        )
        if found.task is None:
            raise Http404("No such task in this journal.")
        return build_task_page(
            opened.with_boots(found.boots),
            found,
            found.task,
            holds,
            place=place if after is None or after >= 0 or place == FIRST else "",
            reveal=can_see_payloads(request.user),
            decides=can_decide(request.user),
        )

    return page_or_part(
        request,
        "tasks/task.html",
        build,
        parts={"task-timeline": "tasks/_timeline.html"},
        version=find_lasting_version(request, opened, _digest_task(opened, holds)),
    )


def _choose_page(opened: Opened, task_id: str, place: str) -> int | None:
    """Where the page begins. Without a place in the address an unfinished task opens at its newest steps."""
    if place:
        return parse_cursor_index(place)
    line = find_task(opened.file.pk, task_id)
    return -1 if line is None or line.status in ENDED else None
