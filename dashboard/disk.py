"""The disk page: one bar per volume, split by journal, with thresholds and forecast."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from agents.disk.volumes import VolumeLine, list_volumes
from dashboard.timeline.axis import format_percent
from dashboard.ui.access import require_role
from dashboard.ui.format import format_count, format_duration, format_size
from dashboard.ui.render import digest_shown, page_or_part
from journal import clock

_SHOWN = 6  # journals drawn on their own; the rest of a volume's journals share one block
_FORECAST_DAYS = 7


@dataclass(frozen=True, slots=True)
class DiskBlock:
    """One journal's share of the bar."""

    x: str
    width: str
    hue: int
    title: str


@dataclass(frozen=True, slots=True)
class VolumeBar:
    """One volume, drawn."""

    line: VolumeLine
    other_width: str
    blocks: tuple[DiskBlock, ...]
    warn_x: str
    critical_x: str
    used_x: str
    forecast_x: str
    sentence: str


@dataclass(frozen=True, slots=True)
class DiskPage:
    """The values of the disk page."""

    volumes: tuple[VolumeBar, ...]
    version: str


def build_disk_page() -> DiskPage:
    """Every volume that holds a journal."""
    volumes = tuple(_draw_volume(line) for line in list_volumes())
    return DiskPage(volumes, digest_shown(volumes))


def _draw_volume(line: VolumeLine) -> VolumeBar:
    total = line.total_bytes or 1
    used = line.total_bytes - line.free_bytes
    cursor = 100.0 * max(0, used - line.journal_bytes) / total
    other = cursor
    blocks = []
    for place, (name, size) in enumerate(_list_shares(line)):
        width = 100.0 * size / total
        title = f"{name}: {format_size(size)}"
        blocks.append(DiskBlock(format_percent(cursor), format_percent(max(width, 0.15)), place, title))
        cursor += width
    growth = max(0, line.growth_per_day or 0) * _FORECAST_DAYS
    return VolumeBar(
        line=line,
        other_width=format_percent(other),
        blocks=tuple(blocks),
        warn_x=format_percent(line.warn_percent),
        critical_x=format_percent(line.critical_percent),
        used_x=format_percent(line.used_percent),
        forecast_x=format_percent(min(100.0, line.used_percent + 100.0 * growth / total)),
        sentence=_describe_volume(line),
    )


def _list_shares(line: VolumeLine) -> list[tuple[str, int]]:
    """The parts of a volume's bar: each journal's name and bytes."""
    drawn = [(journal.agent, journal.total_bytes) for journal in line.journals[:_SHOWN]]
    rest = line.journals[_SHOWN:]
    if rest:
        drawn.append((format_count(len(rest), "more journal"), sum(journal.total_bytes for journal in rest)))
    return drawn


def _describe_volume(line: VolumeLine) -> str:
    left = f"{format_size(line.free_bytes)} free of {format_size(line.total_bytes)}"
    return "; ".join(filter(None, (left, _describe_journal_growth(line), _describe_volume_growth(line)))) + "."


def _describe_journal_growth(line: VolumeLine) -> str:
    known = [journal.growth_per_day for journal in line.journals if journal.growth_per_day is not None]
    if not known:
        return ""
    return f"its journals grow {format_size(sum(known))} a day" if sum(known) > 0 else "its journals do not grow"


def _describe_volume_growth(line: VolumeLine) -> str:
    """A volume has other files too, so its own growth says when it is full."""
    if line.growth_per_day is None:
        return "too few samples yet to say how the volume fills"
    if line.growth_per_day <= 0:
        return "the volume as a whole does not fill"
    fills = f"the volume fills by {format_size(line.growth_per_day)} a day"
    if line.full_at is None:
        return f"{fills}, which lasts more than a year"
    return f"{fills}: full in {format_duration((line.full_at - clock.wall()).total_seconds())}"


@require_safe
@require_role("viewer")
def show_disk(request: HttpRequest) -> HttpResponse:
    """Each volume with its journals."""
    page = build_disk_page()
    parts = {"disk-volumes": "disk/_volumes.html"}
    return page_or_part(request, "disk/page.html", page, parts=parts, version=page.version)
