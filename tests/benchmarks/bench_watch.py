"""What watch costs: 200 real journals, found, read, and swept when nothing changed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.benchmarks.bench_overview import set_up
from tests.journal import rows as journal_rows

JOURNALS, TASKS = 200, 5


def rows() -> list[tuple[str, float, str]]:
    """Milliseconds of watch's duties."""
    set_up()
    with tempfile.TemporaryDirectory() as name:
        return _measure(Path(name))


def _measure(folder: Path) -> list[tuple[str, float, str]]:
    from django.conf import settings

    from agents import alerts
    from agents.disk.samples import take_samples
    from agents.watch import Watch
    from journal import clock

    settings.STEPKEEPER_JOURNALS = (str(folder / "*.db"),)
    for number in range(JOURNALS):
        path = journal_rows.a_journal(folder / f"{number}.db", agent=f"agent-{number}")
        with closing(journal_rows.writer(path)) as connection:
            for task in range(TASKS):
                journal_rows.a_task(connection, f"t-{task}", revision=journal_rows.BOOT + task)
    watch = Watch()
    found = [
        ("find 200 new journals", _time(watch.find), "ms"),
        ("read 200 new journals", _time(watch.sweep), "ms"),
    ]
    watch.sweep()
    found += [
        ("find, nothing new", _time(watch.find), "ms"),
        ("sweep, nothing changed", _time(watch.sweep), "ms"),
        ("sample disk", _time(take_samples), "ms"),
        ("evaluate alerts", _time(lambda: alerts.evaluate_alerts(watching_since=clock.wall())), "ms"),
    ]
    return found


def _time(act: Callable[[], None]) -> float:
    started = time.perf_counter()
    act()
    return (time.perf_counter() - started) * 1000
