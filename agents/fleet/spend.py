"""Token spend: hours of the index summed by one grouping, spent beside saved."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from django.conf import settings
from django.db.models import QuerySet, Sum

from agents.models import SpendHour
from agents.money import Money, known_sum
from journal import clock

Cut = Literal["day", "agent", "model", "tool"]
Range = Literal["24h", "7d", "30d"]
CUTS: tuple[Cut, ...] = get_args(Cut)
RANGES: tuple[Range, ...] = get_args(Range)
_LENGTH: dict[Range, timedelta] = {"24h": timedelta(hours=24), "7d": timedelta(days=7), "30d": timedelta(days=30)}


@dataclass(frozen=True, slots=True)
class SpendRow:
    """Tokens and money under one label; None is "not reported", which is not 0."""

    label: str
    calls: int
    tokens_in: int | None
    tokens_out: int | None
    in_uncached: int | None
    in_cache_read: int | None
    in_cache_write: int | None
    out_visible: int | None
    out_reasoning: int | None
    cost: Money
    unpriced_tokens: int
    saved_calls: int
    saved_tokens: int
    saved: Money

    @property
    def tokens(self) -> int | None:
        return known_sum(self.tokens_in, self.tokens_out)


@dataclass(frozen=True, slots=True)
class SpendBar:
    """One column of the chart: a span of time with the cost of each label, largest labels first."""

    starts_at: datetime
    parts: tuple[tuple[str, Money], ...]
    cost: Money


@dataclass(frozen=True, slots=True)
class SpendTable:
    """The rows of one cut over one range, their total, and the same data by time for the chart."""

    cut: Cut
    range: Range
    since: datetime
    rows: tuple[SpendRow, ...]
    total: SpendRow
    bars: tuple[SpendBar, ...]
    price_versions: tuple[str, ...]


_SUMMED = (
    "calls",
    "tokens_in",
    "tokens_out",
    "in_uncached",
    "in_cache_read",
    "in_cache_write",
    "out_visible",
    "out_reasoning",
    "cost_pico",
    "unpriced_calls",
    "unpriced_tokens",
    "saved_calls",
    "saved_tokens",
    "saved_pico",
    "saved_unpriced_calls",
)
# Labels drawn by themselves in the chart; the rest share one part.
DRAWN = 6
OTHERS = "all others"
_Counts = dict[str, int | None]


def spend_table(cut: Cut, over: Range = "24h") -> SpendTable:
    """The spend of a range by one cut. Days are days of the configured time zone, made from UTC hours."""
    since = _since(over)
    hours = SpendHour.objects.filter(hour__gte=since)
    # A day's own parts would be one block: by day the chart shows models.
    part = "model" if cut == "day" else cut
    by_part = {str(key) or f"no {part}": counts for key, counts in _grouped(hours, part).items()}
    by_hour = _grouped(hours, "hour")
    total = _merged(by_hour.values())
    if cut == "day":
        days: dict[str, list[_Counts]] = {}
        for hour, counts in by_hour.items():
            days.setdefault(_day(hour).date().isoformat(), []).append(counts)
        rows = [_row(day, _merged(counts)) for day, counts in sorted(days.items(), reverse=True)]
    else:
        rows = sorted((_row(label, counts) for label, counts in by_part.items()), key=_dearest)
    versions = hours.exclude(price_version="").order_by("price_version").values_list("price_version", flat=True)
    bars = _bars(hours, part, by_part, by_hour, hourly=over == "24h")
    return SpendTable(cut, over, since, tuple(rows), _row("total", total), bars, tuple(versions.distinct()))


def spend_today() -> SpendRow:
    """The cost and savings of the day so far, in the configured time zone."""
    found = SpendHour.objects.filter(hour__gte=_day(clock.wall())).aggregate(**_sums())
    return _row("today", {name: found[f"s_{name}"] for name in _SUMMED})


def _bars(
    hours: QuerySet[SpendHour], part: str, by_part: dict[str, _Counts], by_hour: dict[Any, _Counts], *, hourly: bool
) -> tuple[SpendBar, ...]:
    drawn = sorted(by_part, key=lambda label: (-(by_part[label]["cost_pico"] or 0), label))[:DRAWN]
    names = ["" if label == f"no {part}" else label for label in drawn]
    of_drawn = hours.filter(**{f"{part}__in": names}).values_list("hour", part)
    spans: dict[datetime, dict[str, _Counts]] = {}
    totals: dict[datetime, list[_Counts]] = {}
    for hour, name, pico, unpriced in of_drawn.annotate(Sum("cost_pico"), Sum("unpriced_calls")).order_by("hour"):
        label, one = name or f"no {part}", {"cost_pico": pico, "unpriced_calls": unpriced}
        span = spans.setdefault(hour if hourly else _day(hour), {})
        span[label] = _merged([span.get(label, {}), one])
    for hour, counts in by_hour.items():
        totals.setdefault(hour if hourly else _day(hour), []).append(counts)
    return tuple(_bar(start, _merged(counts), spans.get(start, {}), drawn) for start, counts in sorted(totals.items()))


def _bar(start: datetime, whole: _Counts, parts: dict[str, _Counts], drawn: list[str]) -> SpendBar:
    shown = [(label, _cost(parts[label])) for label in drawn if label in parts]
    known = _merged(parts.values())
    others = (whole.get("cost_pico") or 0) - (known.get("cost_pico") or 0)
    unpriced = (whole.get("unpriced_calls") or 0) - (known.get("unpriced_calls") or 0)
    if others or unpriced:
        shown.append((OTHERS, Money.of(others or None, unpriced_calls=unpriced)))
    return SpendBar(start, tuple(shown), _cost(whole))


def _sums() -> dict[str, Sum]:
    return {f"s_{name}": Sum(name) for name in _SUMMED}


def _grouped(hours: QuerySet[SpendHour], name: str) -> dict[Any, _Counts]:
    groups = hours.order_by().values(name).annotate(**_sums())
    return {group[name]: {one: group[f"s_{one}"] for one in _SUMMED} for group in groups}


def _merged(several: Iterable[_Counts]) -> _Counts:
    merged: _Counts = {}
    for counts in several:
        for name, count in counts.items():
            merged[name] = known_sum(merged.get(name), count)
    return merged


def _cost(counts: _Counts) -> Money:
    return Money.of(counts.get("cost_pico"), unpriced_calls=counts.get("unpriced_calls") or 0)


def _row(label: str, counts: _Counts) -> SpendRow:
    known = counts.get
    return SpendRow(
        label=label,
        calls=known("calls") or 0,
        tokens_in=known("tokens_in"),
        tokens_out=known("tokens_out"),
        in_uncached=known("in_uncached"),
        in_cache_read=known("in_cache_read"),
        in_cache_write=known("in_cache_write"),
        out_visible=known("out_visible"),
        out_reasoning=known("out_reasoning"),
        cost=_cost(counts),
        unpriced_tokens=known("unpriced_tokens") or 0,
        saved_calls=known("saved_calls") or 0,
        saved_tokens=known("saved_tokens") or 0,
        saved=Money.of(known("saved_pico"), unpriced_calls=known("saved_unpriced_calls") or 0),
    )


def _since(over: Range) -> datetime:
    now = clock.wall()
    if over == "24h":
        return now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=23)
    return _day(now - _LENGTH[over] + timedelta(days=1))


def _day(moment: datetime) -> datetime:
    local = moment.astimezone(zoneinfo.ZoneInfo(settings.TIME_ZONE))
    return local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def _dearest(row: SpendRow) -> tuple[bool, float, int, str]:
    amount = row.cost.amount
    return (amount is None, -float(amount or 0), -(row.tokens or 0), row.label)
