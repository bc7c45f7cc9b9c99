"""The audit: one line per decision, refusal, sign-in and payload that somebody saw."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.contrib.auth.models import User
from django.db.models import Q

from agents.access.roles import Person
from agents.models import AuditEvent, Job, JournalFile
from agents.paging import RowPlace, cut_page, line_of, parse_cursor
from journal import clock
from journal.reader.paging import Page

PAGE = 100
REPEATED = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line as pages show it."""

    at: datetime
    actor: str
    action: str
    allowed: bool
    detail: str
    journal_id: int | None
    journal_path: str
    task_id: str
    step_index: int | None
    job_uuid: str | None


def record_event(
    action: str,
    *,
    actor: Person | None,
    allowed: bool = True,
    detail: str = "",
    actor_name: str = "",
    journal: JournalFile | None = None,
    task_id: str = "",
    step_index: int | None = None,
    job: Job | None = None,
) -> None:
    """Write one line. `actor` may be anonymous or None; `actor_name` then says who was claimed to act."""
    user = actor if isinstance(actor, User) else None
    AuditEvent.objects.create(
        at=clock.wall(),
        actor=user,
        actor_name=user.get_username() if user else _stored(actor_name) or "anonymous",
        action=action,
        allowed=allowed,
        detail=_stored(detail)[:4000],
        journal=journal,
        journal_path=journal.path if journal else "",
        task_id=_stored(task_id),
        step_index=step_index,
        job=job,
    )


def _stored(text: str) -> str:
    """Text as SQLite can store it. An address may hold bytes that are no UTF-8, and its refusal is audited too."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def record_once(
    action: str,
    *,
    actor: Person | None,
    allowed: bool,
    detail: str,
    journal: JournalFile | None = None,
    task_id: str = "",
    step_index: int | None = None,
) -> None:
    """Write one line; the same event of the same person within a minute is the same line.

    A page that is left open asks every second or two. A line for each poll would hide all other lines.
    """
    user = actor if isinstance(actor, User) else None
    same = AuditEvent.objects.filter(at__gt=clock.wall() - REPEATED, actor=user, action=action, allowed=allowed)
    place = {"journal": journal, "task_id": _stored(task_id), "step_index": step_index}
    if not same.filter(detail=_stored(detail)[:4000], **place).exists():
        record_event(
            action,
            actor=actor,
            allowed=allowed,
            detail=detail,
            journal=journal,
            task_id=task_id,
            step_index=step_index,
        )


def list_events(
    *,
    after: str = "",
    limit: int = PAGE,
    actor: str = "",
    refused_only: bool = False,
    task_id: str | None = None,
) -> Page[AuditLine]:
    """Newest first. Raises ValueError for a cursor that is none."""
    events = AuditEvent.objects.order_by("-at", "-id")
    if actor:
        events = events.filter(actor_name=actor)
    if refused_only:
        events = events.filter(allowed=False)
    if task_id is not None:
        events = events.filter(task_id=task_id)
    last = parse_cursor(after)
    if last:
        events = events.filter(Q(at__lt=last[0]) | Q(at=last[0], id__lt=last[1]))
    return cut_page(events, limit, place=lambda row: RowPlace(row.at, row.pk), lines=partial(map, _line))


def _line(row: AuditEvent) -> AuditLine:
    return line_of(AuditLine, row, actor=row.actor_name, job_uuid=str(row.job_id) if row.job_id else None)
