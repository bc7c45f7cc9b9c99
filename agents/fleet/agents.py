"""Agents as pages show them: one line for each journal of our own, its state from agents/states.py."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from os.path import basename

from django.db.models import Count, Max, Min, Q

from agents.fleet.summaries import AgentLine
from agents.models import IndexedTask, JournalFile, PendingIntent
from agents.models.pending_intent import HELD, IN_FLIGHT
from agents.states import AGENT_STATES, AgentFacts, derive_agent_state, describe_agent
from journal import clock
from journal.reader.paging import Page

PAGE = 50
_FEW = 200  # journals: more are counted with all the others
_UNFINISHED = ("queued", "running", "waiting")


def list_agents(*, state: str = "", after: str = "", limit: int = PAGE) -> Page[AgentLine]:
    """One page of agents, those that need a person first; `state` is one of AGENT_STATES.

    Raises ValueError for a cursor that is none.
    """
    lines = [line for line in load_agents() if not state or line.state == state]
    if after:
        last = _parse_place(after)
        lines = [line for line in lines if _place(line) > last]
    page = lines[:limit]
    return Page(tuple(page), _write_place(page[-1]) if len(lines) > limit else None)


def load_agents(journals: Sequence[JournalFile] | None = None) -> list[AgentLine]:
    """Every agent, in three queries whatever the number of journals, those that need a person first."""
    rows = [row for row in (JournalFile.objects.all() if journals is None else journals) if _has_agent(row)]
    facts, changed = _load_facts(rows)
    now = clock.wall()
    lines = [
        AgentLine(
            journal_id=row.pk,
            agent=row.agent or basename(row.path),
            state=derive_agent_state(facts[row.pk]),
            sentence=describe_agent(facts[row.pk], now),
            pid=facts[row.pk].pid,
            changed_at=changed.get(row.pk),
        )
        for row in rows
    ]
    return sorted(lines, key=_place)


def load_agent(journal: JournalFile) -> AgentLine | None:
    """The agent of one journal; None where another maker's journal does not say."""
    return next(iter(load_agents([journal])), None)


def _has_agent(journal: JournalFile) -> bool:
    """Whether the journal is one of ours, or was only just found and may be."""
    return journal.kind == "new" or (journal.kind == "ok" and journal.dialect in ("", "stepkeeper"))


def _load_facts(rows: Sequence[JournalFile]) -> tuple[dict[int, AgentFacts], dict[int, datetime]]:
    ids = [row.pk for row in rows]
    of_these = Q(journal__in=ids) if len(ids) <= _FEW else Q()
    tasks: dict[int, Counter[str]] = defaultdict(Counter)
    changed: dict[int, datetime] = {}
    groups = IndexedTask.objects.filter(of_these).values_list("journal", "status", "derived")
    for pk, status, derived, number, at in groups.annotate(
        number=Count("pk"), at=Max("updated_at", filter=Q(dated=True))
    ):
        if status in _UNFINISHED:
            tasks[pk][derived or status] += number
        if at is not None:
            changed[pk] = max(at, changed.get(pk, at))
    # A held step is not due, whatever time its row still names.
    later = ~Q(state__in=(HELD, IN_FLIGHT))
    held, due = Count("pk", filter=Q(state=HELD)), Min("next_attempt_at", filter=later)
    pending = PendingIntent.objects.filter(of_these).values_list("journal")
    steps = {pk: (number, at) for pk, number, at in pending.annotate(number=held, at=due)}
    facts = {}
    for row in rows:
        number, at = steps.get(row.pk, (0, None))
        pid = row.writer_pid if row.agent_is_alive else None
        is_read = row.kind == "ok" and row.read_at is not None
        facts[row.pk] = AgentFacts(is_read, pid, tasks[row.pk], held=number, due_at=at)
    return facts, changed


def _place(line: AgentLine) -> tuple[int, str, int]:
    return AGENT_STATES.index(line.state), line.agent, line.journal_id


def _write_place(line: AgentLine) -> str:
    return f"{AGENT_STATES.index(line.state)}.{line.journal_id}.{line.agent}"


def _parse_place(text: str) -> tuple[int, str, int]:
    rank, _, rest = text.partition(".")
    number, dot, agent = rest.partition(".")
    if not (rank.isascii() and rank.isdigit() and number.isascii() and number.isdigit() and dot):
        raise ValueError(f"Not a cursor: {text[:40]!r}. Start again from the first page.")
    return int(rank), agent, int(number)
