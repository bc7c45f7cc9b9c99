"""What every page asks for while it is looked at: how old the index is, and what the header counts."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access import require_role
from dashboard.pages import frame
from dashboard.render import page_or_part


@require_safe
@require_role("viewer")
def pulse(request: HttpRequest) -> HttpResponse:
    """The part alone: it has no page of its own."""
    desk = frame.desk(request)
    parts = {"desk-pulse": "_pulse_answer.html"}
    return page_or_part(request, "_pulse_answer.html", desk, parts=parts, version=desk.version)
