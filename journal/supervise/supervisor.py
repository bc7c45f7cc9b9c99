"""The supervisor: it starts an agent's daemon, records how it died, and starts it again.

Between two runs it holds nothing: no lock, no connection. So whoever has a message for the journal can work.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from journal import clock, exit_codes
from journal.errors import JournalBusy, JournalUnreadable, StepkeeperError, UsageError
from journal.inbox import mailbox
from journal.supervise import exit_status
from journal.supervise.boot_record import close_ended_boot
from journal.supervise.child import Child

_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_WATCHED = {*_STOPS, signal.SIGCHLD}
# Between two runs, how often the inbox and the file are looked at: a listing and two stats.
_LOOK_SECONDS = 0.25
# Stopping takes 5 s at most: this long by SIGTERM, then SIGKILL.
GRACE_SECONDS = 4.0
# A worker or a command line may hold the lock for up to 5 s. If it does, the next opener records the death.
_RECORD_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds between a death and the next start.

    The first restart is quick: most deaths are single ones, and the journal makes restarting cheap.
    """

    quick: float = 0.1
    first: float = 1.0
    limit: float = 60.0
    forgive_after: float = 60.0

    def delay(self, deaths: int) -> float:
        """The pause after that many deaths in a row (1 = the first)."""
        return self.quick if deaths <= 1 else min(self.first * 2.0 ** min(deaths - 2, 30), self.limit)


BACKOFF = Backoff()


