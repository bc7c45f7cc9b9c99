"""The queries of fleet pages. They read the dashboard's own tables alone and never open a journal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Case, Count, IntegerField, Min, Q, QuerySet, Value, When

from agents.disk import volumes
from agents.disk.volumes import used_percent
from agents.fleet import spend
from agents.fleet.agents import load_agents
from agents.fleet.summaries import (
    DiskLine,
    IndexAge,
    IntentLine,
    JournalLine,
    OpenJobs,
    Overview,
    TaskLine,
    intent_line,
    journal_line,
    task_line,
)
from agents.models import Alert, Beat, IndexedTask, Job, JournalFile, PendingIntent, Volume
from agents.models.indexed_task import CRASHED, HUNG, SLOW, UNRESOLVED
from agents.models.job import OPEN_STATES
from agents.models.pending_intent import FOREIGN, HELD
from agents.paging import RowPlace, cut_page, parse_cursor
from agents.states import describe_fleet
from journal import clock
from journal.reader.paging import Page

PAGE = 50
RECENT = 8
# Watch sweeps each second and beats at least every five.
STALE_AFTER = timedelta(seconds=15)
# Held intents first, then those that settle by themselves, then those of other makers.
_RANK = Case(
    When(state=HELD, then=Value(0)), When(state=FOREIGN, then=Value(2)), default=Value(1), output_field=IntegerField()
)
# What a list of tasks can be filtered by: stored and derived states, and two kinds of waiting.
STATES = (
    *("queued", "running", "waiting", "held", "retrying", "crashed", "hung", "slow", "unresolved"),
    *("completed", "failed", "cancelled"),
)
_WAITS_FOR_PERSON = Q(status="waiting", wait_kind__in=("held", "diverged")) | Q(derived=HELD)


def load_overview() -> Overview:
    """The fleet's state in words and numbers, in about ten queries whatever the number of journals."""
    journals = list(JournalFile.objects.all())
    agents = load_agents(journals)
    states = Counter(line.state for line in agents)
    pending = _pending_counts()
    today, age = spend.spend_today(), load_index_age()
    bad = sum(row.kind not in ("ok", "new") for row in journals)
    return Overview(
        sentence=describe_fleet(
            states, held=pending["held"], since=pending["oldest_held"], bad=bad, known=len(journals), now=clock.wall()
        ),
        agents=tuple(agents),
        states=states,
        pending=pending["all"],
        held=pending["held"],
        oldest_held_at=pending["oldest_held"],
        oldest_pending_at=pending["oldest"],
        spent_today=today.cost,
        tokens_today=today.tokens or 0,
        saved_today=today.saved,
        saved_tokens_today=today.saved_tokens,
        disk=fullest_volume(),
        journals=len(journals),
        journals_bad=bad,
        journals_foreign=sum(row.is_present and row.is_foreign for row in journals),
        journals_unread=sum(row.is_present and bool(row.uuid) and row.kind != "ok" for row in journals),
        journals_ours=sum(row.is_present and row.dialect == "stepkeeper" for row in journals),
        alerts_open=Alert.objects.filter(closed_at=None).count(),
        index=age,
        recent=list_tasks(limit=RECENT).items,
    )


def load_index_age() -> IndexAge:
    """How old the index is: the age of watch's last sign of life."""
    beat = Beat.objects.filter(name="watch").first()
    if beat is None:
        return IndexAge(None, None, True)
    age = clock.wall() - beat.beaten_at
    return IndexAge(beat.beaten_at, age.total_seconds(), age > STALE_AFTER)


def list_tasks(
    *,
    agent: str = "",
    status: str = "",
    text: str = "",
    after: str = "",
    limit: int = PAGE,
) -> Page[TaskLine]:
    """Tasks of all journals, last changed first. `status` is one of STATES, the derived ones too.

    Branches are folded into their task, unless a state or a text is looked for: then each stands by itself.

    Raises ValueError for a cursor that is none.
    """
    rows = _filtered(agent, status, text).select_related("journal").order_by("-updated_at", "-id")
    last = parse_cursor(after)
    if last:
        rows = rows.filter(Q(updated_at__lt=last[0]) | Q(updated_at=last[0], id__lt=last[1]))
    return cut_page(rows, limit, place=lambda row: RowPlace(row.updated_at, row.pk), lines=_make_task_lines)


def _make_task_lines(tasks: Sequence[IndexedTask]) -> Iterator[TaskLine]:
    """Each task with how many branches stand right below it."""
    journals, ids = {row.journal_id for row in tasks}, [row.task_id for row in tasks]
    below = IndexedTask.objects.filter(journal__in=journals, parent_id__in=ids).values_list("journal_id", "parent_id")
    counts = {(journal_id, parent_id): count for journal_id, parent_id, count in below.annotate(Count("pk"))}
    return (task_line(row, branches=counts.get((row.journal_id, row.task_id), 0)) for row in tasks)


