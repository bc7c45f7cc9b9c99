"""The pending page: intents and held steps, the oldest on top and open, the others folded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents.decisions.allowed import ENDED
from agents.fleet import queries
from agents.fleet.agents import load_agents
from agents.fleet.queries import list_pending
from agents.fleet.summaries import AgentLine, IntentLine
from agents.models import JournalFile
from agents.models.pending_intent import FOREIGN, IN_FLIGHT
from agents.states import PendingFacts, describe_due, describe_outlook, describe_pending_hold
from dashboard.choices import Offered, offer_line_choices
from dashboard.timeline.status import lower_first
from dashboard.ui.access import can_decide, can_see_payloads, require_role
from dashboard.ui.format import describe_key_window
from dashboard.ui.render import digest_shown, make_page_href, page_or_part
from dashboard.ui.url_converters import encode_task_id
from journal import clock
from journal.hold_reasons import HoldReason

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
    outlook: str  # what happens if nobody does anything
    agent_runs: bool

    @property
    def target(self) -> str:
        """Where the effect happens: the provider's host, else the agent's own tool."""
        return self.line.target or self.line.provider or f"{self.line.agent}'s own code"


@dataclass(frozen=True, slots=True)
class PendingPage:
    """The queue: what waits for a person first, then what time or recovery settles, then what other makers wrote.

    `sentence` is about all of it, not about this page of it; `first_href` is empty on the first page.
    """

    held: tuple[Waiting, ...]
    others: tuple[Waiting, ...]
    stopped: tuple[Waiting, ...]  # those that nobody settles before their agent is started
    foreign: tuple[Waiting, ...]
    agent: str  # whose intents these are; empty: all agents
    sentence: str
    href: str
    next_href: str
    first_href: str
    version: str

    @property
    def is_empty(self) -> bool:
        return not (self.held or self.others or self.stopped or self.foreign)


def build_pending_page(*, agent: str, decides: bool, reveal: bool, after: str) -> PendingPage:
    """A page of the pending intents of one agent, or of all. Raises ValueError for an invalid cursor."""
    now = clock.wall()
    page, held = list_pending(agent=agent, after=after, limit=LIMIT), queries.count_held(agent=agent)
    url = reverse("pending")
    agents = _load_agents(page.items)
    waiting = tuple(
        _build_waiting(line, agents.get(line.journal_id), now, decides=decides, reveal=reveal) for line in page.items
    )
    others = [each for each in waiting if not each.line.needs_person and each.line.state != FOREIGN]
    return PendingPage(
        held=tuple(each for each in waiting if each.line.needs_person),
        others=tuple(each for each in others if each.agent_runs),
        stopped=tuple(each for each in others if not each.agent_runs),
        foreign=tuple(each for each in waiting if each.line.state == FOREIGN),
        agent=agent,
        sentence=_describe_queue(held, others=bool(after or waiting)),
        href=make_page_href(url, after, agent=agent),
        next_href=make_page_href(url, page.next_cursor, agent=agent) if page.next_cursor else "",
        first_href=make_page_href(url, "", agent=agent) if after else "",
        version=digest_shown(page, held, [each.outlook for each in waiting]),
    )


def _load_agents(lines: Iterable[IntentLine]) -> dict[int, AgentLine]:
    """The agents of these intents, by journal."""
    rows = JournalFile.objects.filter(pk__in={line.journal_id for line in lines})
    return {agent.journal_id: agent for agent in load_agents(list(rows))}


def _gather_facts(line: IntentLine, agent: AgentLine | None) -> PendingFacts:
    return PendingFacts(
        agent=agent.state if agent else "unread",
        agent_runs=agent is not None and agent.pid is not None,
        sent=line.sent,
        hold=line.hold_reason,
        due_at=None if line.hold_reason else line.next_attempt_at,
        is_in_flight=line.state == IN_FLIGHT,
        is_approved=line.job_uuid is not None,
        is_foreign=line.state == FOREIGN,
        task_ended=line.task_status if line.task_status in ENDED else "",
        changes=line.effect not in ("read_only", "model"),
        raised="an exception" if line.raised else "",
        next_sentence=line.next_sentence,
    )


def _build_waiting(line: IntentLine, agent: AgentLine | None, now: datetime, *, decides: bool, reveal: bool) -> Waiting:
    facts = _gather_facts(line, agent)
    hold = describe_pending_hold(facts)
    until = line.window_left_until
    word = {
        "held": f"held: {lower_first(hold.label) if hold else line.hold_reason.replace('_', ' ')}",
        "in_flight": "its agent is carrying it out",
        "waiting": describe_due(facts, now),
        "unresolved": "not sent" if line.sent in ("none", "not_sent") else "outcome unknown",
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
        outlook=describe_outlook(facts, now),
        agent_runs=facts.agent_runs,
        anchor=f"{encode_task_id(line.task_id)}-{line.step_index}",
    )


def _describe_cause(line: IntentLine) -> str:
    """Why an intent is pending, besides its hold reason."""
    if line.state == FOREIGN:
        return "This journal was not made by stepkeeper."
    if line.task_status in ENDED:
        return f"Its task is {line.task_status}: recovery leaves the step as it is."
    if line.differs_at:
        return f"First difference: {line.differs_at}."
    return line.next_sentence


def describe_lapsed(actor: str) -> str:
    """What became of an approval that was not used in time."""
    return f"The approval by {actor} expired before it was used."


def _describe_more(line: IntentLine, *, reveal: bool) -> str:
    said = (
        _describe_cause(line),
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
