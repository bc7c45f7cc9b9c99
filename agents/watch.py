"""The watch loop: finds journals, keeps the index, samples disk, raises alerts, sends the worker's canary.

One instance a data folder. Nothing that goes wrong with one journal, and no lock on our own database, ends it.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable

from django.conf import settings
from django.db import DatabaseError, DataError, IntegrityError, OperationalError, close_old_connections, connection
from django.db.models import F

from agents import alerts, health
from agents.catalog import discovery, liveness
from agents.disk.samples import take_samples, thin_samples
from agents.index import intents
from agents.index.tail import read_changes, refresh_intents
from agents.jobs import queue
from agents.jobs.queue import send_canary
from agents.models import IndexedTask, JournalFile
from agents.models.journal_file import VANISHED
from agents.processes.lock import hold_folder
from journal import clock
from journal.errors import JournalUnreadable

log = logging.getLogger(__name__)

SWEEP = 1.0  # seconds between two looks at every signature
FIND = 3.0  # a look at the globs is cheap, and a new file is promised within ten
TEND = 10.0
SAMPLE = 30.0
CANARY = 30.0
BEAT = 3.5  # with the sweep's second it stays under the five that pages promise
THIN = 600.0
# A first look at a large fleet takes longer than this; the other duties, new files among them, come in between.
SWEEP_AT_MOST = 8.0
# Batches of one journal before the others get their turn.
BATCHES = 5
# A file written this lately may be written again within the same tick of its clock.
_SETTLED_NS = 50_000_000


class Watch:
    """The loop's own state: when each duty is due, and that it is to stop."""

    def __init__(self) -> None:
        self._stopped = False
        self._started_at = clock.wall()
        self._due: dict[str, float] = {}
        self._beaten = float("-inf")
        self._told: dict[int, str] = {}  # what the log was told of a journal last: each try finds the same again
        self._duties: tuple[tuple[str, float, Callable[[], None]], ...] = (
            ("find", FIND, self.find),
            ("tend", TEND, self.tend),
            ("sweep", SWEEP, self.sweep),
            ("beat", SWEEP, self._beat),
            ("jobs", SWEEP, queue.sweep_jobs),
            ("canary", CANARY, lambda: send_canary(watching_since=self._started_at)),
            ("sample", SAMPLE, take_samples),
            ("alerts", TEND, lambda: alerts.evaluate_alerts(watching_since=self._started_at)),
            ("thin", THIN, thin_samples),
        )

    def run(self) -> None:
        """Until `stop`; it returns within a second of that, or as soon as the query at hand ends."""
        lock = hold_folder(settings.STEPKEEPER_DATA, "watch loop")
        try:
            self._do("forget the signs of life of an earlier run", health.forget_beats)
            while not self._stopped:
                started = time.monotonic()
                self._do("prepare its connection", _sync_less)
                self.turn(started)
                time.sleep(max(0.05, SWEEP - (time.monotonic() - started)))
        finally:
            os.close(lock)

    def stop(self, *_: object) -> None:
        """Ask `run` to return; also as a signal handler, so nothing with a lock inside is touched."""
        self._stopped = True

    def turn(self, now: float) -> None:
        """Do every duty that is due."""
        for name, every, duty in self._duties:
            if self._stopped:
                return
            if now < self._due.get(name, 0.0):
                continue
            # Slightly early, so that a duty of each second is not skipped by a turn that began a little too soon.
            self._due[name] = now + every - 0.05
            self._do(name, duty)

    def find(self) -> None:
        """Bring the journals' rows in line with the globs; a new file is sampled in the same turn."""
        if discovery.refresh_journals():
            self._due.pop("sample", None)

    def tend(self) -> None:
        """Look again at what could not be read before, and at what changes without a change of its file."""
        for row in JournalFile.objects.exclude(kind__in=("ok", VANISHED)):
            self._guarded(row, self._look_again)
        moving, due = liveness.journals_to_derive(), intents.journals_with_old_intents()
        for row in JournalFile.objects.filter(kind="ok"):
            self._beat()  # a long look at many journals is no silence
            self._guarded(row, self._mind_writer)
            if row.pk in due:
                self._guarded(row, refresh_intents)
            if row.pk in moving:
                liveness.derive_states(row)

    def sweep(self) -> None:
        """Open every journal whose signature changed since it was read."""
        busy = set(IndexedTask.objects.filter(status="running").values_list("journal", flat=True).distinct())
        until = time.monotonic() + SWEEP_AT_MOST
        # Whoever waited longest comes first: a sweep that was cut short goes on where it ended.
        oldest_first = F("read_at").asc(nulls_first=True)
        for row in JournalFile.objects.filter(kind__in=("ok", "new")).order_by(oldest_first, "path"):
            if self._stopped or time.monotonic() > until:
                return
            self._beat()
            if discovery.change_stamp(row.path) != row.signature:
                self._guarded(row, self._read)
            elif row.pk in busy or _is_gone(row.writer_pid):
                self._guarded(row, self._mind_writer)

    def _beat(self) -> None:
        if time.monotonic() - self._beaten >= BEAT:
            health.record_beat("watch")
            self._beaten = time.monotonic()

    def _read(self, row: JournalFile) -> None:
        # Taken before reading: what is written meanwhile makes the next stamp another one.
        stamp = discovery.change_stamp(row.path)
        state = discovery.inspect_path(row.path)
        if state.kind == "busy":
            return  # its writer is quicker than us just now: the next sweep tries again
        discovery.record_state(row, state)
        more = False
        if row.is_indexed:
            liveness.record_writer(row)
            for _ in range(BATCHES):
                more = read_changes(row)
                if not more or self._stopped:
                    break
            liveness.derive_states(row)
        row.signature = "" if more or not _is_settled(stamp) else stamp
        row.save(update_fields=["signature"])
        self._told.pop(row.pk, None)

    def _look_again(self, row: JournalFile) -> None:
        row.refresh_from_db()  # somebody may have acknowledged it since the list was read
        if row.kind == "failed":
            self._read(row)  # at once, so that it is a card or read, and not for a second neither
            return
        discovery.record_state(row, discovery.inspect_path(row.path))
        if row.is_indexed:
            row.signature = ""
            row.save(update_fields=["signature"])

    def _mind_writer(self, row: JournalFile) -> None:
        """A killed agent leaves no word in its journal; its lock tells."""
        if liveness.record_writer(row):
            liveness.derive_states(row)
            refresh_intents(row)

    def _guarded(self, row: JournalFile, act: Callable[[JournalFile], None]) -> None:
        """One bad journal is one card; the others go on."""
        try:
            act(row)
        except JournalUnreadable as error:
            if error.kind == "busy":
                return
            self._card(row, error.kind, error.message, error.hint)
        except Exception as error:
            if isinstance(error, DatabaseError) and not _is_about_rows(error):
                raise  # our own database cannot work now: the whole duty is tried again
            sentence = f"Reading it failed with {type(error).__name__}."
            if self._card(row, "failed", sentence, "The log of watch says where. It is tried again every 10 seconds."):
                log.exception("Journal %s", row.path)

    def _card(self, row: JournalFile, kind: str, sentence: str, hint: str) -> bool:
        """Put what is wrong into the journal's row. True when that is news."""
        changed = self._told.get(row.pk) != sentence
        self._told[row.pk] = sentence
        JournalFile.objects.filter(pk=row.pk).update(kind=kind[:32], sentence=sentence, hint=hint, signature="")
        if changed:
            log.warning("Journal %s: %s", row.path, sentence)
        return changed

    def _do(self, name: str, duty: Callable[[], None]) -> None:
        try:
            duty()
        except DatabaseError as error:
            # Somebody holds our database's lock, or it is gone for a moment: next turn.
            log.warning("Watch could not %s: %s. It tries again.", name, error)
            close_old_connections()
            self._due[name] = 0.0
        except Exception:
            log.exception("Watch could not %s. It tries again.", name)


def _is_gone(pid: int | None) -> bool:
    return pid is not None and not os.path.exists(f"/proc/{pid}")


def _is_about_rows(error: DatabaseError) -> bool:
    """Whether what a journal holds did not fit our tables, or made a sum too large: no other journal is touched by it.

    SQLite reports such a sum as it reports a locked database, as an OperationalError; its code tells them apart.
    """
    if not isinstance(error, OperationalError):
        return isinstance(error, DataError | IntegrityError)
    return getattr(error.__cause__, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR


def _sync_less() -> None:
    """What watch writes can be read again from the journals: it needs no fsync for each commit, as decisions do."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous = NORMAL")


def _is_settled(stamp: str) -> bool:
    if not stamp:
        return False
    newest = max((stat[3] for stat in json.loads(stamp) if stat), default=0)
    return time.time_ns() - int(newest) > _SETTLED_NS
