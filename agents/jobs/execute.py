"""What a job does once a worker has it: ask or post the message, try the lock, and leave the rest to its outcome."""

from __future__ import annotations

import logging
from uuid import UUID

from agents import health
from agents.access.roles import can_decide
from agents.catalog import discovery
from agents.decisions import check as decisions
from agents.decisions.check import Binding
from agents.jobs import result as outcome
from agents.jobs import states as leases
from agents.jobs import status_query
from agents.models import Job, JournalFile
from agents.models.job import CANARY, DONE, FAILED, QUERY_STATUS, REFUSED
from journal.errors import JournalBusy, JournalUnreadable, StepkeeperError
from journal.inbox import mailbox

log = logging.getLogger(__name__)

# The worker has other jobs: who holds the journal longer than this takes the message in itself.
WAIT_FOR_LOCK = 2.0


def run(job_id: str) -> None:
    """Carry out one job. Safe to call twice: only the caller that claims its row does anything."""
    job = leases.claim(UUID(job_id))
    if job is None:
        for late in leases.late(job_id=UUID(job_id)):
            outcome.expire(late)
        return
    try:
        _carry_out(job)
    except StepkeeperError as error:
        outcome.end(job, FAILED, str(error))
    except Exception as error:
        log.exception("Job %s failed", job.uuid)
        outcome.end(job, FAILED, f"The worker failed with {type(error).__name__}; its log says where.")


def _carry_out(job: Job) -> None:
    if job.kind == CANARY:
        health.beat("worker")
        leases.finish(job, DONE, "The worker answers.")
        return
    if job.actor is None or not can_decide(job.actor):
        sentence = f"Refused: {job.actor_name} may not decide any more; the role was taken away after it was asked for."
        outcome.end(job, REFUSED, sentence)
        return
    journal = _journal(job)
    if why_not := _unfit(journal):
        outcome.end(job, REFUSED, f"Refused: {why_not} Nothing was sent.")
        return
    if job.kind == QUERY_STATUS:
        # Once it was asked, what was answered may have changed the step already, also where a kill left it unmarked.
        asked = job.posted_at is not None or job.result
        if not asked and (why_not := status_query.outdated(job, journal)):
            outcome.end(job, REFUSED, f"Refused: {why_not} Nothing was asked.")
        elif status_query.ask(job, journal) == "asked":
            _take_in(job, journal)
        else:
            outcome.follow_query(job, journal)
    else:
        if discovery.reader_for(journal).by_decision(job.message_id) is None:
            _post_decision(job, journal)
        _take_in(job, journal)


def _unfit(journal: JournalFile) -> str:
    """Why nothing may be written beside what lies at the journal's path; empty where it is what was decided about."""
    # Raises for a path outside the globs, before anything is written beside it.
    found = discovery.reader_for(journal).state
    if found.readable and journal.uuid and found.uuid != journal.uuid:
        return "another journal stands at this path now than the one that was decided about."
    if found.readable and found.highest_revision < journal.highest_revision:
        return "the journal holds less now than was read of it before."
    return journal.undecidable


def _post_decision(job: Job, journal: JournalFile) -> None:
    assert job.step_index is not None
    assert job.expires_at is not None
    message = decisions.message(
        decisions.kind_of(job.decision),
        message_id=job.message_id,
        created_at=job.created_at,
        expires_at=job.expires_at,
        task_id=job.task_id,
        step_index=job.step_index,
        binding=Binding(job.key, job.payload_sha256, job.dispatches or 0),
        actor=job.actor_name,
        reason=job.reason,
        output_json=job.output_json,
        reference=job.reference,
    )
    # A kill after this line delivers the job again, and the same message again: the writer applies one id once.
    mailbox.post_message(journal.path, message)
    leases.posted(job)


def _take_in(job: Job, journal: JournalFile) -> None:
    """Be the writer if nobody else is; otherwise whoever is takes the message in."""
    from journal.settle import recovery

    lines: list[str] = []
    try:
        # The queue ends a job after 60 s: other steps, whose providers may hang, are not this job's to settle.
        only = (job.task_id, job.step_index) if job.step_index is not None else None
        report = recovery.reconcile_file(journal.path, role="worker", only=only, wait=WAIT_FOR_LOCK)
        lines = list(report.lines)
    except JournalBusy as busy:
        leases.hand_over(job, outcome.waits_for(busy.pid, busy.role), result=job.result)
    else:
        leases.hand_over(job, "The message is posted.", result="\n".join([job.result, *lines]).strip())
    outcome.follow(job)


def _journal(job: Job) -> JournalFile:
    if job.journal is None:
        raise JournalUnreadable("The job names no journal.", kind="missing")
    return job.journal
