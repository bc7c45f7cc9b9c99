"""A step's page: the journal's facts, the provider's answers, the verdict, then the bytes and every attempt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents.access import audit
from agents.decisions.allowed import ENDED, offer_for_step
from agents.fleet.agents import load_agent
from agents.index import prices
from agents.index.expired_approvals import expired_approval
from agents.models import Job, PendingIntent
from agents.models.job import DECISION, OPEN_STATES, QUERY_STATUS
from agents.states import PendingFacts, describe_outlook, describe_pending_hold, sum_up_sent
from dashboard.choices import Offered, offer_step_choices
from dashboard.derived_holds import derive_step_hold, load_holds
from dashboard.journal_page import Opened, digest_journal, find_lasting_version, name_version, with_journal
from dashboard.pending import describe_lapsed
from dashboard.steps import payload
from dashboard.steps.attempt_line import AttemptLine, build_attempt_line
from dashboard.steps.payload import (
    Equality,
    SentRequest,
    ShownPayload,
    audit_shown_payloads,
    build_payload,
    build_sent_request,
    prove_key,
    prove_payload,
    shorten_error,
)
from dashboard.tasks.rows import describe_decision
from dashboard.tasks.usage import Usage, sum_usage
from dashboard.tasks.words import describe_divergence
from dashboard.timeline.layout import count_reuses
from dashboard.timeline.spans import measure_duration, measure_spans
from dashboard.timeline.status import describe_doubt, describe_step, list_doubtful_attempts
from dashboard.ui.access import can_decide, can_see_payloads, require_role
from dashboard.ui.format import describe_key_window
from dashboard.ui.forms import PAYLOADS, parse_payload_name
from dashboard.ui.render import page_or_part
from journal import stored_errors
from journal.hold_reasons import HOLD_REASONS, HoldReason
from journal.models import Decision, Evidence, ModelCall, Step, TaskRow
from journal.reader.snapshot import StepSnapshot


@dataclass(frozen=True, slots=True)
class CallLine:
    """One provider response of a model step: its disjoint buckets and its price."""

    call: ModelCall
    used: Usage
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
    outlook: str
    lapsed: str
    diverging: str
    reveal: bool
    can_decide: bool
    arguments: ShownPayload | None
    output: ShownPayload | None
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
    doubt: str
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


def build_step_page(
    opened: Opened, found: StepSnapshot, step: Step, job: Job | None, *, reveal: bool, decides: bool, show_all: str
) -> StepPage:
    """Everything the journal, the index and the jobs say of one step."""
    digest, expired = digest_step(opened, step.task_id, step.step_index, job), expired_approval(step, opened.now)
    step = derive_step_hold(opened, step, load_holds(opened))
    attempts, calls, frozen = found.attempts, found.calls, found.request
    served = count_reuses(step, found.runs)
    signal = describe_step(step, attempts, live=opened.live, served=served, now=opened.now)
    spans = measure_spans(step, attempts, calls, boots=opened.boots, live=opened.live, now=opened.now)
    arguments, output = build_payloads(step, reveal=reveal, show_all=show_all)
    proof = prove_payload(step, arguments, frozen)
    intent = find_intent(opened, step)
    facts = gather_facts(opened, step, found, intent, signal.state)
    pending = step.status == "pending"
    under_way = job.kind if job and job.is_open else ""
    may_be_decided = pending and under_way != DECISION
    offered = (
        _offer_choices(opened, found, step, signal.state, asked=under_way == QUERY_STATUS) if may_be_decided else None
    )
    return StepPage(
        journal_id=opened.file.pk,
        agent=opened.name,
        foreign=opened.file.is_foreign,
        step=step,
        state=signal.state,
        word=signal.word,
        hold=describe_hold_of(found.task, step, facts) if pending else None,
        outlook=describe_outlook(facts, opened.now) if pending else "",
        lapsed=describe_lapsed(expired.actor) if expired else "",
        diverging=_describe_divergence(found.task, step, reveal=reveal),
        reveal=reveal,
        can_decide=decides,
        arguments=arguments,
        output=output,
        request=build_sent_request(frozen, proof, reveal=reveal, all_=show_all == "body") if frozen else None,
        key=prove_key(step, arguments),
        proof=proof,
        error=shorten_error(step.error_json) if reveal else "",
        attempts=tuple(build_attempt_line(attempt, opened, step, reveal=reveal) for attempt in attempts),
        evidence=found.evidence,
        decisions=tuple((decision, describe_decision(decision)) for decision in found.decisions),
        calls=tuple(_build_call_line(call) for call in calls),
        intent=intent,
        offered=offered if decides else None,
        decidable=offered is not None,
        job=job if under_way or pending else None,
        doubt=describe_doubt(list_doubtful_attempts(attempts, found.decisions, found.evidence)),
        window=describe_window(intent, opened.now) if intent and not opened.file.is_foreign else "",
        until=intent.window_left_until if intent else None,
        took=measure_duration(step, attempts, spans),
        version=name_version(opened, digest, moves=signal.state in ("running", "waiting")),
        polls=pending,
        show_all=show_all,
        now=opened.now,
    )


def gather_facts(
    opened: Opened, step: Step, found: StepSnapshot, intent: PendingIntent | None, state: str
) -> PendingFacts:
    """The facts that decide the sentences about a pending step."""
    agent, attempts, task = load_agent(opened.file), found.attempts, found.task
    last = attempts[-1] if attempts else None
    has_raised = last is not None and last.kind == "raised"
    raised = stored_errors.describe_failure(last.output_json)[0] if last else ""
    return PendingFacts(
        agent=agent.state if agent else "unread",
        agent_runs=opened.writer is not None and opened.writer.role == "agent",
        sent=sum_up_sent(attempt.verdict for attempt in attempts),
        hold=step.hold_reason or "",
        due_at=step.next_attempt_at if not step.hold_reason else None,
        is_in_flight=state == "running",
        is_approved=step.decision is not None,
        is_foreign=opened.file.is_foreign,
        task_ended=str(task.status) if task is not None and task.status in ENDED else "",
        changes=step.effect not in ("read_only", "model"),
        raised=(raised or "an exception") if has_raised else "",
        next_sentence=intent.next_sentence if intent and not step.hold_reason else "",
    )


def describe_hold_of(task: TaskRow | None, step: Step, facts: PendingFacts) -> HoldReason | None:
    """Why the step is held. No code of an ended task runs, so it does not matter which steps that code asks for."""
    if step.hold_reason == "diverged" and task is not None and task.status in ENDED:
        return None
    return describe_pending_hold(facts)


def _describe_divergence(task: TaskRow | None, step: Step, *, reveal: bool) -> str:
    if step.hold_reason != "diverged" or task is None or task.status != "waiting":
        return ""
    said = describe_divergence(step, reveal=reveal)
    return f"{said[:1].upper()}{said[1:]} {HOLD_REASONS['diverged'].advice}"


def _offer_choices(opened: Opened, found: StepSnapshot, step: Step, state: str, *, asked: bool) -> Offered | None:
    if opened.file.dialect != "stepkeeper" or opened.file.undecidable:
        return None
    return offer_step_choices(opened.file.pk, step, offer_for_step(step, found), state=state, asked=asked)


def describe_window(intent: PendingIntent | None, now: datetime) -> str:
    """For how long the provider surely still knows the key, in words."""
    until = intent.window_left_until if intent else None
    return describe_key_window(intent.window_text if intent else "", (until - now).total_seconds() if until else None)


def find_intent(opened: Opened, step: Step) -> PendingIntent | None:
    """What the index says of a pending step."""
    intents = PendingIntent.objects.filter(journal=opened.file, task_id=step.task_id, step_index=step.step_index)
    return intents.first()


def find_newest_job(opened: Opened, task_id: str, index: int) -> Job | None:
    """The open decision about this step, else the open question, else the newest job about it."""
    jobs = Job.objects.filter(journal=opened.file, task_id=task_id, step_index=index)
    newest = jobs.order_by("-created_at")
    open_ones = newest.filter(state__in=OPEN_STATES)
    return open_ones.filter(kind=DECISION).first() or open_ones.first() or newest.first()


def digest_step(opened: Opened, task_id: str, index: int, job: Job | None) -> str:
    """What a poll compares: the journal, and what jobs and the index say of the step."""
    intents = PendingIntent.objects.filter(journal=opened.file, task_id=task_id, step_index=index)
    # Looked at again each half minute: when that was is not shown.
    told = [{**row, "decided_at": None} for row in intents.values()]
    return digest_journal(opened, opened.file.kind, job and (job.uuid, job.state, job.sentence), told)


def build_payloads(step: Step, *, reveal: bool, show_all: str) -> tuple[ShownPayload | None, ShownPayload | None]:
    """The stored arguments and output."""
    arguments = build_payload(
        "arguments",
        "Payload",
        step.arguments_json,
        step.arguments_bytes,
        reveal=reveal,
        all_=show_all == "arguments",
        odd="arguments_json" in step.odd,
    )
    output = build_payload(
        "output",
        "Output",
        step.output_json,
        step.output_bytes,
        reveal=reveal,
        all_=show_all == "output",
        odd="output_json" in step.odd,
    )
    return arguments, output


def _build_call_line(call: ModelCall) -> CallLine:
    _, price = prices.price_call(call)
    return CallLine(call, sum_usage([call]), price.why or f"{price.model} · {price.tier} · {price.version}")


@require_safe
@require_role("viewer")
@with_journal
def show_step(request: HttpRequest, opened: Opened, task_id: str, step_index: int) -> HttpResponse:
    """Journal says, provider says, verdict; bytes only for people who may see payloads."""
    job = find_newest_job(opened, task_id, step_index)

    def build() -> StepPage:
        there, found, step = load_step_or_404(opened, task_id, step_index)
        page = build_step_page(
            there,
            found,
            step,
            job,
            reveal=can_see_payloads(request.user),
            decides=can_decide(request.user),
            show_all=parse_payload_name(request.GET.get("all")),
        )
        if page.reveal:
            audit_shown_payloads(request.user, opened, step, page.arguments, page.request, page.output)
        return page

    return page_or_part(
        request,
        "steps/step.html",
        build,
        parts={"step-now": "steps/_now.html"},
        version=find_lasting_version(request, opened, digest_step(opened, task_id, step_index, job)),
    )


@require_safe
@require_role("payload_viewer")
@with_journal
def download_payload(request: HttpRequest, opened: Opened, task_id: str, step_index: int, name: str) -> HttpResponse:
    """The stored bytes of one payload as an attachment, never as something a browser would render."""
    wanted = next((one for one in PAYLOADS if one == name), None)
    data = opened.reader.stored(task_id, step_index, wanted) if wanted else None
    if data is None:
        raise Http404("The journal holds no such payload.")
    audit.record_event(
        "payload.download", actor=request.user, detail=name, journal=opened.file, task_id=task_id, step_index=step_index
    )
    response = HttpResponse(data, content_type="text/plain; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="step-{step_index}-{name}.txt"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def load_step_or_404(opened: Opened, task_id: str, step_index: int) -> tuple[Opened, StepSnapshot, Step]:
    """The journal and the step as one snapshot shows them, with the step's payloads, or 404."""
    found = opened.reader.load_step(task_id, step_index, request_cap=payload.REQUEST)
    if found.step is None:
        raise Http404("No such step in this journal.")
    return opened.with_boots(found.boots), found, found.step
