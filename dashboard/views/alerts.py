"""Alerts: what watch found wrong."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access import require_role
from dashboard.pages import lists
from dashboard.render import page_or_part


@require_safe
@require_role("viewer")
def alerts(request: HttpRequest) -> HttpResponse:
    """Open alerts first."""
    try:
        page = lists.alerts_page(request.GET.get("after", ""))
    except ValueError as error:
        raise Http404(str(error)) from error
    return page_or_part(
        request, "alerts/page.html", page, parts={"alerts-list": "alerts/_list.html"}, version=page.version
    )
