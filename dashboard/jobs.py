"""A job's page: the request, its state now, and its outcome."""

from __future__ import annotations

import uuid
import zlib
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents.jobs.queue import find_job
from agents.jobs.result import follow_job
from agents.models import Job
from agents.models.job import CANARY
from dashboard.choices import VERBS
from dashboard.ui.access import can_see_payloads, require_role
from dashboard.ui.render import page_or_part

_STATES = {
    "queued": "waiting for the worker",
    "running": "the worker is at it",
    "waiting_agent": "waiting for the agent",
    "done": "done",
    "failed": "failed",
    "expired": "expired: it was not carried out",
    "refused": "refused: it was not carried out",
}


@dataclass(frozen=True, slots=True)
class JobPage:
    """The values of a job's page. The page polls until the job has ended."""

    job: Job
    title: str
    word: str
    href: str
    place_href: str  # the step, or the task, that the job is about
    polls: bool
    version: str
    rest: str
    detail: str


def build_job_page(job: Job, *, reveal: bool) -> JobPage:
    """The job as the journal knows it now."""
    return show_job_row(follow_job(job), reveal=reveal)


def show_job_row(job: Job, *, reveal: bool) -> JobPage:
    """The page around a job's row as it is; `reveal` shows the provider's own words."""
    said = zlib.crc32(job.sentence.encode("utf-8", "replace"))
    verb = VERBS.get(job.decision)
    place_href = ""
    if job.journal_id and job.step_index is not None:
        place_href = reverse("step", args=[job.journal_id, job.task_id, job.step_index])
    elif job.journal_id and job.task_id:
        place_href = reverse("task", args=[job.journal_id, job.task_id])
    return JobPage(
        job=job,
        title=verb.button if verb else job.kind.replace("_", " ").capitalize(),
        word=_STATES.get(job.state, job.state),
        href=reverse("job", args=[job.uuid]),
        place_href=place_href,
        polls=job.is_open,
        version=f"{job.state}-{job.attempts}-{said:x}",
        rest=job.result,
        detail=job.detail if reveal else "",
    )


@require_safe
@require_role("viewer")
def show_job(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """The page of a job. It polls until the job has ended."""
    found = find_job(job_id)
    if found is None or found.kind == CANARY:
        raise Http404("No such job.")
    page = build_job_page(found, reveal=can_see_payloads(request.user))
    return page_or_part(request, "jobs/job.html", page, parts={"job-now": "jobs/_now.html"}, version=page.version)
