"""The confirmation page: the exact bytes, the known facts, and the consequence of a wrong decision."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agents.decisions.allowed import ENDED, read_profile
from agents.index.intents import count_dispatches
from agents.models.job import QUERY_STATUS
from agents.states import PendingFacts
from dashboard.choices import Verb, choose_verb
from dashboard.decisions.binding import Binding, make_binding
from dashboard.journal_page import Opened
from dashboard.steps.attempt_line import AttemptLine, build_attempt_line
from dashboard.steps.payload import (
    Equality,
    SentRequest,
    ShownPayload,
    build_sent_request,
    find_url_host,
    prove_key,
    prove_payload,
)
from dashboard.steps.step import build_payloads, describe_hold_of, describe_window, find_intent, gather_facts
from dashboard.timeline.status import describe_step
from dashboard.ui.forms import ReasonForm
from journal.hold_reasons import HoldReason
from journal.models import Evidence, FrozenRequest, Step
from journal.providers.profile import Profile, StatusQuery
from journal.providers.status_answer import fill_url
from journal.reader.snapshot import StepSnapshot


@dataclass(frozen=True, slots=True)
class DecisionPage:
    """The facts that a person is bound to when they press the button."""

    journal_id: int
    agent: str
    verb: Verb
    step: Step
    word: str
    state: str
    hold: HoldReason | None
    form: ReasonForm
    request: SentRequest | None
    arguments: ShownPayload | None
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
    handler: str
    task_input: str  # the beginning of what the task was submitted with
    waits_for_agent: str  # where nobody runs the tool before its agent is started
    question: Question | None = None
    reveal: bool = True
    show_all: str = "all"

    @property
    def destination(self) -> str:
        """The destination of the bytes, in words."""
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


def bind_decision(opened: Opened, found: StepSnapshot, step: Step, kind: str, *, user_id: int) -> Binding:
    """The binding of a page that is made now."""
    return make_binding(
        journal_id=opened.file.pk,
        task_id=step.task_id,
        step_index=step.step_index,
        kind=kind,
        key=step.idempotency_key or "",
        payload_sha256=step.payload_sha256 or "",
        dispatches=count_dispatches(found.attempts),
        user_id=user_id,
    )


def build_confirmation_page(
    opened: Opened, found: StepSnapshot, step: Step, kind: str, *, form: ReasonForm, bound: Binding
) -> DecisionPage:
    """The page around a form that carries `bound`."""
    attempts, frozen, task = found.attempts, found.request, found.task
    signal = describe_step(step, attempts, live=opened.live, served=0, now=opened.now)
    arguments, _ = build_payloads(step, reveal=True, show_all="arguments")
    changes = step.effect not in ("read_only", "model")
    proof = prove_payload(step, arguments, frozen)
    intent = find_intent(opened, step)
    facts = gather_facts(opened, step, found, intent, signal.state)
    profile = read_profile(step, found.profile_json)
    keyed, ended = profile is None or profile.keyed, task is not None and task.status in ENDED
    return DecisionPage(
        journal_id=opened.file.pk,
        agent=opened.name,
        verb=choose_verb(kind, step.effect, keyed=keyed, ended=ended),
        step=step,
        word=signal.word,
        state=signal.state,
        hold=describe_hold_of(task, step, facts),
        form=form,
        request=build_sent_request(frozen, proof, reveal=True, all_=True) if frozen else None,
        arguments=arguments,
        key=prove_key(step, arguments),
        proof=proof,
        dispatches=bound.dispatches,
        attempts=tuple(build_attempt_line(attempt, opened, step, reveal=True) for attempt in attempts),
        evidence=found.evidence,
        window=describe_window(intent, opened.now),
        until=intent.window_left_until if intent else None,
        expires_at=bound.expires_at,
        sends=kind == "replay" and changes,
        starts=kind == "replay" and not changes,
        changes=changes,
        handler=(task.handler if task else "") or "",
        task_input=(task.input_json if task else "") or "",
        waits_for_agent=_describe_wait(facts, step) if kind == "replay" else "",
        question=build_question(step, profile, frozen) if kind == QUERY_STATUS else None,
    )


def _describe_wait(facts: PendingFacts, step: Step) -> str:
    """Said before a replay is approved: the worker sends HTTP requests itself, and runs nobody's Python code."""
    if facts.agent_runs or step.transport == "http":
        return ""
    return (
        f"Its agent is not running, and {step.tool_name} is code of the agent. Nobody runs it before the agent is "
        "started: if that is after the time below, the approval expires unused."
    )


@dataclass(frozen=True, slots=True)
class Question:
    """One question about a step's key. `method` is empty where its agent asks the tool's own `status=`."""

    method: str = ""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    canary: str = ""  # asked too, where the answer is that there is no effect
    refs: tuple[str, ...] = ()
    origin: str = ""  # the part of the address that a reference stands in, where one does

    @property
    def whom(self) -> str:
        """The name of the service or tool that is asked, for a button."""
        return find_url_host(self.url) if self.method else "its agent"


def build_question(step: Step, profile: Profile | None, request: FrozenRequest | None) -> Question | None:
    """The status check that would be made now; None if none is possible."""
    if profile is None or profile.status is None:
        return None
    if request is None or profile.status.by_tool:
        return Question()
    return _build_http_question(profile.status, request, step.idempotency_key or "")


def _build_http_question(query: StatusQuery, request: FrozenRequest, key: str) -> Question:
    origin, names = _find_origin(request)
    headers = [(one.name, one.text + (f"${{{one.env}}}" if one.env else "")) for one in query.headers]
    if not any(name.lower() == "user-agent" for name, _ in headers):
        headers.append(("User-Agent", "stepkeeper"))
    method, _, path = query.visible.partition(" ")
    return Question(
        method=query.method,
        url=fill_url(query.url, origin=origin, key=key),
        headers=tuple(headers),
        canary=f"{method} {fill_url(path.strip(), origin=origin, key=key)}" if query.visible else "",
        # Whoever asks resolves those of the request's own address too, wherever the question goes.
        refs=tuple(dict.fromkeys([*names, *(one.env for one in query.headers if one.env)])),
        origin=origin if names and query.url.startswith("/") else "",
    )


def _find_origin(request: FrozenRequest) -> tuple[str, tuple[str, ...]]:
    """Scheme, host and port as they are stored, and the references in them; a leading one stands for all three."""
    url, refs = request.url, sorted((ref for ref in request.refs if ref[0] == "url"), key=lambda ref: ref[1])
    if refs and refs[0][1] == 0:
        return url[: refs[0][2]], (refs[0][3],)
    start = url.find("://") + 3
    end = next((place for place in range(start, len(url)) if url[place] in "/?#"), len(url))
    return url[:end], tuple(ref[3] for ref in refs if ref[1] < end)
