"""The overview: the fleet's state in one sentence, four tiles that are links, then the latest changes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents.fleet.queries import load_overview
from agents.fleet.summaries import AgentLine, Overview, TaskLine
from agents.states import AgentState
from dashboard.ui.access import can_see_payloads, require_role
from dashboard.ui.format import format_cost, format_count, format_size
from dashboard.ui.render import page_or_part

_ALWAYS: tuple[AgentState, ...] = ("working", "idle")
_TOLD: tuple[AgentState, ...] = ("working", "idle", "crashed", "hung", "slow", "unread")
MOST_AGENTS = 12  # those that need a person come first; the rest stands on the agents' page


@dataclass(frozen=True, slots=True)
class Tile:
    """One number with its unit, a link to where it comes from."""

    name: str
    figure: str
    note: str
    href: str
    waits: bool = False
    oldest: datetime | None = None


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent, linked to its tasks."""

    line: AgentLine
    href: str


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """The values of the overview."""

    now: Overview
    tiles: tuple[Tile, ...]
    agents: tuple[AgentRow, ...]
    recent: tuple[TaskLine, ...]
    demo: bool  # whether the demo has its slot in the table of agents
    version: str
    reveal: bool

    @property
    def more_agents(self) -> int:
        return len(self.now.agents) - len(self.agents)

    @property
    def alerts_word(self) -> str:
        return f"{format_count(self.now.alerts_open, 'alert')} open"

    @property
    def journals_word(self) -> str:
        return f"{format_count(self.now.journals_bad, 'journal')} cannot be read"


def build_overview_page(*, reveal: bool) -> OverviewPage:
    """The fleet as the index knows it."""
    now = load_overview()
    agents = tuple(
        AgentRow(
            line,
            f"{reverse('tasks')}?{urlencode({'agent': line.agent})}",
        )
        for line in now.agents[:MOST_AGENTS]
    )
    tiles = _build_tiles(now)
    return OverviewPage(now, tiles, agents, now.recent, settings.STEPKEEPER_DEMO, _digest_overview(now, tiles), reveal)


def _build_tiles(now: Overview) -> tuple[Tile, ...]:
    oldest = now.oldest_held_at or now.oldest_pending_at
    since = (
        (f"of {now.pending}; oldest" if oldest else f"of {now.pending} open") if now.pending else "no intent is open"
    )
    saved = f"saved by resume: {format_cost(now.saved_today)}" if now.saved_tokens_today else "nothing served twice yet"
    spent = format_cost(now.spent_today, incomplete=bool(now.journals_foreign or now.journals_unread))
    if now.journals_unread:
        saved += f"; {format_count(now.journals_unread, 'journal')} cannot be read now"
    if now.journals_foreign:
        spent = spent if now.journals_ours or now.tokens_today else "unknown"
        saved += f"; {format_count(now.journals_foreign, 'journal')} of other makers: unknown"
    disk, note = "—", "no sample yet"
    if now.disk:
        disk = f"{now.disk.used_percent:.0f} %"
        note = f"{format_size(now.disk.free_bytes)} free on {now.disk.mount}"
    states = ", ".join(f"{now.states[state]} {state}" for state in _TOLD if now.states[state] or state in _ALWAYS)
    return (
        Tile("need your decision", str(now.held), since, reverse("pending"), waits=now.held > 0, oldest=oldest),
        Tile("agents", str(len(now.agents)), states, reverse("agents")),
        Tile("spent today", spent, saved, reverse("spend")),
        Tile("disk", disk, note, reverse("disk"), waits=bool(now.disk and now.disk.level != "ok")),
    )


def _digest_overview(now: Overview, tiles: tuple[Tile, ...]) -> str:
    # Ages move by themselves, and the age of the index stands in the pulse.
    told = repr((now.sentence, now.agents, now.recent, now.alerts_open, now.journals_bad, tiles))
    return hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest()[:16]


@require_safe
@require_role("viewer")
def show_overview(request: HttpRequest) -> HttpResponse:
    """The fleet in words first."""
    page = build_overview_page(reveal=can_see_payloads(request.user))
    parts = {"overview-now": "overview/_now.html"}
    return page_or_part(request, "overview/page.html", page, parts=parts, version=page.version)
