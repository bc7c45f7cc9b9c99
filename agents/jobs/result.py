"""How a job ends: what the journal says became of its message, and the audit's line about it.

Whoever ends a job, and only they, writes its outcome into the audit: the worker, a page that polls, or watch.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from agents.access import audit
from agents.jobs import states, status_query
from agents.jobs.states import correct_job, finish_job, give_up_jobs, hand_over_job, requeue_job
from agents.models import Job, JournalFile
from agents.models.job import CANARY, DECISION, DONE, EXPIRED, FAILED, QUEUED, REFUSED, WAITING_AGENT
from journal import clock, writer_lock
from journal.errors import JournalUnreadable
from journal.hold_reasons import describe_outcome
from journal.inbox import mailbox
from journal.models import Decision, Writer
from journal.reader.snapshot import StepSnapshot

_NOTHING_SENT = "Nothing was sent because of it."
_UNSENT = "Taken in, but not sent before it expired."


def end_job(job: Job, state: str, sentence: str) -> bool:
    """End an open job. False when it had ended before: the first outcome stays."""
    if not finish_job(job, state, sentence):
        return False
    _audit(job, state, sentence)
    return True


def follow_job(job: Job) -> Job:
    """Bring a job in line with what the journal says about its message; returns it refreshed. Opens one journal."""
    job.refresh_from_db()
    if job.journal is None or job.posted_at is None or job.state not in (WAITING_AGENT, EXPIRED, FAILED):
        return job
    try:
        _look(job, job.journal)
    except JournalUnreadable as error:
        if _is_late(job):
            _end_unread(job, error)
        else:
            hand_over_job(job, f"The journal cannot be read now: {error.message}")
    return job


def follow_waiting_jobs() -> list[Job]:
    """Follow every waiting job; returns those whose agent is gone, so that the worker may do it."""
    free = []
    for job in Job.objects.filter(state=WAITING_AGENT).select_related("journal").order_by("created_at")[:200]:
        followed = follow_job(job)
        waits = followed.state == WAITING_AGENT and followed.journal is not None
        if waits and followed.kind == DECISION and _holder(followed.journal) is None and requeue_job(followed):
            free.append(followed)
    return free


def expire_job(job: Job) -> None:
    """End a queued job whose time is over. What was posted before may have been taken in: the journal says."""
    if job.state != QUEUED or job.expires_at is None or job.expires_at > clock.wall():
        return
    if job.posted_at is None or job.journal is None:
        end_job(
            job, EXPIRED, "Expired before it could be carried out; nothing was sent. Ask again if it is still wanted."
        )
        return
    try:
        _look(job, job.journal)
    except JournalUnreadable as error:
        _end_unread(job, error)


def _end_unread(job: Job, error: JournalUnreadable) -> None:
    sentence = "Its time is over, and the journal that would say what became of it cannot be read now"
    end_job(job, FAILED, f"{sentence}: {error.message}")


def end_overdue_jobs() -> None:
    """End the jobs that no worker will carry out: their time is over, or each attempt killed its worker."""
    for job in states.late_jobs():
        expire_job(job)
    for job in give_up_jobs():
        _audit(job, FAILED, job.sentence)


def waiting_sentence(pid: int | None, role: str | None) -> str:
    """The process that a posted message waits for, in words."""
    who = "the agent" if role in ("agent", None, "unknown") else f"the {role}"
    return f"Waiting for {who} (pid {pid})." if pid is not None else f"Waiting for {who}."


def _look(job: Job, journal: JournalFile) -> None:
    if job.kind == DECISION:
        _follow_decision(job, journal)
    else:
        follow_question(job, journal)


def _follow_decision(job: Job, journal: JournalFile) -> None:
    # Read before the journal: its answer is at least as new as this check of the time.
    late = _is_late(job)
    found = status_query.load_job_step(job, journal)
    decision = next((one for one in found.decisions if one.message_id == job.message_id), None)
    if decision is not None:
        _end_decision(job, journal, found, decision, late=late)
    elif late:
        end_job(job, EXPIRED, f"Expired undelivered: no writer took it in before its time ran out. {_NOTHING_SENT}")
    else:
        hand_over_job(job, _waiting(journal))


def _end_decision(job: Job, journal: JournalFile, found: StepSnapshot, decision: Decision, *, late: bool) -> None:
    job.applied_at = decision.applied_at
    if decision.outcome != "applied":
        end_job(job, *_refused(decision))
        return
    number = decision.consumed_attempt
    if number is None and decision.kind == "replay":
        _end_unused(job, journal, found, decision, late=late)
    elif number:
        _end_sent(job, journal, found, number, late=late)
    elif decision.kind == "replay":
        _done(job, "Applied: the step starts again when its task runs. There was nothing to send.")
    else:
        _done(job, "Applied.")


def _end_sent(job: Job, journal: JournalFile, found: StepSnapshot, number: int, *, late: bool) -> None:
    """An attempt was begun. While its sender lives, the sender's outcome counts, however late it comes."""
    attempt = next((one for one in found.attempts if one.attempt == number), None)
    if attempt is None or attempt.verdict is None:
        # The next writer ends the boot of a killed sender. If no writer comes in time, no outcome will be recorded.
        waits = not late or _holder(journal) is not None
        if attempt is not None and waits and _lives(found, attempt.boot):
            hand_over_job(job, f"Taken in: attempt {number} is under way.")
        else:
            _done(job, f"Applied: attempt {number} was begun for it; its outcome is not on record.")
    elif attempt.verdict == "not_sent":
        _done(job, f"Applied: attempt {number} was begun for it and never left.")
    else:
        _done(job, f"Applied: it sent attempt {number}.")


