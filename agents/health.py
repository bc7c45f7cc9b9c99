"""Whether each part works, judged by its own signs of life and not by a list of processes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DatabaseError, connection

from agents.models import Beat
from journal import clock

# Watch beats every 5 s at least; the worker's canary goes round every 30 s. A part fails after several missed rounds.
WRITTEN_LATELY = timedelta(seconds=10)
FRESH = {"watch": timedelta(seconds=30), "worker": timedelta(seconds=90)}


@dataclass(frozen=True, slots=True)
class PartHealth:
    """One part: its name, whether it works, and a sentence."""

    name: str
    ok: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class HealthReport:
    """All parts; `ok` when every one works."""

    ok: bool
    parts: tuple[PartHealth, ...]


def report_health() -> HealthReport:
    """Ask the database and the parts' beats. Raises nothing: a database that fails is a part that does not work."""
    try:
        beats = {beat.name: beat.beaten_at for beat in Beat.objects.filter(name__in=(*FRESH, "web"))}
        _try_to_write(beats.get("web"))
    except DatabaseError as error:
        sentence = f"The dashboard's database cannot be read or written: {error}."
        parts: tuple[PartHealth, ...] = (PartHealth("database", False, sentence),)
    else:
        now = clock.wall()
        parts = (
            PartHealth("database", True, "The dashboard's database can be read and written."),
            *(_part(name, beats.get(name), now) for name in FRESH),
        )
    return HealthReport(all(part.ok for part in parts), parts)


def _try_to_write(written_at: datetime | None) -> None:
    """Write to the database, unless that worked a moment ago. The question never waits long for a lock."""
    if written_at is not None and clock.wall() - written_at < WRITTEN_LATELY:
        return
    if connection.vendor != "sqlite":
        record_beat("web")
        return
    with connection.cursor() as cursor:
        [patience] = cursor.execute("PRAGMA busy_timeout").fetchone()
        cursor.execute("PRAGMA busy_timeout = 500")
        try:
            record_beat("web")
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {patience}")


def record_beat(name: str, detail: str = "") -> None:
    """Records a sign of life of the part called `name`."""
    Beat.objects.update_or_create(name=name, defaults={"beaten_at": clock.wall(), "detail": detail[:400]})


def forget_beats() -> None:
    """Forgets the signs of life so far: they were of an earlier run, and say nothing about this one."""
    Beat.objects.all().delete()


def _part(name: str, beaten_at: datetime | None, now: datetime) -> PartHealth:
    if beaten_at is None:
        return PartHealth(name, False, f"{name} has not shown a sign of life yet.")
    age = round((now - beaten_at).total_seconds())
    if abs(age) > FRESH[name].total_seconds():
        return PartHealth(name, False, f"{name} showed its last sign of life {age} s ago.")
    return PartHealth(name, True, f"{name} showed a sign of life {max(age, 0)} s ago.")
