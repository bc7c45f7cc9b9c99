"""A step's page: journal says · provider says · verdict, then the bytes and every attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from agents import offers
from agents.models import Job, PendingIntent
from dashboard import signals, timeline
from dashboard.pages import payload, usage
from dashboard.pages.choices import Offered, of_step
from dashboard.pages.opening import Opened
from dashboard.pages.payload import Equality, Payload, SentRequest
from dashboard.pages.task import digest
from dashboard.pages.task_rows import said
from journal.holds import HOLDS, Hold
from journal.models import Attempt, Decision, Evidence, ModelCall, Step


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """One dispatch with its verdict and why."""

    attempt: Attempt
    state: str
    word: str
    why: str
    detail: str


@dataclass(frozen=True, slots=True)
class CallLine:
    """One provider response of a model step: its disjoint buckets and its price."""

    call: ModelCall
    used: usage.Usage
    why: str


@dataclass(frozen=True, slots=True)
class StepPage:
    """What the step's page shows. Content is empty for people who may not see payloads; proofs are not."""

    journal_id: int
    agent: str
    step: Step
    state: str
    word: str
    hold: Hold | None
    href: str
    task_href: str
    reveal: bool
    can_decide: bool
    arguments: Payload | None
    output: Payload | None
    request: SentRequest | None
    key: Equality
    proof: Equality
    error: str
    attempts: tuple[AttemptLine, ...]
    dispatches: int
    evidence: tuple[Evidence, ...]
    decisions: tuple[tuple[Decision, str], ...]
    calls: tuple[CallLine, ...]
    intent: PendingIntent | None
    offered: Offered | None
    job: Job | None
    window_left: float | None
    version: str
    polls: bool
    show_all: str
    now: datetime

    @property
    def last_evidence(self) -> Evidence | None:
        return self.evidence[-1] if self.evidence else None

    @property
    def last_attempt(self) -> AttemptLine | None:
        return self.attempts[-1] if self.attempts else None


# What an attempt's kind means, as a sentence after "because".
_WHY = {
    "prepared": "It was never dispatched.",
    "no_outcome": "A dispatch mark is on disk and nothing after it: the process ended in between.",
    "dns": "The host's name did not resolve: no connection existed.",
    "not_connected": "No connection was made: not one byte of the request left.",
    "stale": "The re-check before the first byte failed: the boot or the time was no longer right.",
    "tls": "The TLS handshake failed before any byte of the request.",
    "lost_answer": "The request went out and no answer came back: it may have been carried out.",
    "accepted": "The provider answered with success.",
    "replayed": "The provider answered that it had carried this key out before.",
    "unmarked": "Success on a repeat, but without the promised replay mark: look for a second effect.",
    "rejected": "The provider refused the request as it stands.",
    "rate_limited": "The provider was asked too often and refused before acting.",
    "gateway": "A gateway gave up waiting: neither success nor failure.",
    "raised": "The tool raised an exception: it may have acted before.",
    "settled": "An operator said it was not applied.",
    "other": "No rule of the profile covers this answer.",
}


def dispatches(attempts: Sequence[Attempt]) -> int:
    """What a decision is bound to: attempts that may have left this machine."""
    return sum(attempt.verdict != "not_sent" for attempt in attempts)


def build(opened: Opened, step: Step, *, reveal: bool, decides: bool, show_all: str) -> StepPage:
    """Everything the journal, the index and the jobs say of one step."""
    reader, task_id, index = opened.reader, step.task_id, step.step_index
    attempts = list(reader.attempts(task_id, index))
    served = timeline.served_by(step, list(reader.runs(task_id)))
    signal = signals.of_step(step, attempts, live=opened.live, served=served, now=opened.now)
    arguments, output = payloads(step, reveal=reveal, show_all=show_all)
    frozen = reader.request(task_id, index, cap=payload.REQUEST)
    proof = payload.payload_proof(step, arguments, frozen)
    intent = PendingIntent.objects.filter(journal=opened.file, task_id=task_id, step_index=index).first()
    until = intent.window_left_until if intent else None
    job, pending = newest_job(opened, step), step.status == "pending"
    may_decide = pending and decides and not (job and job.is_open)
    href = reverse("step", args=[opened.file.pk, task_id, index])
    return StepPage(
        journal_id=opened.file.pk,
        agent=opened.name,
        step=step,
        state=signal.state,
        word=signal.word,
        hold=HOLDS.get(step.hold_reason or "") if pending else None,
        href=href + (f"?all={show_all}" if show_all else ""),
        task_href=reverse("task", args=[opened.file.pk, task_id]),
        reveal=reveal,
        can_decide=decides,
        arguments=arguments,
        output=output,
        request=payload.of_request(frozen, proof, reveal=reveal, all_=show_all == "body") if frozen else None,
        key=payload.key_proof(step, arguments),
        proof=proof,
        error=payload.tidy(step.error_json) if reveal else "",
        attempts=tuple(attempt_line(attempt, opened, reveal=reveal) for attempt in attempts),
        dispatches=dispatches(attempts),
        evidence=tuple(reader.evidence(task_id, index)),
        decisions=tuple((decision, said(decision)) for decision in reader.decisions(task_id, index)),
        calls=tuple(_call(call) for call in reader.model_calls(task_id, index)),
        intent=intent,
        offered=_offered(opened, step, signal.state) if may_decide else None,
        job=job if job and (job.is_open or pending) else None,
        window_left=(until - opened.now).total_seconds() if until else None,
        version=version(opened, step, job),
        polls=pending,
        show_all=show_all,
        now=opened.now,
    )


def _offered(opened: Opened, step: Step, state: str) -> Offered | None:
    if opened.file.dialect != "stepkeeper":
        return None
    return of_step(opened.file.pk, step, offers.of_step(opened.reader, step), state=state)


def newest_job(opened: Opened, step: Step) -> Job | None:
    """The newest job about this step, open or ended."""
    jobs = Job.objects.filter(journal=opened.file, task_id=step.task_id, step_index=step.step_index)
    return jobs.order_by("-created_at").first()


def version(opened: Opened, step: Step, job: Job | None) -> str:
    """What a poll compares: the journal and the newest job about the step."""
    return digest(opened, unfinished=step.status == "pending") + (f"-{job.state}" if job else "")


def payloads(step: Step, *, reveal: bool, show_all: str) -> tuple[Payload | None, Payload | None]:
    """The stored arguments and output."""
    arguments = payload.of_text(
        "arguments",
        "Payload",
        step.arguments_json,
        step.arguments_bytes,
        reveal=reveal,
        all_=show_all == "arguments",
        odd="arguments_json" in step.odd,
    )
    output = payload.of_text(
        "output",
        "Output",
        step.output_json,
        step.output_bytes,
        reveal=reveal,
        all_=show_all == "output",
        odd="output_json" in step.odd,
    )
    return arguments, output


def attempt_line(attempt: Attempt, opened: Opened, *, reveal: bool) -> AttemptLine:
    """One attempt in words."""
    signal = signals.of_attempt(attempt, live=opened.live, now=opened.now)
    kind = attempt.kind or ("no_outcome" if attempt.verdict is None and signal.state != "running" else "")
    return AttemptLine(attempt, signal.state, signal.word, _WHY.get(kind, ""), attempt.detail if reveal else "")


def _call(call: ModelCall) -> CallLine:
    price = usage.price_of(call)
    return CallLine(call, usage.of([call]), price.why or f"{price.model} · {price.tier} · {price.version}")
