"""The header of every page, and the parts that several pages share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from agents.access.roles import role_of
from agents.fleet.queries import load_index_age
from agents.fleet.summaries import IndexAge
from agents.models import Alert, PendingIntent
from agents.models.pending_intent import HELD
from journal import clock

MOST = 999  # more are shown as "999+": no page counts a whole table


_PAGES = (
    ("overview", "Overview"),
    ("pending", "Pending"),
    ("tasks", "Tasks"),
    ("spend", "Spend"),
    ("disk", "Disk"),
    ("alerts", "Alerts"),
    ("audit", "Audit"),
    ("journals", "Journals"),
)
_BELONGS = {
    "agents": "overview",
    "task": "tasks",
    "step": "tasks",
    "decide": "pending",
    "query": "pending",
    "job": "pending",
    "cancel_task": "tasks",
    "retry_task": "tasks",
}


@dataclass(frozen=True, slots=True)
class NavItem:
    """One page of the header; `count` is what waits there."""

    name: str
    word: str
    href: str
    current: bool
    counts: bool = False
    count: str = ""
    count_word: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Header:
    """The header: current page, waiting intents, signed-in person. `index` is None for a person without a role."""

    nav: tuple[NavItem, ...] = ()
    waits: str = ""
    role: str = ""
    index: IndexAge | None = None
    now: datetime | None = None

    @property
    def version(self) -> str:
        """The value that two polls of the header compare."""
        said = "-".join([*(item.count for item in self.nav if item.counts), "stale" if self.is_stale else "fresh"])
        beat = self.index.beaten_at if self.index else None
        return f"{said}-{clock.text(beat)}" if beat else said

    @property
    def is_stale(self) -> bool:
        return self.index is not None and self.index.stale


def build_header(request: HttpRequest) -> Header:
    """The header of a signed-in person's page; empty for everyone else."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return Header()
    role = role_of(user)
    # A person without a role does not learn how much there is to see.
    waits = _count_rows(PendingIntent.objects.filter(state=HELD)) if role else ""
    alerts = _count_rows(Alert.objects.filter(closed_at__isnull=True)) if role else ""
    here = request.resolver_match.url_name if request.resolver_match else ""
    here = _BELONGS.get(here or "", here)
    count = {"pending": (waits, " need your decision"), "alerts": (alerts, " open", "open")}
    nav = tuple(
        NavItem(name, word, reverse(name), here == name, name in count, *count.get(name, ())) for name, word in _PAGES
    )
    index = load_index_age() if role else None
    return Header(nav, waits, (role or "no role").replace("_", " "), index, clock.wall())


def _count_rows(rows: QuerySet[Any]) -> str:
    count = rows[: MOST + 1].count()
    return "" if not count else str(count) if count <= MOST else f"{MOST}+"
