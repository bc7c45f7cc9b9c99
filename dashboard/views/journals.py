"""Journal files: each one's state, or the card that says what is wrong."""

from __future__ import annotations

import os

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access import require_role
from dashboard.pages import lists
from dashboard.render import page_or_part


@require_safe
@require_role("viewer")
def journals(request: HttpRequest) -> HttpResponse:
    """Every file the patterns give."""
    page = lists.journals_page(globs=tuple(settings.STEPKEEPER_JOURNALS), as_root=os.geteuid() == 0)
    return page_or_part(request, "journals/page.html", page, parts={"journals-table": "journals/_table.html"})
