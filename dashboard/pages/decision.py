"""The confirmation page: the exact bytes, what is known, and what happens if the person is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agents.decisions.allowed import ENDED, stored_profile
from agents.index.intents import count_dispatches
from agents.models import PendingIntent
from agents.models.job import QUERY_STATUS
from dashboard import binding, signals
from dashboard.forms import ReasonForm
from dashboard.pages import payload, question
from dashboard.pages.attempt_lines import AttemptLine, attempt_line
from dashboard.pages.opening import Opened
from dashboard.pages.payload import Equality, Payload, SentRequest
from dashboard.pages.question import Question
from dashboard.pages.step import payloads, window
from dashboard.pages.verbs import Verb, verb_of
from journal.hold_reasons import HOLD_REASONS, HoldReason
from journal.models import Evidence, Step


@dataclass(frozen=True, slots=True)
class DecisionPage:
    """What a person is bound to when they press the button."""

    journal_id: int
    agent: str
    verb: Verb
    step: Step
    word: str
    state: str
    hold: HoldReason | None
    form: ReasonForm
    request: SentRequest | None
    arguments: Payload | None
    key: Equality
    proof: Equality
    dispatches: int
    attempts: tuple[AttemptLine, ...]
    evidence: tuple[Evidence, ...]
    window: str
    until: datetime | None
    expires_at: datetime
    sends: bool  # it makes bytes go out
    starts: bool  # it starts again what changes nothing outside
    changes: bool
    question: Question | None = None
    reveal: bool = True
    show_all: str = "all"

    @property
    def destination(self) -> str:
        """Where the bytes go, in words."""
        return self.request.host if self.request else f"the tool {self.step.tool_name}"

    @property
    def bytes(self) -> str:
        body = self.request.body if self.request else self.arguments
        return body.label if body else "0 bytes"

    @property
    def button(self) -> str:
        """The final action names its effect."""
        if self.sends:
            return f"{self.verb.button}: sends {self.bytes} to {self.destination}"
        if self.starts:
            return f"{self.verb.button}: starts {self.step.tool_name} again"
        if self.question:
            return f"{self.verb.button}: asks {self.question.whom}"
        return f"{self.verb.button}: sends nothing"


def bind(opened: Opened, step: Step, kind: str, *, user_id: int) -> binding.Binding:
    """What a page made now binds its decision to."""
    attempts = opened.reader.attempts(step.task_id, step.step_index)
    return binding.make(
        journal_id=opened.file.pk,
        task_id=step.task_id,
        step_index=step.step_index,
        kind=kind,
        key=step.idempotency_key or "",
        payload_sha256=step.payload_sha256 or "",
        dispatches=count_dispatches(attempts),
        user_id=user_id,
    )


def build(opened: Opened, step: Step, kind: str, *, form: ReasonForm, bound: binding.Binding) -> DecisionPage:
    """The page around a form that carries `bound`."""
    reader, task_id, index = opened.reader, step.task_id, step.step_index
    attempts = reader.attempts(task_id, index)
    signal = signals.of_step(step, attempts, live=opened.live, served=0, now=opened.now)
    frozen = reader.request(task_id, index, cap=payload.REQUEST)
    arguments, _ = payloads(step, reveal=True, show_all="arguments")
    changes = step.effect not in ("read_only", "model")
    proof = payload.payload_proof(step, arguments, frozen)
    intent = PendingIntent.objects.filter(journal=opened.file, task_id=task_id, step_index=index).first()
    profile = stored_profile(reader, step)
    task = reader.task(task_id)
    keyed, ended = profile is None or profile.keyed, task is not None and task.status in ENDED
    return DecisionPage(
        journal_id=opened.file.pk,
        agent=opened.name,
        verb=verb_of(kind, step.effect, keyed=keyed, ended=ended),
        step=step,
        word=signal.word,
        state=signal.state,
        hold=HOLD_REASONS.get(step.hold_reason or ""),
        form=form,
        request=payload.of_request(frozen, proof, reveal=True, all_=True) if frozen else None,
        arguments=arguments,
        key=payload.key_proof(step, arguments),
        proof=proof,
        dispatches=bound.dispatches,
        attempts=tuple(attempt_line(attempt, opened, step, reveal=True) for attempt in attempts),
        evidence=tuple(reader.evidence(task_id, index)),
        window=window(intent, opened.now),
        until=intent.window_left_until if intent else None,
        expires_at=bound.expires_at,
        sends=kind == "replay" and changes,
        starts=kind == "replay" and not changes,
        changes=changes,
        question=question.of_step(step, profile, frozen) if kind == QUERY_STATUS else None,
    )
