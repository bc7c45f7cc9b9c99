"""What a job does once a worker has it: post the message, try the lock, follow it to its end."""

from __future__ import annotations

import logging
from pathlib import Path
from uuid import UUID

from agents import audit, decisions, discovery, health, leases, status_query
from agents.decisions import Binding
from agents.models import Job, JournalFile
from agents.models.job import CANARY, DECISION, DONE, EXPIRED, FAILED, QUERY_STATUS, REFUSED, WAITING_AGENT
from agents.roles import can_decide
from journal import clock, inbox, ownership
from journal.errors import JournalBusy, JournalUnreadable, StepkeeperError
from journal.models import Decision, Writer
from journal.reader import Reader

log = logging.getLogger(__name__)

# The worker has other jobs: who holds the journal longer than this takes the message in itself.
WAIT_FOR_LOCK = 2.0


def run(job_id: str) -> None:
    """Carry out one job. Safe to call twice: only the caller that claims its row does anything."""
    job = leases.claim(UUID(job_id))
    if job is None:
        return
    try:
        _carry_out(job)
    except StepkeeperError as error:
        leases.finish(job, FAILED, str(error))
    except Exception as error:
        log.exception("Job %s failed", job.uuid)
        leases.finish(job, FAILED, f"The worker failed with {type(error).__name__}; its log says where.")


def follow(job: Job) -> Job:
    """Bring a job in line with what the journal says about its message; returns it refreshed. Opens one journal."""
    job.refresh_from_db()
    if job.journal is None or job.posted_at is None or job.state not in (WAITING_AGENT, EXPIRED, FAILED):
        return job
    try:
        if job.kind == DECISION:
            _follow_decision(job, job.journal)
        else:
            _follow_query(job, job.journal)
    except JournalUnreadable as error:
        leases.hand_over(job, f"The journal cannot be read now: {error.message}", result=job.result)
    return job


def follow_waiting() -> list[Job]:
    """Follow every waiting job; returns those whose agent is gone, so that the worker may do it."""
    free = []
    for job in Job.objects.filter(state=WAITING_AGENT).select_related("journal").order_by("created_at")[:200]:
        followed = follow(job)
        waits = followed.state == WAITING_AGENT and followed.journal is not None
        if waits and followed.kind == DECISION and _holder(followed.journal) is None and leases.requeue(followed):
            free.append(followed)
    return free


def _carry_out(job: Job) -> None:
    if job.kind == CANARY:
        health.beat("worker")
        leases.finish(job, DONE, "The worker answers.")
        return
    if job.actor is None or not can_decide(job.actor):
        sentence = f"Refused: {job.actor_name} may not decide any more."
        leases.finish(job, REFUSED, sentence)
        audit.record(
            f"job {job.decision or job.kind}",
            actor=job.actor,
            actor_name=job.actor_name,
            allowed=False,
            detail="The role was taken away between the request and the work.",
            journal=job.journal,
            task_id=job.task_id,
            step_index=job.step_index,
            job=job,
        )
        return
    journal = _journal(job)
    discovery.reader_for(journal)  # raises for a path outside the globs, before anything is written beside it
    if job.kind == QUERY_STATUS:
        if status_query.ask(job, journal) == "asked":
            _take_in(job, journal)
        else:
            _follow_query(job, journal)
    else:
        if discovery.reader_for(journal).by_decision(job.message_id) is None:
            _post_decision(job, journal)
        _take_in(job, journal)


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
    inbox.post(journal.path, message)
    leases.posted(job)


def _take_in(job: Job, journal: JournalFile) -> None:
    """Be the writer if nobody else is; otherwise whoever is takes the message in."""
    from journal import recovery

    lines: list[str] = []
    try:
        report = recovery.reconcile_file(journal.path, role="worker", providers=None, wait=WAIT_FOR_LOCK)
        lines = list(report.lines)
    except JournalBusy as busy:
        leases.hand_over(job, _waits_for(busy.pid, busy.role), result=job.result)
    else:
        leases.hand_over(job, "The message is posted.", result="\n".join([job.result, *lines]).strip())
    follow(job)


