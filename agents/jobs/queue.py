"""Jobs for the worker: the one module that touches django-q2.

The queue only carries a job's id. What was asked, who asked, how often it was tried and what came of it stand in the
job's own row; what the queue remembers is thrown away.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django_q.models import OrmQ
from django_q.tasks import async_task

from agents.access import audit
from agents.access.roles import Person, can_decide
from agents.decisions.check import (
    TASK_KINDS,
    BadDecision,
    OtherDecision,
    StepBinding,
    check_decision,
    check_reason,
    parse_kind,
)
from agents.jobs.execute import execute_job
from agents.jobs.result import end_overdue_jobs, follow_waiting_jobs
from agents.jobs.states import requeue_lost_jobs
from agents.models import Job, JournalFile
from agents.models.job import CANARY, DECISION, FAILED, OPEN_STATES, QUERY_STATUS
from journal import clock
from journal.models import DecisionKind

# One canary job is open at a time. A canary that is not done within this time counts as lost.
CANARY_PATIENCE = timedelta(seconds=60)
_CANARIES_KEPT = timedelta(hours=1)


def request_job(
    kind: str,
    *,
    actor: Person,
    journal: JournalFile,
    task_id: str,
    step_index: int | None,
    binding: StepBinding,
    decision: DecisionKind | None = None,
    reason: str = "",
    output_json: str = "",
    reference: str = "",
    message_id: str = "",
    expires_at: datetime | None = None,
) -> Job:
    """Ask the worker to query a status (`query_status`) or to deliver a decision (`decision`).

    While a job of this kind is open for the same step and binding, that job is returned whoever asks. A page puts one
    `message_id` (32 hex digits) into each form it shows: the same form posted again returns the same job, even after
    it ended. `expires_at` is what that page said; without one the job has the setting's time from now on.

    `step_index` is None for a decision about a whole task.

    Raises PermissionDenied for who may not decide (audited), BadDecision naming the field for bad input,
    OtherDecision while another decision about the same step is open: nobody is told that theirs was taken.
    """
    wanted = Job(
        kind=kind,
        decision=decision or "",
        journal=journal,
        task_id=task_id,
        step_index=step_index,
        key=binding.key,
        payload_sha256=binding.payload_sha256,
        dispatches=binding.dispatches,
        output_json=output_json,
        reference=reference.strip(),
        reason=reason.strip(),
        message_id=message_id,
        expires_at=expires_at,
    )
    return _ask(wanted, actor, journal)


def _ask(wanted: Job, actor: Person, journal: JournalFile) -> Job:
    if not isinstance(actor, User) or not can_decide(actor):
        _audit(wanted, actor, allowed=False, detail="Only operators may do this.")
        raise PermissionDenied("Only operators may do this.")
    wanted.actor, wanted.actor_name = actor, actor.get_username()
    _check(wanted, journal)
    wanted.message_id = _message_id(wanted.message_id)
    wanted.created_at = wanted.enqueued_at = clock.wall()
    if wanted.expires_at is None:
        wanted.expires_at = wanted.created_at + timedelta(seconds=settings.STEPKEEPER_DECISION_TTL)
    wanted.sentence = "Waiting for the worker."
    with transaction.atomic():
        job, made = _make_once(wanted)
        _check_same(wanted, job)
        detail = wanted.reason
        if not made:
            detail = f"The same was already asked for by {job.actor_name}: job {job.uuid}. {detail}"
        _audit(wanted, actor, detail=detail, job=job)
        if made:
            # Only after the commit, so that a quick worker finds the row. A failure here loses nothing:
            # the decision stands, and watch puts a job that its queue does not have into it again.
            transaction.on_commit(lambda: _enqueue(job), robust=True)
    return job


def run_job(job_id: str) -> None:
    """Called by the queue, perhaps twice. Returns nothing, so that the queue has nothing to keep."""
    execute_job(job_id)


def find_job(job_id: uuid.UUID) -> Job | None:
    """The job of a page's address."""
    return Job.objects.select_related("journal", "actor").filter(uuid=job_id).first()


