"""Hours and task totals made from leaf rows: rebuilt whole, so that a batch applied twice counts once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Count, Max, Q, Sum
from django.db.models.functions import Coalesce

from agents.models import IndexedModelCall, IndexedRun, IndexedTask, JournalFile, SpendHour

_UNPRICED = Q(cost_pico__isnull=True)
_Place = tuple[str, str, str]  # agent, model, tool


def utc_hour(moment: datetime | None) -> datetime | None:
    """The UTC hour of a moment; None for an impossible moment that no calendar holds."""
    possible = moment is not None and 1970 <= moment.year < 9999
    return moment.replace(minute=0, second=0, microsecond=0) if moment and possible else None


def rebuild_hours(journal: JournalFile, hours: Iterable[datetime]) -> None:
    """Make SpendHour of these hours anew, in one transaction with the mark that said so."""
    for hour in sorted(set(hours)):
        rows = _spent(journal, hour)
        for *place, calls, tokens, pico, unpriced in _saved("agent, model, tool", "run.hour", journal, [_stored(hour)]):
            row = rows.setdefault(tuple(place), _hour(journal, hour, tuple(place)))
            row.saved_calls, row.saved_tokens, row.saved_pico, row.saved_unpriced_calls = calls, tokens, pico, unpriced
        SpendHour.objects.filter(journal=journal, hour=hour).delete()
        SpendHour.objects.bulk_create(rows.values())


def rebuild_tasks(journal: JournalFile, task_ids: Collection[str]) -> None:
    """Make the token and money columns of these tasks anew from their leaf rows."""
    calls = IndexedModelCall.objects.filter(journal=journal, task_id__in=task_ids).values("task_id")
    sums = {
        "tokens_in": Sum("tokens_in"),
        "tokens_out": Sum("tokens_out"),
        "cost_pico": Sum("cost_pico"),
        "unpriced_calls": Count("pk", filter=_UNPRICED),
    }
    groups = calls.annotate(**{f"s_{name}": how for name, how in sums.items()})
    spent = {group["task_id"]: group for group in groups}
    saved = {task: counts for task, _, *counts in _saved("run.task_id", "run.task_id", journal, task_ids)}
    for task_id in task_ids:
        group = spent.get(task_id, {"s_unpriced_calls": 0})
        tokens, pico, unpriced = saved.get(task_id, (0, None, 0))
        IndexedTask.objects.filter(journal=journal, task_id=task_id).update(
            **{name: group.get(f"s_{name}") for name in sums},
            saved_tokens=tokens,
            saved_pico=pico,
            saved_unpriced_calls=unpriced,
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


def _saved(group: str, column: str, journal: JournalFile, values: Collection[str]) -> list[tuple[Any, ...]]:
    """Sums of the model calls that runs were served from the journal, by a group.

    `column` and `values` choose the runs.

    A run is served each model call up to `served_through`, so a call is saved once a run.
    """
    if not values:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT {group}, COUNT(*), SUM(COALESCE(tokens_in, 0) + COALESCE(tokens_out, 0)), SUM(cost_pico),
                   SUM(CASE WHEN cost_pico IS NULL THEN 1 ELSE 0 END)
            FROM {IndexedRun._meta.db_table} AS run
            JOIN {IndexedModelCall._meta.db_table} AS call ON call.journal_id = run.journal_id
                AND call.task_id = run.task_id AND call.step_index <= run.served_through
            WHERE run.journal_id = %s AND run.served_through >= 0
                AND {column} IN ({", ".join(["%s"] * len(values))})
            GROUP BY {group}
            """,
            [journal.pk, *values],
        )
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def _stored(moment: datetime) -> str:
    """A moment in the form that the database stores and compares."""
    return str(connection.ops.adapt_datetimefield_value(moment))


def _hour(journal: JournalFile, hour: datetime, place: _Place) -> SpendHour:
    agent, model, tool = place
    return SpendHour(journal=journal, hour=hour, agent=agent, model=model, tool=tool)
