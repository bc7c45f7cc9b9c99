"""The spend page: one chart and one table of the same data, with the saved money beside the spent."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.fleet import spend
from agents.models import JournalFile
from dashboard.timeline.axis import format_percent
from dashboard.ui.access import require_role
from dashboard.ui.format import format_money
from dashboard.ui.render import page_or_part


@dataclass(frozen=True, slots=True)
class Tab:
    """One of several views of a page."""

    word: str
    href: str
    current: bool


_HEIGHT = 150.0
# Columns from one label to the next, counted from the newest: labels do not touch on a phone either.
_LABEL_EVERY = {"24h": 5, "7d": 2, "30d": 6}


@dataclass(frozen=True, slots=True)
class SpendBlock:
    """One label's share of a column."""

    x: str
    width: str
    y: str
    height: str
    hue: int
    title: str


@dataclass(frozen=True, slots=True)
class Column:
    """One hour or day of the chart."""

    middle: str
    label: str
    blocks: tuple[SpendBlock, ...]


@dataclass(frozen=True, slots=True)
class SpendPage:
    """What the spend page shows."""

    table: spend.SpendTable
    cuts: tuple[Tab, ...]
    ranges: tuple[Tab, ...]
    columns: tuple[Column, ...]
    keys: tuple[tuple[str, int], ...]
    top: str
    cut: str
    over: str
    foreign: int  # journals of other makers, which say nothing of what was spent

    @property
    def is_empty(self) -> bool:
        return not self.table.rows


def build_spend_page(cut: str, over: str) -> SpendPage:
    """The page of one cut over one range; what is neither falls back to models of the last day."""
    by: spend.Cut = cut if cut in spend.CUTS else "model"
    span: spend.Range = over if over in spend.RANGES else "24h"
    table = spend.spend_table(by, span)
    hues = _choose_hues(table)
    most = max((bar.cost.amount or Decimal(0) for bar in table.bars), default=Decimal(0))
    url = reverse("spend")
    return SpendPage(
        table=table,
        cuts=tuple(Tab(f"by {name}", f"{url}?by={name}&over={span}", name == by) for name in spend.CUTS),
        ranges=tuple(Tab(name, f"{url}?by={by}&over={name}", name == span) for name in spend.RANGES),
        columns=tuple(_draw_column(bar, table, hues, float(most)) for bar in table.bars),
        keys=tuple(hues.items()),
        top=format_money(most) if most else "",
        cut=by,
        over=span,
        foreign=sum(row.is_present and row.is_foreign for row in JournalFile.objects.all()),
    )


def _choose_hues(table: spend.SpendTable) -> dict[str, int]:
    totals: dict[str, float] = {}
    for bar in table.bars:
        for label, cost in bar.parts:
            totals[label] = totals.get(label, 0.0) + float(cost.amount or 0)
    dearest = sorted(totals, key=lambda label: (-totals[label], label))
    named = [label for label in dearest if label != spend.OTHERS]
    return {label: hue for hue, label in enumerate(named)} | (
        {spend.OTHERS: spend.DRAWN} if spend.OTHERS in totals else {}
    )


def _draw_column(bar: spend.SpendBar, table: spend.SpendTable, hues: dict[str, int], most: float) -> Column:
    slots = {"24h": 24, "7d": 7, "30d": 30}[table.range]
    slot = 93.0 / slots
    length = 3600 if table.range == "24h" else 86400
    place = min(slots - 1, max(0, round((bar.starts_at - table.since).total_seconds() / length)))
    left = 5.0 + slot * place
    blocks: list[SpendBlock] = []
    floor = _HEIGHT
    for label, cost in bar.parts:
        height = _HEIGHT * 0.9 * float(cost.amount or 0) / most if most else 0.0
        floor -= height
        title = f"{label}: {format_money(cost.amount)}"
        if height:
            blocks.append(
                SpendBlock(
                    format_percent(left),
                    format_percent(slot * 0.7),
                    f"{floor:.2f}",
                    f"{max(height, 0.5):.2f}",
                    hues[label],
                    title,
                )
            )
    at = timezone.localtime(bar.starts_at)
    text = at.strftime("%H:%M" if table.range == "24h" else "%d %b")
    label = text if (slots - 1 - place) % _LABEL_EVERY[table.range] == 0 else ""
    return Column(format_percent(left + slot * 0.35), label, tuple(blocks))


@require_safe
@require_role("viewer")
def show_spend(request: HttpRequest) -> HttpResponse:
    """By day, agent, model or tool, over the range in the URL."""
    page = build_spend_page(request.GET.get("by", ""), request.GET.get("over", ""))
    return page_or_part(request, "spend/page.html", page, parts={"spend-table": "spend/_table.html"})