def supervise(
    journal: Path | str,
    command: Sequence[str],
    *,
    quiet: bool = False,
    backoff: Backoff = BACKOFF,
    grace: float = GRACE_SECONDS,
) -> int:
    """Run `command` until it exits with 0 or this process is told to stop; returns the exit code.

    A death is recorded on the boot it ended and followed by a restart with back-off. Exit code 75 waits for a
    message, a change of the journal or a due time; exit code 4, or another writer, is back-off and no crash. SIGTERM,
    SIGINT and SIGHUP are passed on; after `grace` seconds the daemon is killed. Raises UsageError where the command
    cannot be started for the first time, or off the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        raise UsageError("supervise: called from a thread.", hint="Call it from the main thread.")
    if not command:
        raise UsageError("supervise: no command.", hint="Name what to run after '--'.")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    try:
        return _Supervisor(Path(journal), command, set(mask), quiet=quiet, backoff=backoff, grace=grace).run()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class _Supervisor:
    def __init__(
        self,
        journal: Path,
        command: Sequence[str],
        mask: set[int | signal.Signals],
        *,
        quiet: bool,
        backoff: Backoff,
        grace: float,
    ) -> None:
        self._journal = journal.absolute()
        self._command = command
        self._mask = mask
        self._quiet = quiet
        self._backoff = backoff
        self._grace = grace
        self._stop: int | None = None
        self._has_run = False
        self._seen: tuple[tuple[int, int, int], ...] = ()

    def run(self) -> int:
        deaths = 0
        while True:
            # A message that was there before a start does not cut the pause after it short: no hot loop.
            known = self._messages()
            started = clock.boot_seconds()
            returncode, words = self._run_once()
            if self._stop is not None or returncode == 0:
                self._say(words)
                return 0
            if returncode == exit_codes.WAITING:
                deaths = 0
                self._say(words)
                self._pause(self._backoff.first, known)
                self._await_news(known)
            else:
                lived = clock.boot_seconds() - started
                deaths = 1 if lived >= self._backoff.forgive_after else deaths + 1
                delay = self._backoff.delay(deaths)
                self._say(f"{words}; next start in {delay:g} s")
                self._pause(delay, known)
            if self._stop is not None:
                return 0

    def _run_once(self) -> tuple[int | None, str]:
        """Run the command to its end: its return code, None where it did not start again, and how that is told."""
        try:
            child = Child(self._command, mask=self._mask)
        except UsageError as error:
            if not self._has_run:
                raise
            # It is there, for it ran: no process is free at this moment, or its file is just being replaced.
            return None, error.message.rstrip(".")
        self._has_run = True
        self._say(f"started pid {child.pid}")
        returncode = self._watch(child)
        # Before anybody else takes the lock that the daemon gave back: what they change is news.
        self._seen = self._signature()
        ended = exit_status.describe_exit(returncode, oom_kills=child.oom_kills())
        busy = self._record(child.pid, ended)
        if self._stop is not None or returncode == 0:
            return returncode, f"pid {child.pid} ended: {ended}"
        return returncode, f"pid {child.pid} {_words(returncode, ended, busy)}"

    def _watch(self, child: Child) -> int:
        """Wait for the daemon's end; pass a stop on, and make it final after the grace."""
        kill_at: float | None = None
        while not child.ended():
            if self._stop is not None and kill_at is None:
                child.signal(self._stop)
                kill_at = clock.boot_seconds() + self._grace
            left = 3600.0 if kill_at is None else kill_at - clock.boot_seconds()
            if left <= 0:
                child.kill()
                left = 1.0
            self._sleep(left)
        return child.collect()

    def _record(self, pid: int, ended: str) -> JournalBusy | None:
        """Close the boot's row; returns who held the lock instead, where somebody did."""
        wait = _RECORD_SECONDS if self._stop is None else 0.5
        try:
            if close_ended_boot(self._journal, pid=pid, ended=ended, wait=wait):
                # The row was still open, so no other process wrote before; and our own write is no news.
                self._seen = self._signature()
        except JournalBusy as busy:
            return busy
        except (StepkeeperError, sqlite3.Error, OSError) as error:
            # A full disk, say, perhaps the one it died of. Whoever opens the journal next records it.
            self._say(f"cannot record how pid {pid} ended: {error}")
        return None

    def _pause(self, seconds: float, known: frozenset[str] | None = None) -> None:
        """Sleep, at most until a stop or, where `known` is given, a message that is not among those."""
        until = clock.boot_seconds() + seconds
        while self._stop is None and (left := until - clock.boot_seconds()) > 0:
            if known is not None and self._messages() - known:
                return
            self._sleep(min(left, _LOOK_SECONDS))

    def _await_news(self, known: frozenset[str]) -> None:
        """Wait without the lock: a message, a due time, or another writer's change of the file ends it."""
        due: datetime | None = None
        answered = False
        while self._stop is None:
            if self._messages() - known or self._signature() != self._seen:
                return
            if not answered:
                # A busy journal or a slow disk is asked again at the next look.
                due, answered = _due(self._journal)
            if due is not None and clock.wall() >= due:
                return
            self._sleep(_LOOK_SECONDS)

    def _messages(self) -> frozenset[str]:
        try:
            names = os.listdir(mailbox.inbox_path(self._journal))
        except OSError:
            return frozenset()
        return frozenset(name for name in names if name.endswith(".json"))

    def _signature(self) -> tuple[tuple[int, int, int], ...]:
        found = []
        # The log stands beside the file itself, not beside a link to it.
        real = os.path.realpath(self._journal)
        for path in (real, f"{real}-wal"):
            try:
                stat = os.stat(path)
            except OSError:
                continue
            # An empty log is as good as none: a reader may make or take away one.
            if stat.st_size:
                found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        return tuple(found)

    def _sleep(self, seconds: float) -> None:
        """Sleep until a watched signal; a stop among them is remembered."""
        info = signal.sigtimedwait(_WATCHED, seconds)
        if info is not None and info.si_signo in _STOPS and self._stop is None:
            self._stop = info.si_signo

    def _say(self, text: str) -> None:
        if not self._quiet:
            print(f"supervise {self._journal.name}: {text}", file=sys.stderr, flush=True)


def _words(returncode: int, ended: str, busy: JournalBusy | None) -> str:
    if returncode == exit_codes.WAITING:
        return "waits for a person or a due time"
    if returncode == exit_codes.BUSY:
        return "found the journal busy"
    if busy is not None:
        return f"ended ({ended}); {busy.message}"
    return f"died: {ended}"


def _due(journal: Path) -> tuple[datetime | None, bool]:
    """The earliest time at which a task is due, and whether the journal could be read."""
    from journal.reader import Reader

    try:
        return Reader(journal).next_due(), True
    except JournalUnreadable as error:
        # Only these two pass by themselves; a repair of any other kind changes the file.
        return None, error.kind not in ("busy", "too_slow")
