"""/healthz: for the supervisor and for monitoring."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from agents import health


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 when web, worker and watch really work, else 503; one line a part either way."""
    report = health.report_health()
    lines = "".join(f"{'ok' if part.ok else 'FAILS'} {part.name}: {part.sentence}\n" for part in report.parts)
    return HttpResponse(lines, status=200 if report.ok else 503, content_type="text/plain; charset=utf-8")
