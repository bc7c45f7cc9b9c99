"""Disk usage."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access import require_role
from dashboard.pages import disk as disk_page
from dashboard.render import page_or_part


@require_safe
@require_role("viewer")
def disk(request: HttpRequest) -> HttpResponse:
    """Each volume with its journals."""
    page = disk_page.build()
    parts = {"disk-volumes": "disk/_volumes.html"}
    return page_or_part(request, "disk/page.html", page, parts=parts, version=page.version)
