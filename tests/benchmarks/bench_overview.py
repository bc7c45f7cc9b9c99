"""The overview of 200 journals from the dashboard's own database: under 100 ms."""

from __future__ import annotations

import os
import statistics
import time
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.test import Client

JOURNALS, TASKS, HOURS = 200, 50, 24 * 7
ROUNDS = 30


def rows() -> list[tuple[str, float, str]]:
    """Milliseconds of the overview as a signed-in person gets it, and of the query functions behind the fleet pages."""
    set_up()
    _fill()
    from agents.fleet import queries, spend
    from agents.fleet.queries import list_pending, list_tasks, load_overview

    client = _signed_in()

    found = []
    for name, ask in (
        ("overview, the whole page, 200 journals", lambda: client.get("/").content),
        ("overview, its queries, 200 journals", load_overview),
        ("tasks page, 10,000 tasks", list_tasks),
        ("pending page, 400 intents", list_pending),
        ("journals page, 200 journals", queries.list_journals),
        ("spend by model over 7 days, 67,200 hours", lambda: spend.spend_table("model", "7d")),
    ):
        times = []
        for _ in range(ROUNDS if name.startswith("overview") else 5):
            started = time.perf_counter()
            ask()
            times.append((time.perf_counter() - started) * 1000)
        found.append((f"{name}, median", statistics.median(times), "ms"))
        found.append((f"{name}, worst", max(times), "ms"))
    return found


def _signed_in() -> Client:
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client(headers={"host": "127.0.0.1:8000"})
    client.force_login(User.objects.create_superuser("bench"))
    assert client.get("/").status_code == 200
    return client


def set_up() -> None:
    """Django on a database of its own."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("flush", interactive=False, verbosity=0)


def _fill() -> None:
    from agents.models import DiskSample, IndexedTask, JournalFile, PendingIntent, SpendHour, Volume
    from journal import clock

    now = clock.wall()
    Volume.objects.create(mount="/", free_bytes=40, total_bytes=100, sampled_at=now)
    JournalFile.objects.bulk_create(
        JournalFile(
            path=f"/srv/agents/{number}.db",
            agent=f"agent-{number:03}",
            kind="ok",
            dialect="stepkeeper",
            volume="/",
            writer_pid=number if number % 3 else None,
            writer_role="agent" if number % 3 else "",
            found_at=now,
            seen_at=now,
        )
        for number in range(JOURNALS)
    )
    journals = list(JournalFile.objects.all())
    IndexedTask.objects.bulk_create(
        (
            IndexedTask(
                journal=journal,
                task_id=f"{journal.agent}-{number}",
                agent=journal.agent,
                status=("running", "waiting", "completed", "completed")[number % 4],
                updated_at=now - timedelta(seconds=number),
            )
            for journal in journals
            for number in range(TASKS)
        ),
        batch_size=1000,
    )
    PendingIntent.objects.bulk_create(
        PendingIntent(
            journal=journal,
            task_id=f"{journal.agent}-{number}",
            step_index=3,
            agent=journal.agent,
            tool_name="send",
            state="held" if number else "waiting",
            since=now - timedelta(minutes=number),
            decided_at=now,
        )
        for journal in journals
        for number in range(2)
    )
    hour = now.replace(minute=0, second=0, microsecond=0)
    SpendHour.objects.bulk_create(
        (
            SpendHour(
                journal=journal,
                hour=hour - timedelta(hours=back),
                agent=journal.agent,
                model=model,
                tool="ask",
                calls=1,
                tokens_in=1000,
                tokens_out=100,
                cost_pico=10**9,
            )
            for journal in journals
            for back in range(HOURS)
            for model in ("gpt-5", "o3")
        ),
        batch_size=2000,
    )
    DiskSample.objects.bulk_create(
        (
            DiskSample(journal=journal, taken_at=now - timedelta(minutes=5 * back), grain=300, file_bytes=back)
            for journal in journals
            for back in range(288)
        ),
        batch_size=2000,
    )
