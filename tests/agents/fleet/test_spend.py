"""Spend: hours summed by one cut, in the days of the configured zone."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from agents.fleet import spend
from agents.models import JournalFile, SpendHour
from agents.money import to_pico
from journal import clock

pytestmark = pytest.mark.django_db


@pytest.fixture
def journal():
    now = clock.wall()
    return JournalFile.objects.create(path="/a.db", found_at=now, seen_at=now)


def an_hour(journal, hours_ago=0, *, model="gpt-5", agent="triage", tool="ask", cost="0.01", **cells):
    hour = clock.wall().replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours_ago)
    row = {"calls": 1, "tokens_in": 10, "tokens_out": 5, "unpriced_calls": 0} | cells
    pico = None if cost is None else to_pico(Decimal(cost))
    return SpendHour.objects.create(
        journal=journal, hour=hour, model=model, agent=agent, tool=tool, cost_pico=pico, **row
    )


@pytest.mark.parametrize("cut", spend.CUTS)
@pytest.mark.parametrize("over", spend.RANGES)
def test_every_cut_sums_to_the_same_total(journal, cut, over):
    an_hour(journal)
    an_hour(journal, model="o3", agent="other", tool="plan", cost="0.02")
    table = spend.spend_table(cut, over)
    assert table.total.cost.amount == Decimal("0.03")
    assert sum(row.cost.amount or 0 for row in table.rows) == Decimal("0.03")
    assert sum(bar.cost.amount or 0 for bar in table.bars) == Decimal("0.03")
    assert len(table.rows) == (1 if cut == "day" and len(table.rows) == 1 else 2)


def test_unpriced_calls_make_the_total_at_least(journal):
    an_hour(journal)
    an_hour(journal, model="scripted", cost=None, unpriced_calls=1, unpriced_tokens=15)
    table = spend.spend_table("model")
    assert table.total.cost.at_least
    assert table.total.unpriced_tokens == 15
    unpriced = next(row for row in table.rows if row.label == "scripted")
    assert unpriced.cost.amount is None
    assert table.rows[-1] is unpriced, "what nobody can price stands last"


def test_buckets_not_reported_stay_unknown_and_are_not_zero(journal):
    an_hour(journal, in_cache_read=None, in_uncached=7)
    total = spend.spend_table("model").total
    assert total.in_cache_read is None
    assert total.in_uncached == 7


def test_what_is_outside_the_range_is_left_out(journal):
    an_hour(journal, hours_ago=30)
    assert spend.spend_table("model", "24h").total.calls == 0
    assert spend.spend_table("model", "7d").total.calls == 1


def test_saved_stands_beside_spent(journal):
    an_hour(journal, saved_tokens=900, saved_pico=to_pico(Decimal("0.5")), saved_calls=3)
    total = spend.spend_table("agent").total
    assert (total.saved_tokens, total.saved_calls, total.saved.amount) == (900, 3, Decimal("0.5"))
    assert total.cost.amount == Decimal("0.01")


def test_a_day_is_a_day_of_the_configured_zone(journal, settings, monkeypatch):
    monkeypatch.setattr(clock, "wall", lambda: clock.parse("2026-11-29T12:00:00Z"))
    settings.TIME_ZONE = "America/New_York"
    SpendHour.objects.create(journal=journal, hour=clock.parse("2026-11-29T03:00:00Z"), calls=1)
    SpendHour.objects.create(journal=journal, hour=clock.parse("2026-11-29T06:00:00Z"), calls=1)
    labels = {row.label for row in spend.spend_table("day", "30d").rows}
    assert labels == {"2026-11-28", "2026-11-29"}


def test_today_is_zero_when_nothing_was_spent_and_unpriced_when_nobody_knows(journal):
    assert spend.spend_today().cost.amount == 0
    an_hour(journal, cost=None, unpriced_calls=1)
    assert spend.spend_today().cost.amount is None
