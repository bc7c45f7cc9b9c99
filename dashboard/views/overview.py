"""The first page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access import can_decide, can_see_payloads, require_role
from dashboard.pages import overview as overview_page
from dashboard.render import page_or_part


@require_safe
@require_role("viewer")
def overview(request: HttpRequest) -> HttpResponse:
    """The fleet in words first."""
    page = overview_page.build(decides=can_decide(request.user), reveal=can_see_payloads(request.user))
    parts = {"overview-now": "overview/_now.html"}
    return page_or_part(request, "overview/page.html", page, parts=parts, version=page.version)
