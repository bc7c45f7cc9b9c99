"""One step: its page, and its stored bytes as a download."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from agents.access import audit
from dashboard.access import can_decide, can_see_payloads, require_role
from dashboard.forms import PAYLOADS, shown_whole
from dashboard.pages import step as step_page
from dashboard.pages.opening import Opened
from dashboard.render import page_or_part
from dashboard.views.opening import reads_journal
from journal.models import Step


@require_safe
@require_role("viewer")
@reads_journal
def step(request: HttpRequest, opened: Opened, task_id: str, step_index: int) -> HttpResponse:
    """Journal says, provider says, verdict; bytes only for people who may see payloads."""
    found = get_step_or_404(opened, task_id, step_index)

    def build() -> step_page.StepPage:
        return step_page.build(
            opened,
            found,
            reveal=can_see_payloads(request.user),
            decides=can_decide(request.user),
            show_all=shown_whole(request.GET.get("all")),
        )

    version = step_page.version(opened, found, step_page.newest_job(opened, found))
    return page_or_part(request, "steps/step.html", build, parts={"step-now": "steps/_now.html"}, version=version)


@require_safe
@require_role("payload_viewer")
@reads_journal
def download(request: HttpRequest, opened: Opened, task_id: str, step_index: int, name: str) -> HttpResponse:
    """The stored bytes of one payload as an attachment, never as something a browser would render."""
    get_step_or_404(opened, task_id, step_index)
    wanted = next((one for one in PAYLOADS if one == name), None)
    data = opened.reader.stored(task_id, step_index, wanted) if wanted else None
    if data is None:
        raise Http404("The journal holds no such payload.")
    audit.record_event(
        "payload.download", actor=request.user, detail=name, journal=opened.file, task_id=task_id, step_index=step_index
    )
    response = HttpResponse(data, content_type="text/plain; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="step-{step_index}-{name}.txt"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def get_step_or_404(opened: Opened, task_id: str, step_index: int) -> Step:
    """The step with its payloads, or 404."""
    found = opened.reader.step(task_id, step_index)
    if found is None:
        raise Http404("No such step in this journal.")
    return found