def _follow_decision(job: Job, journal: JournalFile) -> None:
    reader = discovery.reader_for(journal)
    decision = reader.by_decision(job.message_id)
    if decision is not None:
        _end(job, journal, reader, decision)
    elif job.expires_at is not None and job.expires_at <= clock.wall():
        _finish(
            job,
            EXPIRED,
            "Expired undelivered: no writer took it in before its time ran out. Nothing was sent because of it.",
        )
    else:
        leases.hand_over(job, _waiting(journal), result=job.result)


def _end(job: Job, journal: JournalFile, reader: Reader, decision: Decision) -> None:
    at = f" at {clock.text(decision.applied_at)[:19]}Z" if decision.applied_at else ""
    if decision.outcome.startswith("refused"):
        _finish(job, REFUSED, f"The journal's writer refused it{at}: {decision.outcome.partition(': ')[2]}.")
        return
    if decision.consumed_attempt is not None:
        sentence = f"Applied{at}: it sent attempt {decision.consumed_attempt}."
    elif decision.kind in ("replay", "approve") and _is_pending(job, reader):
        # An approval is used up by its attempt; until then it may still expire, and status is asked first.
        leases.hand_over(job, f"Taken in{at}, not sent yet. {_waiting(journal)}", result=job.result)
        return
    elif decision.kind in ("replay", "approve"):
        sentence = f"Applied{at}: the effect was there already, so nothing was sent."
    else:
        sentence = f"Applied{at}."
    if not _finish(job, DONE, sentence):
        leases.correct(job, sentence, result=job.result)


def _finish(job: Job, state: str, sentence: str) -> bool:
    """End a decision's job; whoever ends it, and only they, writes the outcome into the audit."""
    if not leases.finish(job, state, sentence, result=job.result):
        return False
    audit.record(
        f"outcome {job.decision}",
        actor=job.actor,
        actor_name=job.actor_name,
        allowed=state == DONE,
        detail=sentence,
        journal=job.journal,
        task_id=job.task_id,
        step_index=job.step_index,
        job=job,
    )
    return True


def _is_pending(job: Job, reader: Reader) -> bool:
    step = reader.step(job.task_id, job.step_index, cap=1) if job.step_index is not None else None
    return step is not None and step.status == "pending"


def _follow_query(job: Job, journal: JournalFile) -> None:
    waits = any(message.message_id == job.message_id for message in inbox.pending(journal.path))
    if not waits:
        _end_query(job, journal)
    elif job.expires_at is not None and job.expires_at <= clock.wall():
        leases.finish(job, EXPIRED, f"Expired undelivered: {_waiting(journal)}", result=job.result)
    else:
        leases.hand_over(job, " ".join(filter(None, (job.result, _waiting(journal)))), result=job.result)


def _end_query(job: Job, journal: JournalFile) -> None:
    """The question was taken in; where the agent asks, its answer comes a little later."""
    answer = job.result or status_query.newest_answer(job, journal)
    if not answer and not _is_pending(job, discovery.reader_for(journal)):
        answer = "The step is settled: there was nothing left to ask."
    if not answer and job.expires_at is not None and job.expires_at <= clock.wall():
        answer = "The agent took the question in and gave no answer."
    if not answer:
        leases.hand_over(job, "The agent took the question in; it has not answered yet.")
    elif not leases.finish(job, DONE, answer, result=job.result):
        leases.correct(job, answer, result=job.result)


def _waiting(journal: JournalFile) -> str:
    writer = _holder(journal)
    if writer is None:
        return "Waiting for the agent, which is not running."
    return _waits_for(writer.pid, writer.role)


def _waits_for(pid: int | None, role: str | None) -> str:
    who = "the agent" if role in ("agent", None, "unknown") else f"the {role}"
    return f"Waiting for {who} (pid {pid})." if pid is not None else f"Waiting for {who}."


def _holder(journal: JournalFile | None) -> Writer | None:
    return ownership.holder(Path(journal.path)) if journal else None


def _journal(job: Job) -> JournalFile:
    if job.journal is None:
        raise JournalUnreadable("The job names no journal.", kind="missing")
    return job.journal
