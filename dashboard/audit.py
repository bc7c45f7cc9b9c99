"""The audit page: every decision, refusal and sign-in with its person."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from agents.access import audit
from dashboard.ui.access import require_role
from dashboard.ui.render import page_or_part


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page of the audit and its filter."""

    lines: tuple[audit.AuditLine, ...]
    next_cursor: str | None
    actor: str
    refused: bool


def build_audit_page(*, after: str, actor: str, refused: bool) -> AuditPage:
    """One page of the audit. Raises ValueError for an invalid cursor."""
    page = audit.list_events(after=after, actor=actor, refused_only=refused)
    return AuditPage(page.items, page.next_cursor, actor, refused)


@require_safe
@require_role("viewer")
def show_audit(request: HttpRequest) -> HttpResponse:
    """Newest first, by person or refusals only."""
    query = request.GET
    try:
        page = build_audit_page(
            after=query.get("after", ""), actor=query.get("actor", "")[:150], refused=query.get("refused") == "1"
        )
    except ValueError as error:
        raise Http404(str(error)) from error
    return page_or_part(request, "audit/page.html", page, parts={"audit-table": "audit/_table.html"})
