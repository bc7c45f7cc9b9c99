"""The watch loop: finds journals, keeps the index, samples disk, raises alerts, sends the worker's canary.

One instance a data folder. The index is read in slices, with a sign of life between them. A journal whose slice fails
is a card. A journal whose slice hangs is a card too, and costs one restart of the loop. The others are read all the
same, and no lock on our own database ends the loop.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from django.conf import settings
from django.db import DatabaseError, DataError, IntegrityError, OperationalError, close_old_connections, connection
from django.db.models import F

from agents import alerts, health
from agents.catalog import discovery, liveness
from agents.disk.samples import take_samples, thin_samples
from agents.index import intents
from agents.index.tail import look_again_slices, read_slices
from agents.jobs import queue
from agents.jobs.queue import send_canary
from agents.models import IndexedTask, JournalFile
from agents.models.journal_file import VANISHED
from agents.processes.lock import hold_folder
from journal import clock
from journal.errors import JournalUnreadable

log = logging.getLogger(__name__)
_END = object()

SWEEP = 1.0  # seconds between two looks at every signature
FIND = 3.0  # listing the files is cheap, and the documents promise a new file within ten seconds
TEND = 10.0
SAMPLE = 30.0
CANARY = 30.0
BEAT = 3.5  # plus the sweep's second it stays under the five seconds that pages promise
THIN = 600.0
# A first look at a large fleet takes longer than this; the other duties, new files among them, come in between.
SWEEP_AT_MOST = 3.0
# Slices of one journal before the others get their turn.
SLICES = 5
# One look at one file takes half a second at most, and its rows wait up to 10 s for a lock on our own database. What
# takes longer hangs in the file system or in SQLite.
HUNG = 20.0
HUNG_EXIT = 1
# A file written this lately may be written again within the same tick of its clock.
_SETTLED_NS = 50_000_000


@dataclass(slots=True)
class Reading:
    """A journal that is being read: its row, its signature from before, and the slices that are left."""

    row: JournalFile
    stamp: str
    slices: Iterator[None]

    def fits(self, row: JournalFile) -> bool:
        """Whether the index still stands where the slices left it: somebody may have had it begin anew."""
        ours, stored = (
            (one.path, one.indexed_boot, one.indexed_revision, one.unsummed_hours) for one in (self.row, row)
        )
        return ours == stored


class Watch:
    """The loop's own state: when each duty is due, what is being read, and that it is to stop."""

    def __init__(self) -> None:
        self._stopped = False
        self._started_at = clock.wall()
        self._due: dict[str, float] = {}
        self._beaten = float("-inf")
        self._reading: dict[int, Reading] = {}
        self._looks_at: tuple[str, float] | None = None  # the path at hand and since when, for `_end_when_hung`
        self._told: dict[int, str] = {}  # the last sentence logged about each journal, so that no try logs it again
        self._duties: tuple[tuple[str, float, Callable[[], None]], ...] = (
            ("find", FIND, self.find),
            ("tend", TEND, self.tend),
            ("sweep", SWEEP, self.sweep),
            ("beat", SWEEP, self._beat),
            ("jobs", SWEEP, queue.sweep_jobs),
            ("canary", CANARY, lambda: send_canary(watching_since=self._started_at)),
            ("sample", SAMPLE, lambda: take_samples(self._look_at)),
            ("alerts", TEND, lambda: alerts.evaluate_alerts(watching_since=self._started_at)),
            ("thin", THIN, thin_samples),
        )

    def run(self) -> None:
        """Until `stop`; it returns within a second of that, or as soon as the query at hand ends."""
        lock = hold_folder(settings.STEPKEEPER_DATA, "watch loop")
        threading.Thread(target=self._end_when_hung, daemon=True).start()
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
            # A little early: a turn that begins slightly too soon must not skip the duties of each second.
            self._due[name] = now + every - 0.05
            self._do(name, duty)

    def find(self) -> None:
        """Bring the journals' rows in line with the globs; a new file is sampled in the same turn."""
        if discovery.refresh_journals(self._look_at):
            self._due.pop("sample", None)

    def tend(self) -> None:
        """Retry the files that could not be read, and update states that change without a change of the file."""
        unread = JournalFile.objects.exclude(kind__in=("ok", VANISHED)).exclude(retry_at__gt=clock.wall())
        for row in unread:
            self._guarded(row, self._look_again)
        moving, due = liveness.journals_to_derive(), intents.journals_with_old_intents()
        for row in JournalFile.objects.filter(kind="ok"):
            self._guarded(row, self._mind_writer)
            if row.pk in due:
                self._begin_looking_again(row)
            if row.pk in moving:
                liveness.derive_states(row)

    def sweep(self) -> None:
        """Read on in every journal whose signature changed since it was read."""
        busy = set(IndexedTask.objects.filter(status="running").values_list("journal", flat=True).distinct())
        until = time.monotonic() + SWEEP_AT_MOST
        # Whoever waited longest comes first: a sweep that was cut short goes on where it ended.
        oldest_first = F("swept_at").asc(nulls_first=True)
        for row in JournalFile.objects.filter(kind__in=("ok", "new")).order_by(oldest_first, "path"):
            self._guarded(row, self._sweep_one, busy)
            if self._stopped or time.monotonic() > until:
                return

    def _sweep_one(self, row: JournalFile, busy: Collection[int]) -> None:
        if row.pk in self._reading or discovery.change_stamp(row.path) != row.signature:
            self._read(row)
        elif row.pk in busy or _is_gone(row.writer_pid):
            self._mind_writer(row)

    def _beat(self) -> None:
        if time.monotonic() - self._beaten >= BEAT:
            health.record_beat("watch")
            self._beaten = time.monotonic()

    def _read(self, row: JournalFile) -> None:
        """Take the next slices of a journal, or begin with the first."""
        reading = self._reading.pop(row.pk, None)
        if reading is None or not reading.fits(row):
            reading = self._begin_reading(row)
        if reading is None:
            return
        for _ in range(SLICES):
            self._look_at(row.path)
            if next(reading.slices, _END) is _END:
                self._end_reading(reading)
                return
            if self._stopped:
                break
        self._reading[row.pk] = reading
        JournalFile.objects.filter(pk=row.pk).update(swept_at=clock.wall())

    def _begin_reading(self, row: JournalFile) -> Reading | None:
        # Taken before reading: what is written meanwhile makes the next stamp another one.
        stamp = discovery.change_stamp(row.path)
        state = discovery.inspect_path(row.path)
        if state.kind == "busy":
            return None  # its writer writes too quickly just now: the next sweep tries again
        discovery.record_state(row, state)
        if not row.is_indexed:
            return Reading(row, stamp, iter(()))
        liveness.record_writer(row)
        return Reading(row, stamp, read_slices(row))

    def _end_reading(self, reading: Reading) -> None:
        row = reading.row
        if row.is_indexed:
            liveness.derive_states(row)
        row.signature, row.swept_at = reading.stamp if _is_settled(reading.stamp) else "", clock.wall()
        row.save(update_fields=["signature", "swept_at"])
        self._told.pop(row.pk, None)

    def _begin_looking_again(self, row: JournalFile) -> None:
        """Have the coming sweeps look at the journal's intents; a reading does so anyway at its end."""
        if row.signature:
            self._reading.setdefault(row.pk, Reading(row, row.signature, look_again_slices(row)))

    def _look_again(self, row: JournalFile) -> None:
        row.refresh_from_db()  # somebody may have acknowledged it since the list was read
        if row.kind == "failed":
            self._read(row)  # read at once: until then the journal would be neither a card nor up to date
            return
        discovery.record_state(row, discovery.inspect_path(row.path))
        if row.is_indexed:
            row.signature = ""
            row.save(update_fields=["signature"])

    def _mind_writer(self, row: JournalFile) -> None:
        """Notice an agent that was killed: its journal does not say so, its lock does."""
        if liveness.record_writer(row):
            liveness.derive_states(row)
            intents.mark_changed(row)
            self._begin_looking_again(row)

    def _look_at(self, path: str) -> None:
        """Note which file is looked at from now on, and give the sign of life when it is due."""
        self._looks_at = None
        self._beat()
        self._looks_at = (path, time.monotonic())

    def _end_when_hung(self) -> None:
        """In a thread of its own: end this process when one look at one file takes too long.

        Nothing in here can take back a call that hangs in the kernel or in SQLite. The file's card is on disk before
        the end, so the loop that is started next leaves the file alone for a while.
        """
        while not self._stopped:
            time.sleep(0.2)
            looks_at = self._looks_at
            if looks_at is not None and time.monotonic() - looks_at[1] > HUNG:
                log.error("Journal %s: reading it hangs. Watch ends and starts again without it.", looks_at[0])
                try:
                    discovery.record_hang(looks_at[0], seconds=HUNG)
                finally:
                    os._exit(HUNG_EXIT)

    def _guarded(self, row: JournalFile, act: Callable[..., None], *arguments: object) -> None:
        """One bad journal is one card; the others go on."""
        try:
            self._look_at(row.path)
            act(row, *arguments)
        except JournalUnreadable as error:
            if error.kind == "busy":
                return
            self._card(row, error.kind, error.message, error.hint)
        except Exception as error:
            if isinstance(error, DatabaseError) and not _is_about_rows(error):
                raise  # our own database fails now: the whole duty is tried again
            sentence = f"Reading it failed with {type(error).__name__}."
            if self._card(row, "failed", sentence, "The log of watch says where. It is tried again every 10 seconds."):
                log.exception("Journal %s", row.path)
        finally:
            self._looks_at = None

    def _card(self, row: JournalFile, kind: str, sentence: str, hint: str) -> bool:
        """Store the problem in the journal's row. True if the problem is new."""
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
            # Another process holds the lock of our database, or the disk failed: the next turn tries again.
            log.warning("Watch could not %s: %s. It tries again.", name, error)
            close_old_connections()
            self._due[name] = 0.0
        except Exception:
            log.exception("Watch could not %s. It tries again.", name)
        finally:
            self._looks_at = None


def _is_gone(pid: int | None) -> bool:
    return pid is not None and not os.path.exists(f"/proc/{pid}")


def _is_about_rows(error: DatabaseError) -> bool:
    """Whether a journal's rows did not fit our tables, or made a sum too large. Other journals are not affected.

    SQLite reports such a sum as it reports a locked database, as an OperationalError; its code tells them apart.
    """
    if not isinstance(error, OperationalError):
        return isinstance(error, DataError | IntegrityError)
    return getattr(error.__cause__, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR


def _sync_less() -> None:
    """Commit without an fsync: unlike decisions, the rows that watch writes can be read again from the journals."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous = NORMAL")


def _is_settled(stamp: str) -> bool:
    if not stamp:
        return False
    newest = max((stat[3] for stat in json.loads(stamp) if stat), default=0)
    return time.time_ns() - int(newest) > _SETTLED_NS
