"""The audit: who did, or was refused, what."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access import require_role
from dashboard.pages import lists
from dashboard.render import page_or_part


@require_safe
@require_role("viewer")
def audit(request: HttpRequest) -> HttpResponse:
    """Newest first, by person or refusals only."""
    query = request.GET
    try:
        page = lists.audit_page(
            after=query.get("after", ""), actor=query.get("actor", "")[:150], refused=query.get("refused") == "1"
        )
    except ValueError as error:
        raise Http404(str(error)) from error
    return page_or_part(request, "audit/page.html", page, parts={"audit-table": "audit/_table.html"})
