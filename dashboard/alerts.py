"""The alerts page: every problem that watch found."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents import alerts
from dashboard.ui.access import require_role
from dashboard.ui.render import digest_shown, make_page_href, page_or_part


@dataclass(frozen=True, slots=True)
class AlertsPage:
    """Open alerts first, then closed ones. `first_href` is empty on the first page."""

    open: tuple[alerts.AlertLine, ...]
    closed: tuple[alerts.AlertLine, ...]
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
    return AlertsPage(
        open=tuple(line for line in page.items if line.closed_at is None),
        closed=tuple(line for line in page.items if line.closed_at is not None),
        href=make_page_href(url, after),
        next_href=make_page_href(url, page.next_cursor) if page.next_cursor else "",
        first_href=url if after else "",
        version=digest_shown(page),
    )


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