def send_canary(*, watching_since: datetime | None = None) -> None:
    """Send a job through queue and worker that only shows it is alive. Called by watch.

    A canary from before `watching_since` may have died with its worker, so it is not waited for.
    """
    now = clock.wall()
    oldest = max(now - CANARY_PATIENCE, watching_since or now - CANARY_PATIENCE)
    Job.objects.filter(kind=CANARY, state__in=OPEN_STATES, created_at__lt=oldest).update(
        state=FAILED, ended_at=now, sentence="The worker did not answer in time."
    )
    Job.objects.filter(kind=CANARY, created_at__lt=now - _CANARIES_KEPT).exclude(state__in=OPEN_STATES).delete()
    if not Job.objects.filter(kind=CANARY, state__in=OPEN_STATES).exists():
        job = Job.objects.create(kind=CANARY, message_id=uuid.uuid4().hex, created_at=now, enqueued_at=now)
        _enqueue(job)


def sweep_jobs() -> None:
    """End expired jobs, follow waiting ones, and queue again the jobs that a killed worker lost. Watch calls it."""
    end_overdue_jobs()
    for job in (*requeue_lost_jobs(), *follow_waiting_jobs()):
        _enqueue(job)


def count_queued() -> int:
    """The number of entries in the queue."""
    return int(OrmQ.objects.count())


def _enqueue(job: Job) -> None:
    async_task("agents.jobs.queue.run_job", str(job.uuid), task_name=f"{job.kind} {job.uuid}"[:100])


def _make_once(wanted: Job) -> tuple[Job, bool]:
    if wanted.step_index is None:
        # No constraint covers two without a step; this transaction began IMMEDIATE, so nobody inserts in between.
        of_task = Job.objects.filter(journal=wanted.journal, task_id=wanted.task_id, step_index=None, kind=wanted.kind)
        if twin := of_task.filter(state__in=OPEN_STATES).first():
            return twin, False
    try:
        with transaction.atomic():
            wanted.save(force_insert=True)
    except IntegrityError:
        same = Job.objects.filter(message_id=wanted.message_id).first()
        twins = Job.objects.filter(journal=wanted.journal, task_id=wanted.task_id, step_index=wanted.step_index)
        twins = twins.filter(kind=wanted.kind, dispatches=wanted.dispatches).order_by("-created_at")
        found = same or twins.filter(state__in=OPEN_STATES).first() or twins.first()
        if found is None:
            raise
        return found, False
    return wanted, True


def _check_same(wanted: Job, job: Job) -> None:
    if (wanted.decision, wanted.output_json) != (job.decision, job.output_json):
        raise OtherDecision(
            f"{job.actor_name} decided “{job.decision.replace('_', ' ')}” before you; "
            f"that is job {job.uuid}. Yours was not taken.",
            field="decision",
            hint="Look at the step again once that one has ended.",
        )


def _message_id(given: str) -> str:
    if not given:
        return uuid.uuid4().hex
    try:
        return uuid.UUID(hex=given).hex
    except ValueError:
        raise BadDecision("The form's id is none.", field="message_id", hint="Open the page again.") from None


def _check(wanted: Job, journal: JournalFile) -> None:
    """Refuse a message that no writer could take; an output gets its stored form."""
    if wanted.kind not in (DECISION, QUERY_STATUS):
        raise BadDecision(f"Job {wanted.kind!r}: not one of {DECISION}, {QUERY_STATUS}.", field="kind")
    if why := journal.undecidable:
        raise BadDecision(why, field="journal", hint=journal.hint)
    if journal.dialect != "stepkeeper":
        why = "it was not made by stepkeeper, so no writer of it takes decisions."
        raise BadDecision(f"Journal {journal.path}: {why}", field="journal", hint=journal.hint)
    if (wanted.step_index is None) != (wanted.decision in TASK_KINDS):
        raise BadDecision("A task is cancelled or retried, and any other decision is about a step.", field="decision")
    if wanted.step_index is not None and not (wanted.key and wanted.payload_sha256):
        raise BadDecision("The step has no key or no payload hash to bind to.", field="binding")
    if wanted.kind == QUERY_STATUS:
        check_reason(wanted.reason)
        return
    kind = parse_kind(wanted.decision)
    wanted.output_json = check_decision(
        kind, reason=wanted.reason, output_json=wanted.output_json, reference=wanted.reference
    )


def _audit(wanted: Job, actor: Person, *, allowed: bool = True, detail: str, job: Job | None = None) -> None:
    audit.record_event(
        f"request {wanted.decision or wanted.kind}",
        actor=actor,
        allowed=allowed,
        detail=detail,
        journal=wanted.journal,
        task_id=wanted.task_id,
        step_index=wanted.step_index,
        job=job,
    )
