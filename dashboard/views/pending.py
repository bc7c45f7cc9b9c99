"""The queue of pending intents."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access import can_decide, can_see_payloads, require_role
from dashboard.pages import pending as pending_page
from dashboard.render import page_or_part


@require_safe
@require_role("viewer")
def pending(request: HttpRequest) -> HttpResponse:
    """All journals, oldest first."""
    try:
        page = pending_page.build(
            decides=can_decide(request.user),
            reveal=can_see_payloads(request.user),
            after=request.GET.get("after", ""),
        )
    except ValueError as error:
        raise Http404(str(error)) from error
    parts = {"pending-queue": "pending/_queue.html"}
    return page_or_part(request, "pending/page.html", page, parts=parts, version=page.version)
