"""A worker's way through one job: ask the provider or post the message, try the lock, record the outcome."""

from __future__ import annotations

import logging
from uuid import UUID

from agents import health
from agents.access.roles import can_decide
from agents.catalog import discovery
from agents.decisions import check
from agents.decisions.check import StepBinding, parse_kind
from agents.jobs import states, status_query
from agents.jobs.result import end_job, expire_job, follow_job, follow_question, waiting_sentence
from agents.jobs.states import claim_job, finish_job, hand_over_job, mark_posted
from agents.models import Job, JournalFile
from agents.models.job import CANARY, DONE, FAILED, QUERY_STATUS, REFUSED
from journal.errors import JournalBusy, JournalUnreadable, StepkeeperError
from journal.inbox import mailbox

log = logging.getLogger(__name__)

# The worker has other jobs: who holds the journal longer than this takes the message in itself.
WAIT_FOR_LOCK = 2.0


def execute_job(job_id: str) -> None:
    """Carry out one job. Safe to call twice: only the caller that claims its row does anything."""
    job = claim_job(UUID(job_id))
    if job is None:
        for late in states.late_jobs(job_id=UUID(job_id)):
            expire_job(late)
        return
    try:
        _carry_out(job)
    except StepkeeperError as error:
        end_job(job, FAILED, str(error))
    except Exception as error:
        log.exception("Job %s failed", job.uuid)
        end_job(job, FAILED, f"The worker failed with {type(error).__name__}; its log says where.")


def _carry_out(job: Job) -> None:
    if job.kind == CANARY:
        health.record_beat("worker")
        finish_job(job, DONE, "The worker answers.")
        return
    if job.actor is None or not can_decide(job.actor):
        sentence = f"Refused: {job.actor_name} may not decide any more; the role was taken away after it was asked for."
        end_job(job, REFUSED, sentence)
        return
    journal = _journal(job)
    if why_not := _unfit(journal):
        end_job(job, REFUSED, f"Refused: {why_not} Nothing was sent.")
        return
    if job.kind == QUERY_STATUS:
        # Once the provider was asked, its answer may have changed the step already, even if a kill left no mark of it.
        asked = job.posted_at is not None or job.answer
        if not asked and (why_not := status_query.why_outdated(job, journal)):
            end_job(job, REFUSED, f"Refused: {why_not} Nothing was asked.")
        elif status_query.ask_status(job, journal) == "asked":
            _take_in(job, journal)
        else:
            follow_question(job, journal)
    else:
        if discovery.reader_for(journal).by_decision(job.message_id) is None:
            _post_decision(job, journal)
        _take_in(job, journal)


def _unfit(journal: JournalFile) -> str:
    """Why no message may be written beside this file; empty if the file is the journal that the decision is about."""
    # Raises for a path outside the globs, before anything is written beside it.
    found = discovery.reader_for(journal).state
    if found.readable and journal.uuid and found.uuid != journal.uuid:
        return "another journal stands at this path now than the one that was decided about."
    if found.readable and found.highest_revision < journal.highest_revision:
        return "the journal holds less now than was read of it before."
    return journal.undecidable


def _post_decision(job: Job, journal: JournalFile) -> None:
    assert job.expires_at is not None
    message = check.decision_message(
        parse_kind(job.decision),
        message_id=job.message_id,
        created_at=job.created_at,
        expires_at=job.expires_at,
        task_id=job.task_id,
        step_index=job.step_index,
        binding=StepBinding(job.key, job.payload_sha256, job.dispatches or 0),
        actor=job.actor_name,
        reason=job.reason,
        output_json=job.output_json,
        reference=job.reference,
    )
    # A kill after this line delivers the job again, and the same message again: the writer applies one id once.
    mailbox.post_message(journal.path, message)
    mark_posted(job)


def _take_in(job: Job, journal: JournalFile) -> None:
    """Become the writer if the lock is free; otherwise the present writer applies the message."""
    from journal.settle import visit

    lines: list[str] = []
    try:
        # The queue ends a job after 60 s: other steps, whose providers may hang, are not this job's to settle.
        # A task that is cancelled has no step of its own to settle: index -1 is none.
        only = (job.task_id, -1 if job.step_index is None else job.step_index)
        report = visit.reconcile_file(journal.path, role="worker", only=only, wait=WAIT_FOR_LOCK)
        lines = list(report.lines)
    except JournalBusy as busy:
        hand_over_job(job, waiting_sentence(busy.pid, busy.role))
    else:
        job.result = "\n".join(filter(None, (job.result, *lines)))
        hand_over_job(job, "The message is posted.")
    follow_job(job)


def _journal(job: Job) -> JournalFile:
    if job.journal is None:
        raise JournalUnreadable("The job names no journal.", kind="missing")
    return job.journal
