"""A job's way through its states: every move is one conditional UPDATE whose row count is tested.

A job may be delivered twice, to two workers at once. Whoever moves its row does the work; the other finds none left.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db.models import F, Q, QuerySet

from agents.models import Job
from agents.models.job import (
    DONE,
    EXPIRED,
    FAILED,
    OPEN_STATES,
    QUEUED,
    RUNNING,
    WAITING_AGENT,
)
from journal import clock

# A job that killed two workers is given up, so that it does not kill a third.
MOST_ATTEMPTS = 2
# Twice the queue's own timeout: a job still running after that has no process any more.
LEASE = timedelta(seconds=120)
# A queued row whose queue entry is lost (a kill between commit and enqueue) is put into the queue again.
LOST = timedelta(seconds=30)
GAVE_UP = f"Gave up after {MOST_ATTEMPTS} attempts: each time the worker ended in the middle."


def claim_job(job_id: UUID) -> Job | None:
    """Make this process the job's runner. None when it is not queued, used up its attempts, or has expired.

    The attempt is counted before the work: a job that kills its worker is not given a third one.
    """
    now = clock.wall()
    fresh = Q(expires_at=None) | Q(expires_at__gt=now)
    won = Job.objects.filter(fresh, uuid=job_id, state=QUEUED, attempts__lt=MOST_ATTEMPTS).update(
        state=RUNNING, attempts=F("attempts") + 1, claimed_at=now, sentence="The worker is at it."
    )
    return _jobs().get(uuid=job_id) if won == 1 else None


def finish_job(job: Job, state: str, sentence: str) -> bool:
    """End an open job. False when it had already ended: the first outcome stays."""
    return _move(job, OPEN_STATES, state=state, sentence=sentence, ended_at=clock.wall(), **_learned(job))


def correct_job(job: Job, sentence: str) -> bool:
    """Mark a job done that was given up as expired or failed: the journal says that it was applied."""
    return _move(job, (EXPIRED, FAILED), state=DONE, sentence=sentence, **_learned(job))


def hand_over_job(job: Job, sentence: str) -> bool:
    """The message is posted; the journal's writer has to take it in.

    This attempt ended in order, so it does not count towards giving up.
    """
    if (job.state, job.sentence) == (WAITING_AGENT, sentence):
        return True
    return _move(job, (RUNNING, WAITING_AGENT), state=WAITING_AGENT, attempts=0, sentence=sentence, **_learned(job))


def mark_posted(job: Job) -> None:
    """Remember that the message is in the inbox."""
    job.posted_at = clock.wall()
    job.save(update_fields=["posted_at"])


def requeue_job(job: Job) -> bool:
    """Give a waiting job back to the worker: its agent is gone, so the worker may now be the writer.

    At most once in LOST seconds: a job that the worker cannot do is not tried each second.
    """
    now = clock.wall()
    due = Job.objects.filter(uuid=job.uuid, state=WAITING_AGENT, claimed_at__lt=now - LOST)
    return due.update(state=QUEUED, enqueued_at=now) == 1


def late_jobs(*, job_id: UUID | None = None) -> list[Job]:
    """The queued jobs, or this one, whose time is over, so that no worker can claim them."""
    found = _jobs().filter(state=QUEUED, expires_at__lte=clock.wall())
    return list((found.filter(uuid=job_id) if job_id else found).order_by("created_at")[:200])


def give_up_jobs() -> list[Job]:
    """End the jobs each of whose attempts ended with its worker; returns those that ended now."""
    stuck = _jobs().filter(_stuck(), attempts__gte=MOST_ATTEMPTS)
    # A worker that was only slow has moved its job meanwhile.
    return [job for job in stuck if _move(job, (RUNNING,), state=FAILED, ended_at=clock.wall(), sentence=GAVE_UP)]


def requeue_lost_jobs() -> list[Job]:
    """Reset the jobs that a killed worker left behind; returns the jobs to queue again."""
    now = clock.wall()
    # Posted or not: a message posted twice under one id is applied once.
    Job.objects.filter(_stuck(), attempts__lt=MOST_ATTEMPTS).update(
        state=QUEUED, enqueued_at=now - LOST, sentence="The worker ended; queued again."
    )
    lost = list(Job.objects.filter(state=QUEUED, enqueued_at__lte=now - LOST))
    return [job for job in lost if _move(job, (QUEUED,), enqueued_at=now)]


def _learned(job: Job) -> dict[str, object]:
    """What its caller has learned of the job and not saved yet."""
    return {"answer": job.answer, "result": job.result, "applied_at": job.applied_at}


def _jobs() -> QuerySet[Job]:
    return Job.objects.select_related("journal", "actor")


def _stuck() -> Q:
    return Q(state=RUNNING, claimed_at__lt=clock.wall() - LEASE)


def _move(job: Job, states: tuple[str, ...], **changes: object) -> bool:
    changed = Job.objects.filter(uuid=job.uuid, state__in=states).update(**changes) == 1
    job.refresh_from_db(
        fields=["state", "attempts", "sentence", "answer", "result", "applied_at", "ended_at", "enqueued_at"]
    )
    return changed
