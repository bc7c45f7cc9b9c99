"""Token spend."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access import require_role
from dashboard.pages import spend as spend_page
from dashboard.render import page_or_part


@require_safe
@require_role("viewer")
def spend(request: HttpRequest) -> HttpResponse:
    """By day, agent, model or tool, over the range in the URL."""
    page = spend_page.build(request.GET.get("by", ""), request.GET.get("over", ""))
    return page_or_part(request, "spend/page.html", page, parts={"spend-table": "spend/_table.html"})
