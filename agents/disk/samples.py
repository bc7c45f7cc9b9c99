"""Samples of sizes and free space, taken by watch and thinned out as they age."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from django.db import transaction
from django.db.models import Max, Q

from agents.disk.volumes import full_at, slope_per_day
from agents.models import DiskSample, JournalFile, Volume
from journal import clock
from journal.inbox.mailbox import inbox_path

# (grain, how long readings of that grain are kept): at most 120 + 288 + 960 rows of one journal.
_KEPT = ((30, timedelta(hours=1)), (300, timedelta(hours=24)), (3600, timedelta(days=40)))


def grain(now: datetime, last: dict[int, datetime]) -> int:
    """The coarsest series a reading taken now belongs to, given when each grain was last taken."""
    for seconds in (3600, 300):
        if seconds not in last or (now - last[seconds]).total_seconds() >= seconds:
            return seconds
    return 30


def take_samples(before_each: Callable[[str], None] = lambda path: None) -> None:
    """Take one reading of every journal and every volume. Stats only: no journal is opened.

    `before_each` is called before each file is looked at.
    """
    now = clock.wall()
    mounts: dict[str, Volume] = {}
    last = _last_grains("journal", now)
    readings, measured = [], []
    for row in JournalFile.objects.filter(vanished_at=None).exclude(retry_at__gt=now):
        before_each(row.path)
        if not _measure(row):
            continue
        mounts.setdefault(row.volume, _volume(row.volume, now))
        size = grain(now, last.get(row.pk, {}))
        readings.append(
            DiskSample(
                journal=row,
                taken_at=now,
                grain=size,
                file_bytes=row.file_bytes,
                wal_bytes=row.wal_bytes,
                inbox_bytes=row.inbox_bytes,
            )
        )
        if size > 30:
            row.growth_per_day = slope_per_day(_sizes(row, now))
        measured.append(row)
    last = _last_grains("volume", now)
    readings.extend(
        DiskSample(
            volume=volume,
            taken_at=now,
            grain=grain(now, last.get(volume.pk, {})),
            free_bytes=volume.free_bytes,
            total_bytes=volume.total_bytes,
        )
        for volume in mounts.values()
    )
    with transaction.atomic():
        for row in measured:
            row.save(update_fields=[*_MEASURED, "growth_per_day"])
        DiskSample.objects.bulk_create(readings, batch_size=100)


def thin_samples() -> None:
    """Delete fine-grained readings that are old enough for a coarser series."""
    now = clock.wall()
    for seconds, kept in _KEPT:
        DiskSample.objects.filter(grain=seconds, taken_at__lt=now - kept).delete()


_MEASURED = ("volume", "file_bytes", "wal_bytes", "shm_bytes", "inbox_bytes", "inbox_messages")


def _measure(row: JournalFile) -> bool:
    try:
        row.file_bytes = os.stat(row.path).st_size
        row.volume = _mount(row.path)
    except OSError:
        return False
    row.wal_bytes, row.shm_bytes = _size(row.path + "-wal"), _size(row.path + "-shm")
    row.inbox_bytes, row.inbox_messages = _folder(inbox_path(Path(row.path)))
    return True


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _folder(path: Path) -> tuple[int, int]:
    try:
        # A link in the place of the inbox leads to somebody else's folder.
        if path.is_symlink():
            return 0, 0
        with os.scandir(path) as entries:
            sizes = [_size(entry.path) for entry in entries]
    except OSError:
        return 0, 0
    return sum(sizes), len(sizes)


def _mount(path: str) -> str:
    folder = os.path.dirname(os.path.realpath(path))
    while not os.path.ismount(folder):
        folder = os.path.dirname(folder)
    return folder


def _volume(mount: str, now: datetime) -> Volume:
    found = os.statvfs(mount)
    # As `df` counts: blocks reserved for root are neither used nor free.
    free = found.f_bavail * found.f_frsize
    total = (found.f_blocks - found.f_bfree) * found.f_frsize + free
    volume, _ = Volume.objects.update_or_create(
        mount=mount, defaults={"free_bytes": free, "total_bytes": total, "sampled_at": now}
    )
    points = list(
        DiskSample.objects.filter(volume=volume, grain__gt=30, taken_at__gte=now - timedelta(hours=24))
        .order_by("taken_at")
        .values_list("taken_at", "free_bytes")
    )
    volume.growth_per_day = slope_per_day([(at, -(size or 0)) for at, size in [*points, (now, free)]])
    volume.full_at = full_at(now, free, volume.growth_per_day)
    volume.save(update_fields=["growth_per_day", "full_at"])
    return volume


def _sizes(row: JournalFile, now: datetime) -> list[tuple[datetime, int]]:
    # The write-ahead log is overwritten in place, so its size says nothing about growth.
    taken = (
        DiskSample.objects.filter(journal=row, grain__gt=30, taken_at__gte=now - timedelta(hours=24))
        .order_by("taken_at")
        .values_list("taken_at", "file_bytes", "inbox_bytes")
    )
    return [(at, (size or 0) + (inbox or 0)) for at, size, inbox in taken] + [(now, row.file_bytes + row.inbox_bytes)]


def _last_grains(of: Literal["journal", "volume"], now: datetime) -> dict[int, dict[int, datetime]]:
    found: dict[int, dict[int, datetime]] = {}
    taken = DiskSample.objects.filter(
        ~Q(**{of: None}), grain__gt=30, taken_at__gte=now - timedelta(hours=2)
    ).values_list(of, "grain")
    for pk, seconds, at in taken.annotate(last=Max("taken_at")):
        grains = found.setdefault(pk, {})
        grains[seconds] = at
        # An hourly reading is a five-minute one too.
        grains[300] = max(at, grains.get(300, at))
    return found