def _lives(found: StepSnapshot, boot: int) -> bool:
    return any(one.boot == boot and one.ended is None for one in found.boots)


def _end_unused(job: Job, journal: JournalFile, found: StepSnapshot, decision: Decision, *, late: bool) -> None:
    """An attempt uses an approval up. Before that, the approval may expire, and the status is asked first."""
    sent = [one for one in found.attempts if one.decision_id == decision.message_id]
    if sent:
        _end_sent(job, journal, found, sent[-1].attempt, late=late)
    elif not _is_pending(found):
        # If the approval expired before, something else settled the step, and the job stays expired.
        if job.state != EXPIRED:
            _done(job, "Applied: the effect was there already, so nothing was sent.")
    elif late:
        end_job(job, EXPIRED, f"{_UNSENT} {_NOTHING_SENT}")
    else:
        hand_over_job(job, f"Taken in, not sent yet. {_waiting(journal)}")


def _refused(decision: Decision) -> tuple[str, str]:
    """The state and the sentence of a message that the journal's writer refused, at once or later."""
    if decision.outcome == "expired":
        late = "The journal's writer took it in too late." if decision.came_late else _UNSENT
        return EXPIRED, f"{late} {_NOTHING_SENT}"
    if decision.outcome == "superseded":
        return REFUSED, f"Taken in, but not sent: {describe_outcome(decision)}."
    return REFUSED, f"The journal's writer refused it: {decision.outcome_detail.rstrip('.')}."


def _done(job: Job, sentence: str) -> None:
    """End the job as done; one that was given up had been applied after all, and the audit says that too."""
    if not end_job(job, DONE, sentence) and correct_job(job, sentence):
        _audit(job, DONE, sentence)


def _audit(job: Job, state: str, sentence: str) -> None:
    if job.kind == CANARY:
        return
    audit.record_event(
        f"outcome {job.decision or job.kind}",
        actor=job.actor,
        actor_name=job.actor_name,
        allowed=state in (DONE, FAILED),
        detail=sentence,
        journal=job.journal,
        task_id=job.task_id,
        step_index=job.step_index,
        job=job,
    )


def follow_question(job: Job, journal: JournalFile) -> None:
    """Bring a question in line with the inbox and the journal's evidence."""
    if any(message.message_id == job.message_id for message in mailbox.list_messages(journal.path)):
        if _is_late(job):
            end_job(job, EXPIRED, f"Expired undelivered: {_waiting(journal)}")
        else:
            hand_over_job(job, " ".join(filter(None, (job.answer, _waiting(journal)))))
        return
    # The writer took the question in. If the agent asks, its answer comes a little later. Answer and step are read at
    # one instant.
    found = status_query.load_job_step(job, journal)
    answer = job.answer or status_query.newest_answer(job, found)
    if not answer and job.state == EXPIRED:
        return
    if not answer and not _is_pending(found):
        answer = "The step is settled: there was nothing left to ask."
    if not answer and (why_not := status_query.why_not_asked(job, journal, found)):
        end_job(job, REFUSED, f"Refused: {why_not} No answer is on record; ask again if it is still wanted.")
        return
    if not answer and _is_late(job, by=status_query.PATIENCE):
        answer = "The agent took the question in and gave no answer."
    if answer:
        _done(job, answer)
    else:
        hand_over_job(job, "The agent took the question in; it has not answered yet.")


def _is_late(job: Job, *, by: timedelta = timedelta(0)) -> bool:
    return job.expires_at is not None and job.expires_at + by <= clock.wall()


def _is_pending(found: StepSnapshot) -> bool:
    return found.step is not None and found.step.status == "pending"


def _waiting(journal: JournalFile) -> str:
    writer = _holder(journal)
    if writer is None:
        return "Waiting for the agent, which is not running."
    return waiting_sentence(writer.pid, writer.role)


def _holder(journal: JournalFile | None) -> Writer | None:
    return writer_lock.find_holder(Path(journal.path)) if journal else None
