"""Query status now: the worker asks the provider itself if it can, whichever process holds the journal."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Literal

from agents.catalog import discovery
from agents.index.intents import count_dispatches
from agents.jobs.states import hand_over_job, mark_posted
from agents.models import Job, JournalFile
from journal import clock, writer_lock
from journal.errors import JournalUnreadable
from journal.http import frozen_request
from journal.inbox import mailbox
from journal.models import Answer, FrozenRequest, Step
from journal.providers.parse import read_stored_profile
from journal.providers.profile import Profile
from journal.reader.snapshot import StepSnapshot

# A question that was taken in time may be answered a little after it expires.
PATIENCE = timedelta(minutes=1)
_DETAIL = 2000  # characters kept of a provider's answer beside the evidence itself
_WORDS: dict[Answer, str] = {
    "exists": "The provider says the effect exists.",
    "absent": "The provider says there is no such effect.",
    "in_progress": "The provider says it is still at it.",
    "unknown": "The provider gave no answer that decides anything.",
}


def ask_status(job: Job, journal: JournalFile) -> Literal["asked", "left"]:
    """Ask over HTTP and post the answer as evidence, or leave a message for the agent to ask.

    Only the agent can ask a Python tool's `status=`, and only a process with the credentials can ask over HTTP.
    Raises JournalUnreadable when the step cannot be read any more.
    """
    found = load_job_step(job, journal)
    step, request = _require_step(job, found), found.request
    profile = read_stored_profile(step.provider, found.profile_json)[0] if found.profile_json else None
    if profile is None or profile.status is None:
        raise JournalUnreadable(
            f"Step {step.step_index} of {step.task_id}: its provider knows no status query.",
            kind="no_status",
            hint="Look there yourself, then decide.",
        )
    if request is None or profile.status.by_tool:
        return _leave(job, journal, step, "Only the agent can ask for this tool's status.")
    return _ask_http(job, journal, found, step, profile, request)


def why_outdated(job: Job, journal: JournalFile) -> str:
    """Why the step is not the one the question was asked about, as a sentence; empty where it is."""
    return _outdated(job, load_job_step(job, journal))


def why_not_asked(job: Job, journal: JournalFile, found: StepSnapshot) -> str:
    """Why the agent that took the question in had nothing to ask, as a sentence; empty where it may still answer."""
    if why_not := _outdated(job, found):
        return why_not
    # One of the attempts that the page showed. It was in flight too when the question was taken.
    return "An attempt of the step is in flight: nobody asks before it ends." if _in_flight(found, journal) else ""


def load_job_step(job: Job, journal: JournalFile) -> StepSnapshot:
    """What the journal says now of the step that a job is about; of a job about a task, its decision alone."""
    reader = discovery.reader_for(journal)
    if job.step_index is not None:
        return reader.load_step(job.task_id, job.step_index)
    decision = reader.by_decision(job.message_id)
    return StepSnapshot(decisions=() if decision is None else (decision,))


def _outdated(job: Job, found: StepSnapshot) -> str:
    step = _require_step(job, found)
    shown = (job.key, job.payload_sha256, job.dispatches)
    if shown == (step.idempotency_key or "", step.payload_sha256 or "", count_dispatches(found.attempts)):
        return ""
    return "The step has changed since it was asked about: its key, its payload or its dispatches are others."


def newest_answer(job: Job, found: StepSnapshot) -> str:
    """The newest answer since the question, up to PATIENCE after it expires; empty while there is none."""
    if job.posted_at is None or job.step_index is None:
        return ""
    until = job.expires_at + PATIENCE if job.expires_at else None
    asked = [one for one in found.evidence if one.asked_at is not None and one.asked_at >= job.created_at]
    since = [one for one in asked if one.asked_at is not None and (until is None or one.asked_at <= until)]
    if not since:
        return ""
    job.detail = since[-1].detail
    job.save(update_fields=["detail"])
    return _said(since[-1].answer, since[-1].http_status)


def _ask_http(
    job: Job, journal: JournalFile, found: StepSnapshot, step: Step, profile: Profile, request: FrozenRequest
) -> Literal["asked", "left"]:
    from journal.http.secrets import Secrets
    from journal.settle.dispatch import Intent
    from journal.settle.status_check import ask_over_http, build_evidence, evidence_message, newest_dispatch

    # Read before asking: an attempt that starts meanwhile is not the one this answer is about.
    newest, reader = newest_dispatch(found.attempts), discovery.reader_for(journal)
    marks = reader.sent_with(step.task_id, step.step_index, newest) if newest else None
    request, in_flight = frozen_request.as_sent(request, marks), _in_flight(found, journal)
    secrets = Secrets()
    asked = clock.moment()
    try:
        answer = ask_over_http(Intent(step, profile, request), secrets)
    except frozen_request.MissingReference as missing:
        return _leave(job, journal, step, f"{missing.message} The agent has to ask.")
    evidence = build_evidence(step, found.attempts, asked, answer, secrets, source="worker", in_flight=in_flight)
    message = evidence_message(evidence) | {"message_id": job.message_id, "created_at": clock.text(job.created_at)}
    job.answer, job.detail = _said(answer.answer, answer.http_status), evidence.detail[:_DETAIL]
    if in_flight and answer.answer == "absent":
        job.answer += " An attempt was in flight while it was asked, so this proves nothing."
    job.save(update_fields=["answer", "detail"])
    # A kill before this line asks again: a question changes nothing.
    mailbox.post_message(journal.path, message)
    mark_posted(job)
    return "asked"


def _leave(job: Job, journal: JournalFile, step: Step, why: str) -> Literal["left"]:
    mailbox.post_message(
        journal.path,
        {
            "kind": "status",
            "message_id": job.message_id,
            "created_at": clock.text(job.created_at),
            "task_id": step.task_id,
            "step_index": step.step_index,
            "actor": job.actor_name,
            **_binding(job),
        },
    )
    mark_posted(job)
    hand_over_job(job, why)
    return "left"


def _binding(job: Job) -> dict[str, object]:
    """The facts that the page showed. The agent asks nothing about another step, or after the question expired."""
    return {
        "expires_at": clock.text(job.expires_at) if job.expires_at else None,
        "key": job.key,
        "payload_sha256": job.payload_sha256,
        "dispatches": job.dispatches,
    }


def _in_flight(found: StepSnapshot, journal: JournalFile) -> bool:
    """Whether a dispatch of the living writer has no outcome yet. Then the answer `absent` proves nothing."""
    if not found.attempts or found.attempts[-1].verdict is not None:
        return False
    newest = max((boot.boot for boot in found.boots), default=0)
    return found.attempts[-1].boot == newest and writer_lock.find_holder(Path(journal.path)) is not None


def _require_step(job: Job, found: StepSnapshot) -> Step:
    if found.step is None:
        raise JournalUnreadable(f"Step {job.step_index} of {job.task_id}: it is not there any more.", kind="missing")
    return found.step


def _said(answer: Answer, http_status: int | None) -> str:
    """The answer in our words. Viewers and the audit read them, so they quote nothing from the provider."""
    status = f" (HTTP {http_status})" if http_status is not None else ""
    return f"{_WORDS[answer]}{status}"
