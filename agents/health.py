"""Whether the parts really work: their own signs of life, not a list of processes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DatabaseError

from agents.models import Beat
from journal import clock

# The canary goes round every 30 s: three missed rounds are no hiccup.
FRESH = timedelta(seconds=90)
PARTS = ("watch", "worker")


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


def report() -> HealthReport:
    """Asks the database and the parts' beats. Raises nothing: a database that fails is a part that does not work."""
    try:
        beats = {beat.name: beat.beaten_at for beat in Beat.objects.filter(name__in=PARTS)}
    except DatabaseError as error:
        parts: tuple[PartHealth, ...] = (PartHealth("database", False, f"The dashboard's database fails: {error}."),)
    else:
        now = clock.wall()
        parts = (
            PartHealth("database", True, "The dashboard's database answers."),
            *(_part(name, beats.get(name), now) for name in PARTS),
        )
    return HealthReport(all(part.ok for part in parts), parts)


def beat(name: str, detail: str = "") -> None:
    """Records a sign of life of the part called `name`."""
    Beat.objects.update_or_create(name=name, defaults={"beaten_at": clock.wall(), "detail": detail[:400]})


def _part(name: str, beaten_at: datetime | None, now: datetime) -> PartHealth:
    if beaten_at is None:
        return PartHealth(name, False, f"{name} has not shown a sign of life yet.")
    age = round((now - beaten_at).total_seconds())
    if abs(age) > FRESH.total_seconds():
        return PartHealth(name, False, f"{name} showed its last sign of life {age} s ago.")
    return PartHealth(name, True, f"{name} showed a sign of life {max(age, 0)} s ago.")
