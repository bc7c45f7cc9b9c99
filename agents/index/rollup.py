"""Hours and task totals made from leaf rows: rebuilt whole, so that a batch applied twice counts once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Q, Sum
from django.db.models.functions import Coalesce

from agents.models import IndexedModelCall, IndexedRun, IndexedTask, JournalFile, SpendHour
from agents.money import known_sum

_UNPRICED = Q(cost_pico__isnull=True)
_Place = tuple[str, str, str]  # agent, model, tool


@dataclass(slots=True)
class _Saved:
    """What a run was served from the journal: every model call up to where it was served, once a run."""

    calls: int
    tokens: int
    pico: int | None
    unpriced: int


def utc_hour(moment: datetime | None) -> datetime | None:
    """The hour a moment is booked under; None for a made-up one, which no zone's calendar may hold."""
    possible = moment is not None and 1970 <= moment.year < 9999
    return moment.replace(minute=0, second=0, microsecond=0) if moment and possible else None


def rebuild_hours(journal: JournalFile, hours: Iterable[datetime]) -> None:
    """Make SpendHour of these hours anew. Call in the transaction that changed the leaf rows."""
    for hour in sorted(set(hours)):
        rows = _spent(journal, hour)
        for run in IndexedRun.objects.filter(journal=journal, hour=hour, served_through__gte=0):
            for place, saved in _saved(run).items():
                row = rows.setdefault(place, _hour(journal, hour, place))
                row.saved_calls += saved.calls
                row.saved_tokens += saved.tokens
                row.saved_unpriced_calls += saved.unpriced
                row.saved_pico = known_sum(row.saved_pico, saved.pico)
        SpendHour.objects.filter(journal=journal, hour=hour).delete()
        SpendHour.objects.bulk_create(rows.values())


def rebuild_tasks(journal: JournalFile, task_ids: Collection[str]) -> None:
    """Make the token and money columns of these tasks anew from their leaf rows."""
    for task_id in task_ids:
        spent = IndexedModelCall.objects.filter(journal=journal, task_id=task_id).aggregate(
            s_in=Sum("tokens_in"),
            s_out=Sum("tokens_out"),
            s_pico=Sum("cost_pico"),
            n_unpriced=Count("pk", filter=_UNPRICED),
        )
        total = _Saved(0, 0, None, 0)
        for run in IndexedRun.objects.filter(journal=journal, task_id=task_id, served_through__gte=0):
            for saved in _saved(run).values():
                total.tokens += saved.tokens
                total.unpriced += saved.unpriced
                total.pico = known_sum(total.pico, saved.pico)
        IndexedTask.objects.filter(journal=journal, task_id=task_id).update(
            tokens_in=spent["s_in"],
            tokens_out=spent["s_out"],
            cost_pico=spent["s_pico"],
            unpriced_calls=spent["n_unpriced"],
            saved_tokens=total.tokens,
            saved_pico=total.pico,
            saved_unpriced_calls=total.unpriced,
        )


def hours_of(journal: JournalFile, task_ids: Collection[str]) -> set[datetime]:
    """The hours in which these tasks spent or saved anything."""
    calls = IndexedModelCall.objects.filter(journal=journal, task_id__in=task_ids).values_list("hour", flat=True)
    runs = IndexedRun.objects.filter(journal=journal, task_id__in=task_ids).values_list("hour", flat=True)
    return {hour for hour in (*calls.distinct(), *runs.distinct()) if hour is not None}


def _spent(journal: JournalFile, hour: datetime) -> dict[_Place, SpendHour]:
    rows: dict[_Place, SpendHour] = {}
    groups = (
        IndexedModelCall.objects.filter(journal=journal, hour=hour)
        .values("agent", "model", "tool")
        .annotate(
            n=Count("pk"),
            s_uncached=Sum("in_uncached"),
            s_cache_read=Sum("in_cache_read"),
            s_cache_write=Sum("in_cache_write"),
            s_visible=Sum("out_visible"),
            s_reasoning=Sum("out_reasoning"),
            s_in=Sum("tokens_in"),
            s_out=Sum("tokens_out"),
            s_pico=Sum("cost_pico"),
            n_unpriced=Count("pk", filter=_UNPRICED),
            s_unpriced=Sum(Coalesce("tokens_in", 0) + Coalesce("tokens_out", 0), filter=_UNPRICED),
            version=Max("price_version"),
        )
    )
    for group in groups:
        place = (group["agent"], group["model"], group["tool"])
        row = rows[place] = _hour(journal, hour, place)
        row.calls, row.unpriced_calls = group["n"], group["n_unpriced"]
        row.in_uncached, row.in_cache_read = group["s_uncached"], group["s_cache_read"]
        row.in_cache_write = group["s_cache_write"]
        row.out_visible, row.out_reasoning = group["s_visible"], group["s_reasoning"]
        row.tokens_in, row.tokens_out = group["s_in"], group["s_out"]
        row.cost_pico, row.unpriced_tokens = group["s_pico"], group["s_unpriced"] or 0
        row.price_version = group["version"] or ""
    return rows


def _saved(run: IndexedRun) -> dict[_Place, _Saved]:
    groups = (
        IndexedModelCall.objects.filter(journal=run.journal_id, task_id=run.task_id, step_index__lte=run.served_through)
        .values("agent", "model", "tool")
        .annotate(
            n=Count("pk"),
            s_tokens=Sum(Coalesce("tokens_in", 0) + Coalesce("tokens_out", 0)),
            s_pico=Sum("cost_pico"),
            n_unpriced=Count("pk", filter=_UNPRICED),
        )
    )
    return {
        (group["agent"], group["model"], group["tool"]): _Saved(
            group["n"], group["s_tokens"] or 0, group["s_pico"], group["n_unpriced"]
        )
        for group in groups
    }


def _hour(journal: JournalFile, hour: datetime, place: _Place) -> SpendHour:
    agent, model, tool = place
    return SpendHour(journal=journal, hour=hour, agent=agent, model=model, tool=tool)
