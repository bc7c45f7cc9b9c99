"""The pending page: intents and held steps, the oldest on top and open, the others folded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents.decisions.allowed import ENDED
from agents.fleet import queries
from agents.fleet.queries import list_pending
from agents.fleet.summaries import IntentLine
from agents.models import PendingIntent
from agents.models.pending_intent import FOREIGN, IN_FLIGHT
from dashboard.choices import Offered, offer_line_choices
from dashboard.timeline.status import lower_first
from dashboard.ui.access import can_decide, can_see_payloads, require_role
from dashboard.ui.format import describe_key_window
from dashboard.ui.render import digest_shown, make_page_href, page_or_part
from dashboard.ui.url_converters import encode_task_id
from journal import clock
from journal.hold_reasons import HOLD_REASONS, HoldReason

LIMIT = 200


@dataclass(frozen=True, slots=True)
class Waiting:
    """One intent of the queue."""

    line: IntentLine
    hold: HoldReason | None
    state: str
    word: str
    window: str
    offered: Offered | None
    anchor: str
    more: str

    @property
    def recovery(self) -> str:
        """The next action of recovery, if nobody decides."""
        if self.line.state == FOREIGN:
            return "nothing: recovery leaves journals of other makers alone."
        if self.line.needs_person:
            return "nothing by itself: no machine may decide this."
        return self.line.next_sentence or self.line.next_action or "look at it when its agent starts."


@dataclass(frozen=True, slots=True)
class PendingPage:
    """The queue: what waits for a person first, then what time or recovery settles, then what other makers wrote.

    `sentence` is about all of it, not about this page of it; `first_href` is empty on the first page.
    """

    held: tuple[Waiting, ...]
    others: tuple[Waiting, ...]
    foreign: tuple[Waiting, ...]
    agent: str  # whose intents these are; empty: all agents
    sentence: str
    href: str
    next_href: str
    first_href: str
    version: str

    @property
    def is_empty(self) -> bool:
        return not self.held and not self.others and not self.foreign


def build_pending_page(*, agent: str, decides: bool, reveal: bool, after: str) -> PendingPage:
    """A page of the pending intents of one agent, or of all. Raises ValueError for an invalid cursor."""
    now = clock.wall()
    page, held = list_pending(agent=agent, after=after, limit=LIMIT), queries.count_held(agent=agent)
    url = reverse("pending")
    waiting = tuple(_build_waiting(line, now, decides=decides, reveal=reveal) for line in page.items)
    return PendingPage(
        held=tuple(each for each in waiting if each.line.needs_person),
        others=tuple(each for each in waiting if not each.line.needs_person and each.line.state != FOREIGN),
        foreign=tuple(each for each in waiting if each.line.state == FOREIGN),
        agent=agent,
        sentence=_describe_queue(held, others=bool(after or waiting)),
        href=make_page_href(url, after, agent=agent),
        next_href=make_page_href(url, page.next_cursor, agent=agent) if page.next_cursor else "",
        first_href=make_page_href(url, "", agent=agent) if after else "",
        version=digest_shown(page, held),
    )


def _build_waiting(line: IntentLine, now: datetime, *, decides: bool, reveal: bool) -> Waiting:
    hold = HOLD_REASONS.get(line.hold_reason)
    until = line.window_left_until
    word = {
        "held": f"held: {lower_first(hold.label) if hold else line.hold_reason.replace('_', ' ')}",
        "in_flight": "its agent is at it",
        "waiting": "due later",
        "unresolved": "outcome unknown",
        "foreign": "pending; outcome unknown",
    }.get(line.state, line.state.replace("_", " "))
    return Waiting(
        line=line,
        hold=hold if line.needs_person else None,
        state=line.state,
        word=word,
        window=describe_key_window(line.window_text, (until - now).total_seconds() if until else None),
        offered=offer_line_choices(line) if decides else None,
        more=_describe_more(line, reveal=reveal),
        anchor=f"{encode_task_id(line.task_id)}-{line.step_index}",
    )


def describe_pending(intent: IntentLine | PendingIntent) -> str:
    """Why an intent is pending, besides its hold reason."""
    if intent.state == FOREIGN:
        return "This journal was not made by stepkeeper: only its own agent can settle its steps."
    if intent.state == IN_FLIGHT:
        return "Its agent is at it now."
    if intent.task_status in ENDED:
        return f"Its task is {intent.task_status}: recovery leaves the step as it is."
    if intent.differs_at:
        return f"First difference: {intent.differs_at}."
    return intent.next_sentence


def describe_lapsed(actor: str) -> str:
    """What became of an approval that was not used in time."""
    return f"The approval by {actor} expired before anything was sent."


def _describe_more(line: IntentLine, *, reveal: bool) -> str:
    said = (
        describe_pending(line),
        describe_lapsed(line.lapsed_actor) if line.lapsed_actor else "",
        line.detail if reveal else "",
    )
    return " ".join(filter(None, said))


def _describe_queue(held: int, *, others: bool) -> str:
    if not held:
        return "Nothing needs your decision." if others else "Nothing is pending."
    return "One intent needs your decision." if held == 1 else f"{held:,} intents need your decision."


@require_safe
@require_role("viewer")
def show_pending(request: HttpRequest) -> HttpResponse:
    """All journals, oldest first."""
    try:
        page = build_pending_page(
            decides=can_decide(request.user),
            reveal=can_see_payloads(request.user),
            agent=request.GET.get("agent", "")[:200],
            after=request.GET.get("after", ""),
        )
    except ValueError as error:
        raise Http404(str(error)) from error
    parts = {"pending-queue": "pending/_queue.html"}
    return page_or_part(request, "pending/page.html", page, parts=parts, version=page.version)
