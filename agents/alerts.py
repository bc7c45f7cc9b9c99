"""Alerts: one open row for each problem that watch found, closed when the problem is over."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db.models import Case, Count, IntegerField, Min, Q, Value, When

from agents import health
from agents.disk import volumes
from agents.disk.volumes import HYSTERESIS, WAL_LIMIT, used_percent
from agents.models import Alert, Beat, JournalFile, PendingIntent, Volume
from agents.models.alert import CRITICAL, WARNING
from agents.models.pending_intent import HELD
from agents.paging import RowPlace, cut_page, line_of, parse_cursor
from agents.states import describe_length
from journal import clock
from journal.reader.paging import Page

log = logging.getLogger(__name__)

PAGE = 100
_RANK = Case(
    When(closed_at__isnull=False, then=Value(2)),
    When(level=CRITICAL, then=Value(0)),
    default=Value(1),
    output_field=IntegerField(),
)


@dataclass(frozen=True, slots=True)
class AlertFinding:
    """Something wrong now. `kind` and `subject` name it for as long as it lasts."""

    kind: str  # disk, wal, journal, intent, worker
    subject: str
    level: str
    sentence: str
    hint: str = ""
    journal_id: int | None = None


@dataclass(frozen=True, slots=True)
class AlertLine:
    """One alert as pages show it; open while `closed_at` is None."""

    kind: str
    subject: str
    level: str
    sentence: str
    hint: str
    journal_id: int | None
    opened_at: datetime
    closed_at: datetime | None


def list_alerts(*, after: str = "", limit: int = PAGE) -> Page[AlertLine]:
    """Open alerts, critical ones first, then closed ones; the newest of each kind first.

    Raises ValueError for a cursor that is none.
    """
    rows = Alert.objects.annotate(rank=_RANK).order_by("rank", "-opened_at", "-id")
    last = parse_cursor(after)
    if last:
        older = Q(opened_at__lt=last.at) | Q(opened_at=last.at, id__lt=last.row_id)
        rows = rows.filter(Q(rank__gt=last.rank) | Q(rank=last.rank) & older)
    return cut_page(
        rows,
        limit,
        place=lambda row: RowPlace(row.opened_at, row.pk, row.rank),
        lines=partial(map, partial(line_of, AlertLine)),
    )


def evaluate_alerts(*, watching_since: datetime) -> None:
    """Find what is wrong now; open, change and close alerts accordingly."""
    now = clock.wall()
    current = {(row.kind, row.subject): row for row in Alert.objects.filter(closed_at=None)}
    found = [
        *_disks({row.subject: row.level for row in current.values() if row.kind == "disk"}),
        *_journals({row.subject for row in current.values() if row.kind == "wal"}),
        *_intents(now),
        *_worker(now, watching_since),
    ]
    for finding in found:
        _raise(finding, current.get((finding.kind, finding.subject)), now)
    wrong = {(finding.kind, finding.subject) for finding in found}
    for place, row in current.items():
        if place not in wrong:
            Alert.objects.filter(pk=row.pk, closed_at=None).update(closed_at=now, changed_at=now)
            log.info("Over: %s", row.sentence)


def _raise(finding: AlertFinding, known: Alert | None, now: datetime) -> None:
    if known is None:
        # If two processes find the same problem at once, the constraint on open alerts keeps one row.
        made = Alert.objects.bulk_create(
            [
                Alert(
                    kind=finding.kind,
                    subject=finding.subject,
                    level=finding.level,
                    sentence=finding.sentence,
                    hint=finding.hint,
                    journal_id=finding.journal_id,
                    opened_at=now,
                    changed_at=now,
                )
            ],
            ignore_conflicts=True,
        )
        if made:
            log.warning("%s %s", finding.sentence, finding.hint)
    elif (known.level, known.sentence) != (finding.level, finding.sentence):
        Alert.objects.filter(pk=known.pk, closed_at=None).update(
            level=finding.level, sentence=finding.sentence, hint=finding.hint, changed_at=now
        )


def _disks(open_levels: dict[str, str]) -> list[AlertFinding]:
    found = []
    for volume in Volume.objects.filter(mount__in=JournalFile.objects.filter(vanished_at=None).values("volume")):
        percent = used_percent(volume.free_bytes, volume.total_bytes)
        before = open_levels.get(volume.mount)
        level = volumes.disk_level(
            percent,
            warn=settings.STEPKEEPER_DISK_WARN,
            critical=settings.STEPKEEPER_DISK_CRITICAL,
            current="critical" if before == CRITICAL else "warning" if before == WARNING else "ok",
        )
        if level != "ok":
            threshold = settings.STEPKEEPER_DISK_CRITICAL if level == "critical" else settings.STEPKEEPER_DISK_WARN
            sentence = f"The volume {volume.mount} is over {threshold} % full."
            hint = "An agent that cannot write its journal starts no further step: make room."
            found.append(AlertFinding("disk", volume.mount, level, sentence, hint))
    return found


def _journals(open_wals: set[str]) -> list[AlertFinding]:
    found = []
    for row in JournalFile.objects.exclude(kind__in=("ok", "new")):
        # The reader's own sentence names the file already.
        sentence = row.sentence if row.sentence.startswith("Journal ") else f"Journal {row.path}: {row.sentence}"
        found.append(AlertFinding("journal", row.path, WARNING, sentence, row.hint, row.pk))
    for row in JournalFile.objects.filter(vanished_at=None):
        limit = WAL_LIMIT * (1 - HYSTERESIS / 100) if row.path in open_wals else WAL_LIMIT
        if row.wal_bytes >= limit:
            sentence = f"The write-ahead log of {row.path} is over {WAL_LIMIT // 2**20} MiB."
            hint = "A reader that holds a transaction open keeps it from shrinking; find it with lsof."
            found.append(AlertFinding("wal", row.path, WARNING, sentence, hint, row.pk))
    return found


def _intents(now: datetime) -> list[AlertFinding]:
    """One alert per journal: an operator looks once at an agent with a hundred held steps."""
    limit = timedelta(seconds=settings.STEPKEEPER_INTENT_ALERT)
    late = (
        PendingIntent.objects.filter(dated=True, since__lt=now - limit)
        .values("journal_id", "journal__path", "journal__agent")
        .annotate(pending=Count("pk"), held=Count("pk", filter=Q(state=HELD)), oldest=Min("since"))
        .order_by("oldest")
    )
    found = []
    for row in late:
        pending, held = row["pending"], row["held"]
        what = f"{held:,} held" if held == pending else f"{pending:,} pending, {held:,} of them held"
        sentence = f"Agent {row['journal__agent']}: intents unsettled for over {describe_length(limit)}: {what}."
        hint = "Decide them on the pending page." if held else "Its agent has to run for them to be settled."
        found.append(AlertFinding("intent", row["journal__path"], WARNING, sentence, hint, row["journal_id"]))
    return found


def _worker(now: datetime, watching_since: datetime) -> list[AlertFinding]:
    beat = Beat.objects.filter(name="worker").first()
    last = max(beat.beaten_at, watching_since) if beat else watching_since
    if now - last <= health.FRESH["worker"]:
        return []
    sentence = "The worker does not answer: decisions and status queries wait."
    return [
        AlertFinding("worker", "worker", CRITICAL, sentence, "Look at its log; restart the dashboard if it stays so.")
    ]
