"""Disk use of each journal, the free space of its volume, and when that space will be used up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.conf import settings

from agents.models import JournalFile, Volume
from agents.paging import line_of

Level = Literal["ok", "warning", "critical"]

# Percent below a threshold at which its level ends: a volume near the threshold opens one alert, not twenty.
HYSTERESIS = 2.0
WAL_LIMIT = 64 * 1024 * 1024
_SHORTEST = timedelta(minutes=10)  # a slope over less time than this says nothing about a day
_FARTHEST = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class JournalDisk:
    """The disk use of one journal."""

    journal_id: int
    path: str
    agent: str
    file_bytes: int
    wal_bytes: int
    shm_bytes: int
    inbox_bytes: int
    inbox_messages: int
    growth_per_day: int | None
    wal_level: Level

    @property
    def total_bytes(self) -> int:
        return self.file_bytes + self.wal_bytes + self.shm_bytes + self.inbox_bytes


@dataclass(frozen=True, slots=True)
class VolumeLine:
    """One volume, its journals largest first, and what the last day says of the next ones."""

    mount: str
    free_bytes: int
    total_bytes: int
    used_percent: float
    level: Level
    warn_percent: int
    critical_percent: int
    growth_per_day: int | None
    full_at: datetime | None
    sampled_at: datetime
    journals: tuple[JournalDisk, ...]

    @property
    def journal_bytes(self) -> int:
        return sum(journal.total_bytes for journal in self.journals)


def list_volumes() -> list[VolumeLine]:
    """Every volume that holds a journal, the fullest first."""
    journals: dict[str, list[JournalDisk]] = {}
    for row in JournalFile.objects.filter(vanished_at=None):
        journals.setdefault(row.volume, []).append(_journal(row))
    lines = [
        _line(volume, sorted(journals[volume.mount], key=lambda journal: (-journal.total_bytes, journal.path)))
        for volume in Volume.objects.filter(mount__in=journals)
    ]
    return sorted(lines, key=lambda line: (-line.used_percent, line.mount))


def used_percent(free_bytes: int, total_bytes: int) -> float:
    """How full a volume is for a user who is not root."""
    return 100.0 * (total_bytes - free_bytes) / total_bytes if total_bytes else 0.0


def disk_level(percent: float, *, warn: float, critical: float, current: Level = "ok") -> Level:
    """The level of a reading; a level once reached is kept until the reading is HYSTERESIS below its threshold."""
    if percent >= critical - (HYSTERESIS if current == "critical" else 0):
        return "critical"
    if percent >= warn - (HYSTERESIS if current != "ok" else 0):
        return "warning"
    return "ok"


def slope_per_day(points: Sequence[tuple[datetime, int]]) -> int | None:
    """Bytes a day by least squares; None where the points span too little time."""
    if len(points) < 3 or points[-1][0] - points[0][0] < _SHORTEST:
        return None
    start = points[0][0]
    days = [(at - start).total_seconds() / 86400 for at, _ in points]
    mean_day, mean_size = sum(days) / len(days), sum(size for _, size in points) / len(points)
    spread = sum((day - mean_day) ** 2 for day in days)
    if not spread:
        return None
    return round(
        sum((day - mean_day) * (size - mean_size) for day, (_, size) in zip(days, points, strict=True)) / spread
    )


def full_at(now: datetime, free_bytes: int, growth_per_day: int | None) -> datetime | None:
    """When the volume will be full at this growth. None: it does not grow, or lasts longer than a year."""
    if not growth_per_day or growth_per_day <= 0:
        return None
    days = free_bytes / growth_per_day
    return now + timedelta(days=days) if days <= _FARTHEST.days else None


def _journal(row: JournalFile) -> JournalDisk:
    return line_of(JournalDisk, row, journal_id=row.pk, wal_level="warning" if row.wal_bytes >= WAL_LIMIT else "ok")


def _line(volume: Volume, journals: list[JournalDisk]) -> VolumeLine:
    warn, critical = settings.STEPKEEPER_DISK_WARN, settings.STEPKEEPER_DISK_CRITICAL
    percent = used_percent(volume.free_bytes, volume.total_bytes)
    return line_of(
        VolumeLine,
        volume,
        used_percent=percent,
        level=disk_level(percent, warn=warn, critical=critical),
        warn_percent=warn,
        critical_percent=critical,
        journals=tuple(journals),
    )
