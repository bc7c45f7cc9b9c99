"""A step's page: journal says · provider says · verdict, then the bytes and every attempt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from agents.decisions.allowed import ENDED, offer_for_step
from agents.index import prices
from agents.index.expired_approvals import expiry_sentence
from agents.models import Job, PendingIntent
from agents.models.job import DECISION, OPEN_STATES, QUERY_STATUS
from dashboard import signals, timeline, wording
from dashboard.pages import held_again, payload, usage
from dashboard.pages.attempt_lines import AttemptLine, attempt_line
from dashboard.pages.choices import Offered, of_step
from dashboard.pages.opening import Opened
from dashboard.pages.payload import Equality, Payload, SentRequest
from dashboard.pages.task import digest
from dashboard.pages.task_rows import said
from dashboard.pages.task_words import diverging
from dashboard.spans import spans_of, took
from journal.hold_reasons import HOLD_REASONS, HoldReason
from journal.models import Decision, Evidence, ModelCall, Step


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
    foreign: bool
    step: Step
    state: str
    word: str
    hold: HoldReason | None
    lapsed: str
    diverging: str
    reveal: bool
    can_decide: bool
    arguments: Payload | None
    output: Payload | None
    request: SentRequest | None
    key: Equality
    proof: Equality
    error: str
    attempts: tuple[AttemptLine, ...]
    evidence: tuple[Evidence, ...]
    decisions: tuple[tuple[Decision, str], ...]
    calls: tuple[CallLine, ...]
    intent: PendingIntent | None
    offered: Offered | None
    decidable: bool
    job: Job | None
    window: str
    until: datetime | None
    took: float | None
    version: str
    polls: bool
    show_all: str
    now: datetime

    @property
    def href(self) -> str:
        """The page's own address, with what was asked to be shown whole."""
        here = reverse("step", args=[self.journal_id, self.step.task_id, self.step.step_index])
        return here + (f"?all={self.show_all}" if self.show_all else "")

    @property
    def settled(self) -> bool:
        """Whether the step has ended, in our words: another maker's may mean anything."""
        return self.step.status in ("committed", "failed", "abandoned")

    @property
    def task_href(self) -> str:
        return reverse("task", args=[self.journal_id, self.step.task_id])

    @property
    def last_evidence(self) -> Evidence | None:
        return self.evidence[-1] if self.evidence else None

    @property
    def last_attempt(self) -> AttemptLine | None:
        return self.attempts[-1] if self.attempts else None


def build(opened: Opened, step: Step, *, reveal: bool, decides: bool, show_all: str) -> StepPage:
    """Everything the journal, the index and the jobs say of one step."""
    reader, task_id, index = opened.reader, step.task_id, step.step_index
    lapsed = expiry_sentence(step, opened.now)
    step = held_again.step(opened, step, held_again.reasons(opened, task_id))
    attempts, calls = list(reader.attempts(task_id, index)), list(reader.model_calls(task_id, index))
    served = timeline.served_by(step, list(reader.runs(task_id)))
    signal = signals.of_step(step, attempts, live=opened.live, served=served, now=opened.now)
    spans = spans_of(step, attempts, calls, boots=opened.boots, live=opened.live, now=opened.now)
    arguments, output = payloads(step, reveal=reveal, show_all=show_all)
    frozen = reader.request(task_id, index, cap=payload.REQUEST)
    proof = payload.payload_proof(step, arguments, frozen)
    intent = PendingIntent.objects.filter(journal=opened.file, task_id=task_id, step_index=index).first()
    job, pending = newest_job(opened, step), step.status == "pending"
    under_way = job.kind if job and job.is_open else ""
    may_be_decided = pending and under_way != DECISION
    offered = _offered(opened, step, signal.state, asked=under_way == QUERY_STATUS) if may_be_decided else None
    return StepPage(
        journal_id=opened.file.pk,
        agent=opened.name,
        foreign=opened.file.is_foreign,
        step=step,
        state=signal.state,
        word=signal.word,
        hold=_hold(opened, step) if pending else None,
        lapsed=lapsed,
        diverging=_diverging(opened, step, reveal=reveal),
        reveal=reveal,
        can_decide=decides,
        arguments=arguments,
        output=output,
        request=payload.of_request(frozen, proof, reveal=reveal, all_=show_all == "body") if frozen else None,
        key=payload.key_proof(step, arguments),
        proof=proof,
        error=payload.tidy(step.error_json) if reveal else "",
        attempts=tuple(attempt_line(attempt, opened, step, reveal=reveal) for attempt in attempts),
        evidence=tuple(reader.evidence(task_id, index)),
        decisions=tuple((decision, said(decision)) for decision in reader.decisions(task_id, index)),
        calls=tuple(_call(call) for call in calls),
        intent=intent,
        offered=offered if decides else None,
        decidable=offered is not None,
        job=job if under_way or pending else None,
        window=window(intent, opened.now) if intent and not opened.file.is_foreign else "",
        until=intent.window_left_until if intent else None,
        took=took(step, attempts, spans),
        version=version(opened, step, job),
        polls=pending,
        show_all=show_all,
        now=opened.now,
    )


def _hold(opened: Opened, step: Step) -> HoldReason | None:
    """Why the step is held. What the code of an ended task asks for matters no more: none of it runs."""
    task = opened.reader.task(step.task_id) if step.hold_reason == "diverged" else None
    return None if task is not None and task.status in ENDED else HOLD_REASONS.get(step.hold_reason or "")


def _diverging(opened: Opened, step: Step, *, reveal: bool) -> str:
    task = opened.reader.task(step.task_id) if step.hold_reason == "diverged" else None
    if task is None or task.status != "waiting":
        return ""
    said = diverging(step, reveal=reveal)
    return f"{said[:1].upper()}{said[1:]} {HOLD_REASONS['diverged'].advice}"


def _offered(opened: Opened, step: Step, state: str, *, asked: bool) -> Offered | None:
    if opened.file.dialect != "stepkeeper" or opened.file.undecidable:
        return None
    return of_step(opened.file.pk, step, offer_for_step(opened.reader, step), state=state, asked=asked)


def window(intent: PendingIntent | None, now: datetime) -> str:
    """For how long the provider surely still knows the key, in words."""
    until = intent.window_left_until if intent else None
    return wording.key_window(intent.window_text if intent else "", (until - now).total_seconds() if until else None)


def newest_job(opened: Opened, step: Step) -> Job | None:
    """The open decision about this step, else the open question, else the newest job about it."""
    jobs = Job.objects.filter(journal=opened.file, task_id=step.task_id, step_index=step.step_index)
    newest = jobs.order_by("-created_at")
    open_ones = newest.filter(state__in=OPEN_STATES)
    return open_ones.filter(kind=DECISION).first() or open_ones.first() or newest.first()


def version(opened: Opened, step: Step, job: Job | None) -> str:
    """What a poll compares: the journal, the step's own word, and what jobs and the index say of it."""
    attempts = opened.reader.attempts(step.task_id, step.step_index) if step.status == "pending" else ()
    signal = signals.of_step(step, attempts, live=opened.live, served=0, now=opened.now)
    intents = PendingIntent.objects.filter(journal=opened.file, task_id=step.task_id, step_index=step.step_index)
    # Looked at again each half minute: when that was is not shown.
    told = [{**row, "decided_at": None} for row in intents.values()]
    return digest(opened, opened.file.kind, signal, job and (job.uuid, job.state, job.sentence), told)


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


def _call(call: ModelCall) -> CallLine:
    _, price = prices.price_call(call)
    return CallLine(call, usage.of([call]), price.why or f"{price.model} · {price.tier} · {price.version}")
