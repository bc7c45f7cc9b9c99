"""The style guide: every part in every state, with long, empty, hostile and right-to-left text."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.fleet.summaries import IntentLine
from agents.models import Job
from dashboard.choices import VERBS, Choice, Offered
from dashboard.jobs import JobPage, show_job_row
from dashboard.pending import PendingPage, Waiting
from dashboard.steps.payload import ShownPayload, build_payload
from dashboard.styleguide.task import HOSTILE, LONG, NOW, RIGHT_TO_LEFT, build_specimen_task
from dashboard.tasks.task import TaskPage
from dashboard.ui.access import require_role
from dashboard.ui.empty_states import EMPTY_STATES
from dashboard.ui.format import describe_key_window
from journal.hold_reasons import HOLD_REASONS

STATES = (
    *("committed", "reused", "running", "not_sent", "unknown", "held", "failed", "abandoned"),
    *("queued", "waiting", "completed", "cancelled", "crashed", "hung", "working", "idle", "stopped"),
    *("applied", "no_effect", "in_progress", "exists", "absent", "warning", "critical", "refused", "expired"),
)


@dataclass(frozen=True, slots=True)
class StyleGuide:
    """Every specimen."""

    states: tuple[str, ...]
    texts: tuple[tuple[str, str], ...]
    effects: tuple[str, ...]
    now: datetime
    digest: str
    timeline: TaskPage
    payloads: tuple[ShownPayload, ...]
    queue: PendingPage
    jobs: tuple[JobPage, ...]
    empty: tuple[str, ...]


def build_style_guide() -> StyleGuide:
    """The specimens; nothing here is read from a journal or a table."""
    texts = (("plain", "open_pull_request"), ("hostile", HOSTILE), ("right to left", RIGHT_TO_LEFT), ("long", LONG))
    return StyleGuide(
        states=STATES,
        texts=(*texts, ("empty", "")),
        effects=("read_only", "mutating", "model", "something else"),
        now=NOW,
        digest="ab12cd34" * 8,
        timeline=build_specimen_task(),
        payloads=tuple(
            _make_payload(name, text) for name, text in (*texts, ("empty object", "{}"), ("big", LONG * 90))
        ),
        queue=_make_queue(),
        jobs=tuple(_make_job(state) for state in ("queued", "running", "waiting_agent", "done", "refused", "expired")),
        empty=tuple(EMPTY_STATES),
    )


def _make_payload(name: str, text: str) -> ShownPayload:
    made = build_payload("arguments", name, text, len(text.encode()), reveal=True, all_=False)
    return made or ShownPayload("arguments", name, 0, "", "", 0, whole=True)


def _make_intent(number: int, tool: str, state: str, hold: str) -> Waiting:
    line = IntentLine(
        journal_id=1,
        task_id=f"specimen-{number}",
        step_index=7,
        agent=RIGHT_TO_LEFT if number == 1 else "billing",
        tool_name=tool,
        effect="mutating",
        transport="http",
        provider="forge",
        key="ab12cd34" * 8,
        payload_sha256="ef56ab78" * 8,
        arguments_bytes=1482,
        dispatches=2,
        sent="unknown",
        raised=False,
        target="forge.example",
        state=state,
        hold_reason=hold,
        differs_at="",
        lapsed_actor="",
        next_action="query",
        next_sentence="Asks the provider under the original key.",
        next_attempt_at=None,
        since=NOW - timedelta(minutes=14 * (number + 1)),
        window_left_until=NOW - timedelta(minutes=3) if hold else NOW + timedelta(hours=3, minutes=12),
        window_text="",
    )
    reason = HOLD_REASONS.get(hold)
    offered = Offered(tuple(Choice(verb, "#") for verb in VERBS.values()), ("No replay: its task is cancelled.",))
    word = f"held: {hold.replace('_', ' ')}" if hold else "its agent is carrying it out"
    window = describe_key_window("", -180.0 if hold else 3 * 3600.0)
    outlook, why = "Nothing: only a person can decide it.", "The key's window has closed."
    return Waiting(line, reason, state, word, window, offered, f"s{number}", why, outlook, agent_runs=True)


def _make_queue() -> PendingPage:
    held = (
        _make_intent(2, "send_invoice", "held", "key_window_closed"),
        _make_intent(1, HOSTILE, "held", "no_key_no_status"),
    )
    return PendingPage(
        held,
        (_make_intent(0, LONG, "in_flight", ""),),
        (),
        (_make_intent(3, "send_mail", "foreign", ""),),
        "",
        "2 intents need your decision.",
        "#",
        "",
        "",
        "",
    )


def _make_job(state: str) -> JobPage:
    job = Job(
        uuid=uuid.UUID(int=1),
        kind="decision",
        decision="replay",
        task_id="specimen",
        state=state,
        actor_name="ann",
        reason=RIGHT_TO_LEFT,
        sentence="Waiting for the agent (pid 4713)." if state == "waiting_agent" else HOSTILE,
        key="ab12cd34" * 8,
        payload_sha256="ef56ab78" * 8,
        dispatches=2,
        created_at=NOW,
        expires_at=NOW + timedelta(minutes=15),
        ended_at=None if state in ("queued", "running", "waiting_agent") else NOW,
    )
    return show_job_row(job, reveal=True)


@require_safe
@require_role("viewer")
def show_style_guide(request: HttpRequest) -> HttpResponse:
    """Long, empty, hostile and right-to-left text included."""
    if not settings.DEBUG:
        raise Http404("Only where STEPKEEPER_DEBUG is on.")
    return render(request, "styleguide/page.html", {"page": build_style_guide()})
