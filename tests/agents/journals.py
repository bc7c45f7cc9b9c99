"""Journal files in the watched folder, and what the fleet index counts of them."""

from __future__ import annotations

from agents.models import SpendHour
from tests.builders.fleet import rows, writing


def a_journal(path, *, task="t", revision=rows.BOOT + 1, **cells):
    """A journal of one boot with one task."""
    with writing(path) as connection:
        rows.a_boot(connection)
        rows.a_task(connection, task, revision=revision, **cells)
    return path


def spent_in_all():
    """The fleet's spend, in pico-dollars."""
    return sum(cost for cost in SpendHour.objects.values_list("cost_pico", flat=True) if cost is not None)
