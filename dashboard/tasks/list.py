"""The list of tasks of all agents, from the fleet index."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents.fleet import queries
from agents.fleet.queries import STATES, count_begun, list_tasks
from agents.fleet.summaries import TaskLine
from dashboard.ui.access import can_see_payloads, require_role
from dashboard.ui.forms import TaskFilter
from dashboard.ui.render import page_or_part
from journal import clock
from journal.reader.paging import Page

MOST_NEW = 100  # the pill counts no further


@dataclass(frozen=True, slots=True)
class TasksPage:
    """One page of tasks and the filter it was made with."""

    agent: str
    status: str
    text: str
    refused: str
    states: tuple[str, ...]
    lines: tuple[TaskLine, ...]
    agents: tuple[str, ...]
    filtered: bool
    read_at: datetime
    next_href: str
    first_href: str
    new: int
    new_href: str
    new_poll: str
    version: str
    reveal: bool

    @property
    def unknown_agent(self) -> str:
        """The agent that is asked for and has no task."""
        return self.agent if self.agent not in self.agents else ""

    @property
    def new_text(self) -> str:
        return f"{MOST_NEW}+" if self.new >= MOST_NEW else str(self.new)


def build_tasks_page(form: TaskFilter, *, reveal: bool) -> TasksPage:
    """The page a filter asks for; raises ValueError for an invalid cursor. `reveal` shows messages of failures."""
    agent, status, text, after = (form.value(name) for name in ("agent", "status", "text", "after"))
    kept = {name: value for name, value in (("agent", agent), ("status", status), ("text", text)) if value}
    refused = form.refusal()
    nothing: Page[TaskLine] = Page((), None)
    page = nothing if refused else list_tasks(agent=agent, status=status, text=text, after=after)
    agents = tuple(queries.list_agents())
    since = _parse_since(form) or clock.wall()
    new = 0 if refused else count_begun(since, agent=agent, status=status, text=text, limit=MOST_NEW)
    href = reverse("tasks")
    return TasksPage(
        agent=agent,
        status=status,
        text=text,
        refused=refused,
        states=STATES,
        lines=page.items,
        agents=agents,
        filtered=bool(kept),
        read_at=clock.wall(),
        next_href=f"{href}?{urlencode(kept | {'after': page.next_cursor})}" if page.next_cursor else "",
        first_href=f"{href}?{urlencode(kept)}" if after else "",
        new=new,
        new_href=f"{href}?{urlencode(kept)}" if kept else href,
        new_poll=f"{href}?{urlencode(kept | {'since': clock.text(since), 'version': f'new-{new}'})}",
        version=f"new-{new}",
        reveal=reveal,
    )


def _parse_since(form: TaskFilter) -> datetime | None:
    text = str(form.data.get("since", ""))
    try:
        return clock.parse(text) if text else None
    except ValueError:
        return None


@require_safe
@require_role("viewer")
def show_tasks(request: HttpRequest) -> HttpResponse:
    """Tasks of all agents, newest change first, filtered by what stands in the URL."""
    try:
        page = build_tasks_page(TaskFilter(request.GET), reveal=can_see_payloads(request.user))
    except ValueError as error:
        raise Http404(str(error)) from error
    parts = {"tasks-table": "tasks/_table.html", "tasks-new": "tasks/_new.html"}
    status = 422 if page.refused else 200
    return page_or_part(request, "tasks/list.html", page, parts=parts, version=page.version, status=status)
