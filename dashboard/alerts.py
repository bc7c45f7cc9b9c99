"""The alerts page: every problem that watch found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents import alerts
from agents.models import JournalFile
from dashboard.ui.access import require_role
from dashboard.ui.render import digest_shown, make_page_href, page_or_part


@dataclass(frozen=True, slots=True)
class AlertsPage:
    """Open alerts first, then closed ones. `first_href` is empty on the first page."""

    open: tuple[tuple[alerts.AlertLine, str], ...]  # each with the address of what it is about
    closed: tuple[tuple[alerts.AlertLine, str], ...]
    href: str
    next_href: str
    first_href: str
    version: str

    @property
    def is_empty(self) -> bool:
        return not self.open and not self.closed


def build_alerts_page(after: str) -> AlertsPage:
    """One page of alerts. Raises ValueError for an invalid cursor."""
    page = alerts.list_alerts(after=after)
    url = reverse("alerts")
    journals = {line.journal_id for line in page.items if line.kind == "intent" and line.journal_id is not None}
    agents = dict(JournalFile.objects.filter(pk__in=journals).values_list("pk", "agent"))
    return AlertsPage(
        open=tuple((line, _find_subject(line, agents)) for line in page.items if line.closed_at is None),
        closed=tuple((line, _find_subject(line, agents)) for line in page.items if line.closed_at is not None),
        href=make_page_href(url, after),
        next_href=make_page_href(url, page.next_cursor) if page.next_cursor else "",
        first_href=url if after else "",
        version=digest_shown(page),
    )


def _find_subject(line: alerts.AlertLine, agents: Mapping[int, str]) -> str:
    """Where a person sees what the alert is about; empty once its journal is forgotten."""
    if line.kind == "intent":
        agent = agents.get(line.journal_id or 0)
        return f"{reverse('pending')}?{urlencode({'agent': agent})}" if agent else ""
    if line.kind == "journal":
        return f"{reverse('journals')}#journal-{line.journal_id}" if line.journal_id else ""
    return reverse("healthz" if line.kind == "worker" else "disk")


@require_safe
@require_role("viewer")
def show_alerts(request: HttpRequest) -> HttpResponse:
    """Open alerts first."""
    try:
        page = build_alerts_page(request.GET.get("after", ""))
    except ValueError as error:
        raise Http404(str(error)) from error
    return page_or_part(
        request, "alerts/page.html", page, parts={"alerts-list": "alerts/_list.html"}, version=page.version
    )