def count_begun(since: datetime, *, agent: str = "", status: str = "", text: str = "", limit: int) -> int:
    """How many tasks of such a list began after this, counted up to `limit`."""
    return _filtered(agent, status, text).filter(started_at__gt=since)[:limit].count()


def _filtered(agent: str, status: str, text: str) -> QuerySet[IndexedTask]:
    rows = IndexedTask.objects.all() if status or text else IndexedTask.objects.filter(parent_id=None)
    if agent:
        rows = rows.filter(agent=agent)
    if status in (CRASHED, HUNG, SLOW, UNRESOLVED):
        rows = rows.filter(derived=status)
    elif status == HELD:
        rows = rows.filter(_WAITS_FOR_PERSON)
    elif status == "retrying":
        rows = rows.filter(status="waiting", wait_kind="due")
    elif status:
        waits = Q(derived=HELD) if status == "waiting" else Q(pk__in=[])
        rows = rows.filter(Q(status=status, derived="") | waits)
    if text:
        rows = rows.filter(Q(task_id__icontains=text) | Q(handler__icontains=text))
    return rows


def find_task(journal_id: int, task_id: str) -> TaskLine | None:
    """One task's summary."""
    row = IndexedTask.objects.filter(journal_id=journal_id, task_id=task_id).first()
    return task_line(row) if row else None


def list_agents() -> list[str]:
    """The names of all agents, for the filter."""
    return list(IndexedTask.objects.order_by("agent").values_list("agent", flat=True).distinct())


def list_pending(*, agent: str = "", after: str = "", limit: int = PAGE) -> Page[IntentLine]:
    """Pending intents of all agents or of one: held ones, then those that settle by themselves, then other makers'.

    Each kind oldest first. Raises ValueError for a cursor that is none.
    """
    rows = PendingIntent.objects.select_related("journal").annotate(rank=_RANK).order_by("rank", "since", "id")
    if agent:
        rows = rows.filter(agent=agent)
    last = parse_cursor(after)
    if last:
        later = Q(since__gt=last.at) | Q(since=last.at, id__gt=last.row_id)
        rows = rows.filter(Q(rank__gt=last.rank) | Q(rank=last.rank) & later)
    return cut_page(rows, limit, place=lambda row: RowPlace(row.since, row.pk, row.rank), lines=_intent_lines)


def count_held(*, agent: str = "") -> int:
    """How many intents of all journals, or of one agent, wait for a person."""
    held = PendingIntent.objects.filter(state=HELD)
    return (held.filter(agent=agent) if agent else held).count()


def list_journals() -> list[JournalLine]:
    """Every journal file known, bad ones first."""
    counts = dict(IndexedTask.objects.values_list("journal").annotate(Count("pk")))
    waiting = dict(PendingIntent.objects.values_list("journal").annotate(Count("pk")))
    lines = [journal_line(row, counts, waiting) for row in JournalFile.objects.all()]
    return sorted(lines, key=lambda line: (line.is_fine, line.path))


def fullest_volume() -> DiskLine | None:
    """The volume nearest to full among those that hold a journal."""
    mounts = JournalFile.objects.filter(vanished_at=None).values("volume")
    found = [(used_percent(row.free_bytes, row.total_bytes), row) for row in Volume.objects.filter(mount__in=mounts)]
    if not found:
        return None
    percent, row = max(found, key=lambda one: one[0])
    level = volumes.disk_level(percent, warn=settings.STEPKEEPER_DISK_WARN, critical=settings.STEPKEEPER_DISK_CRITICAL)
    return DiskLine(row.mount, row.free_bytes, row.total_bytes, percent, level, row.full_at)


def _pending_counts() -> dict[str, Any]:
    is_held = Q(state=HELD)
    return PendingIntent.objects.aggregate(
        all=Count("pk"),
        held=Count("pk", filter=is_held),
        oldest=Min("since", filter=Q(dated=True)),
        oldest_held=Min("since", filter=is_held & Q(dated=True)),
    )


def _intent_lines(rows: Sequence[PendingIntent]) -> list[IntentLine]:
    jobs = _open_jobs(rows)
    twins = _find_twins(rows)
    return [intent_line(row, jobs, twins[row.key, row.provider] - {row.journal.path}) for row in rows]


def _find_twins(rows: Sequence[PendingIntent]) -> dict[tuple[str, str], set[str]]:
    """The paths of the journals in which each key of these rows is pending, by key and provider.

    One task id in two journals gives equal keys: the provider takes the second request for a repetition of the first.
    """
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    alike = PendingIntent.objects.filter(key__in={row.key for row in rows if row.key})
    for key, provider, path in alike.values_list("key", "provider", "journal__path"):
        found[key, provider].add(path)
    return found


def _open_jobs(rows: Sequence[PendingIntent]) -> OpenJobs:
    jobs = Job.objects.filter(state__in=OPEN_STATES, journal_id__in={row.journal_id for row in rows})
    return {
        (job.journal_id, job.task_id, job.step_index, job.kind): str(job.uuid) for job in jobs.order_by("created_at")
    }
