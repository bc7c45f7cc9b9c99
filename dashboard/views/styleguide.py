"""The style guide: each part in every state. Only where DEBUG is on."""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.access import require_role
from dashboard.pages import specimens


@require_safe
@require_role("viewer")
def styleguide(request: HttpRequest) -> HttpResponse:
    """Long, empty, hostile and right-to-left text included."""
    if not settings.DEBUG:
        raise Http404("Only where STEPKEEPER_DEBUG is on.")
    return render(request, "styleguide/page.html", {"page": specimens.build()})
