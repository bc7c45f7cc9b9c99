"""Token spend: hours of the index summed by one cut, spent beside saved."""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, get_args

from django.conf import settings

from agents.models import SpendHour
from agents.money import Money
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
        return _plus(self.tokens_in, self.tokens_out)


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


@dataclass(slots=True)
class _Sum:
    counts: dict[str, int | None] = field(default_factory=dict)

    def add(self, row: SpendHour) -> None:
        for name in _SUMMED:
            self.counts[name] = _plus(self.counts.get(name), getattr(row, name))

    def number(self, name: str) -> int:
        return self.counts.get(name) or 0

    def cost(self) -> Money:
        return Money.of(self.counts.get("cost_pico"), unpriced_calls=self.number("unpriced_calls"))

    def row(self, label: str) -> SpendRow:
        counts = self.counts.get
        return SpendRow(
            label=label,
            calls=self.number("calls"),
            tokens_in=counts("tokens_in"),
            tokens_out=counts("tokens_out"),
            in_uncached=counts("in_uncached"),
            in_cache_read=counts("in_cache_read"),
            in_cache_write=counts("in_cache_write"),
            out_visible=counts("out_visible"),
            out_reasoning=counts("out_reasoning"),
            cost=self.cost(),
            unpriced_tokens=self.number("unpriced_tokens"),
            saved_calls=self.number("saved_calls"),
            saved_tokens=self.number("saved_tokens"),
            saved=Money.of(counts("saved_pico"), unpriced_calls=self.number("saved_unpriced_calls")),
        )


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


def table(cut: Cut, over: Range = "24h", *, agent: str = "") -> SpendTable:
    """The spend of a range by one cut. Days are days of the configured time zone, made from UTC hours."""
    since = _since(over)
    hours = SpendHour.objects.filter(hour__gte=since).order_by("hour", "pk")
    if agent:
        hours = hours.filter(agent=agent)
    total, by_label = _Sum(), dict[str, _Sum]()
    spans: dict[datetime, dict[str, _Sum]] = {}
    versions: set[str] = set()
    for row in hours:
        label = _label(row, cut)
        span = spans.setdefault(row.hour if over == "24h" else _day(row.hour), {})
        # A day's own parts would be one block: by day the chart shows models.
        part = span.setdefault(row.model or "no model" if cut == "day" else label, _Sum())
        for one in (total, by_label.setdefault(label, _Sum()), part):
            one.add(row)
        versions |= {row.price_version} - {""}
    rows = [one.row(label) for label, one in by_label.items()]
    rows.sort(key=(lambda row: row.label) if cut == "day" else _dearest, reverse=cut == "day")
    bars = tuple(_bar(start, parts) for start, parts in sorted(spans.items()))
    return SpendTable(cut, over, since, tuple(rows), total.row("total"), bars, tuple(sorted(versions)))


def today() -> SpendRow:
    """What the day has cost and saved so far, the day being one of the configured time zone."""
    one = _Sum()
    for row in SpendHour.objects.filter(hour__gte=_day(clock.wall())):
        one.add(row)
    return one.row("today")


def _since(over: Range) -> datetime:
    now = clock.wall()
    if over == "24h":
        return now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=23)
    return _day(now - _LENGTH[over] + timedelta(days=1))


def _label(row: SpendHour, cut: Cut) -> str:
    if cut == "day":
        return _day(row.hour).date().isoformat()
    text = {"agent": row.agent, "model": row.model, "tool": row.tool}[cut]
    return text or f"no {cut}"


def _day(moment: datetime) -> datetime:
    local = moment.astimezone(zoneinfo.ZoneInfo(settings.TIME_ZONE))
    return local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def _dearest(row: SpendRow) -> tuple[bool, float, int, str]:
    amount = row.cost.amount
    return (amount is None, -float(amount or 0), -(row.tokens or 0), row.label)


def _bar(start: datetime, parts: dict[str, _Sum]) -> SpendBar:
    whole = _Sum()
    for one in parts.values():
        for name in _SUMMED:
            whole.counts[name] = _plus(whole.counts.get(name), one.counts.get(name))
    dearest = sorted(parts.items(), key=lambda part: (-part[1].number("cost_pico"), part[0]))
    return SpendBar(start, tuple((label, one.cost()) for label, one in dearest), whole.cost())


def _plus(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other
