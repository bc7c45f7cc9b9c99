"""One job, followed to its result."""

from __future__ import annotations

import uuid

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from agents.jobs.queue import find_job
from agents.models.job import CANARY
from dashboard.access import can_see_payloads, require_role
from dashboard.pages import job as job_page
from dashboard.render import page_or_part


@require_safe
@require_role("viewer")
def job(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """Where the job is now; polls until it has ended."""
    found = find_job(job_id)
    if found is None or found.kind == CANARY:
        raise Http404("No such job.")
    page = job_page.build(found, reveal=can_see_payloads(request.user))
    return page_or_part(request, "jobs/job.html", page, parts={"job-now": "jobs/_now.html"}, version=page.version)
