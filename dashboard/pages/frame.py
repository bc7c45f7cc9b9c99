"""What every page's frame shows, and the parts several pages share."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from agents.models import Alert, PendingIntent
from agents.models.pending_intent import HELD
from agents.roles import role_of

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
_BELONGS = {"task": "tasks", "step": "tasks", "decide": "pending", "job": "pending", "journal": "journals"}


@dataclass(frozen=True, slots=True)
class NavItem:
    """One page of the header; `count` is what waits there."""

    word: str
    href: str
    current: bool
    count: str = ""
    count_word: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Desk:
    """The header: where one is, what waits, as whom one is signed in."""

    nav: tuple[NavItem, ...] = ()
    waits: str = ""
    role: str = ""


def desk(request: HttpRequest) -> Desk:
    """The header of a signed-in person's page; empty for everyone else."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return Desk()
    waits = _capped(PendingIntent.objects.filter(state=HELD)[: MOST + 1].values_list("pk", flat=True).__len__())
    alerts = _capped(Alert.objects.filter(closed_at__isnull=True)[: MOST + 1].values_list("pk", flat=True).__len__())
    here = request.resolver_match.url_name if request.resolver_match else ""
    here = _BELONGS.get(here or "", here)
    count = {"pending": (waits, " wait for you"), "alerts": (alerts, " open", "open")}
    nav = tuple(NavItem(word, reverse(name), here == name, *count.get(name, ("", ""))) for name, word in _PAGES)
    return Desk(nav, waits, (role_of(user) or "no role").replace("_", " "))


def _capped(count: int) -> str:
    return "" if not count else str(count) if count <= MOST else f"{MOST}+"


@dataclass(frozen=True, slots=True)
class Tab:
    """One of several views of a page."""

    word: str
    href: str
    current: bool
