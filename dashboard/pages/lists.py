"""Pages that are one keyset list: alerts, audit, journals."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from agents import alerts
from agents.access import audit
from agents.fleet import queries
from agents.fleet.summaries import JournalLine


@dataclass(frozen=True, slots=True)
class AlertsPage:
    """Open alerts first, then what has closed. `first_href` is empty on the first page."""

    open: tuple[alerts.AlertLine, ...]
    closed: tuple[alerts.AlertLine, ...]
    href: str
    next_href: str
    first_href: str
    version: str

    @property
    def is_empty(self) -> bool:
        return not self.open and not self.closed


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page of the audit and its filter."""

    lines: tuple[audit.AuditLine, ...]
    next_cursor: str | None
    actor: str
    refused: bool


@dataclass(frozen=True, slots=True)
class JournalsPage:
    """Every file the globs gave: those that can be read, and the cards of those that cannot."""

    cards: tuple[JournalLine, ...]
    journals: tuple[JournalLine, ...]
    globs: tuple[str, ...]
    as_root: bool
    decides: bool
    version: str

    @property
    def is_empty(self) -> bool:
        return not self.cards and not self.journals


def alerts_page(after: str) -> AlertsPage:
    """One page of alerts. Raises ValueError for a cursor that is none."""
    page = alerts.list_alerts(after=after)
    url = reverse("alerts")
    return AlertsPage(
        open=tuple(line for line in page.items if line.closed_at is None),
        closed=tuple(line for line in page.items if line.closed_at is not None),
        href=paged(url, after),
        next_href=paged(url, page.next_cursor) if page.next_cursor else "",
        first_href=url if after else "",
        version=digest(page),
    )


def paged(url: str, after: str) -> str:
    """The address of the page of a list that begins after a cursor; without one, of its first page."""
    return f"{url}?{urlencode({'after': after})}" if after else url


def digest(*told: object) -> str:
    """What a poll compares: everything the part tells."""
    return f"{zlib.crc32(repr(told).encode('utf-8', 'backslashreplace')):x}"


def audit_page(*, after: str, actor: str, refused: bool) -> AuditPage:
    """One page of the audit. Raises ValueError for a cursor that is none."""
    page = audit.list_events(after=after, actor=actor, refused_only=refused)
    return AuditPage(page.items, page.next_cursor, actor, refused)


def journals_page(*, globs: tuple[str, ...], as_root: bool, decides: bool) -> JournalsPage:
    """Every journal file known."""
    lines = queries.list_journals()
    return JournalsPage(
        tuple(line for line in lines if not line.is_fine),
        tuple(line for line in lines if line.is_fine),
        globs,
        as_root,
        decides,
        digest([_shown(line) for line in lines], decides),
    )


def _shown(line: JournalLine) -> tuple[object, ...]:
    """What the table tells of a journal. When a file was seen is told only of one that is gone."""
    told = (line.journal_id, line.path, line.kind, line.sentence, line.hint, line.agent, line.warnings, line.dialect)
    numbers = (line.tasks, line.pending, line.highest_boot, line.file_bytes, line.writer_pid, line.writer_role)
    return *told, *numbers, line.read_at, line.seen_at if line.is_gone else None
