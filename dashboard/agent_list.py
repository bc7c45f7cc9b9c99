"""All agents with their states, filtered by state: the list behind the overview's first few."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents.fleet.agents import list_agents
from agents.fleet.summaries import AgentLine
from agents.states import AGENT_STATES
from dashboard.ui.access import require_role
from dashboard.ui.render import digest_shown, page_or_part


@dataclass(frozen=True, slots=True)
class AgentsPage:
    """One page of agents and the state it is filtered by. `first_href` is empty on the first page."""

    lines: tuple[AgentLine, ...]
    state: str
    states: tuple[str, ...]
    href: str
    next_href: str
    first_href: str
    version: str


def build_agents_page(state: str, after: str) -> AgentsPage:
    """The page a filter asks for; a state that is none is no filter. Raises ValueError for a cursor that is none."""
    state = state if state in AGENT_STATES else ""
    page = list_agents(state=state, after=after)
    return AgentsPage(
        lines=page.items,
        state=state,
        states=AGENT_STATES,
        href=_make_href(state, after),
        next_href=_make_href(state, page.next_cursor) if page.next_cursor else "",
        first_href=_make_href(state, "") if after else "",
        version=digest_shown(page),
    )


def _make_href(state: str, after: str) -> str:
    kept = {name: value for name, value in (("state", state), ("after", after)) if value}
    return f"{reverse('agents')}?{urlencode(kept)}" if kept else reverse("agents")


@require_safe
@require_role("viewer")
def show_agents(request: HttpRequest) -> HttpResponse:
    """Agents in every state, those that need a person first."""
    try:
        page = build_agents_page(request.GET.get("state", ""), request.GET.get("after", ""))
    except ValueError as error:
        raise Http404(str(error)) from error
    parts = {"agents-table": "agents/_table.html"}
    return page_or_part(request, "agents/page.html", page, parts=parts, version=page.version)
