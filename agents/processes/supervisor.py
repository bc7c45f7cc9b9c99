"""The running parts of the dashboard: started, watched, started again, stopped."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agents.processes.tree import (
    adopt_orphans,
    descendants,
    end_descendants,
    end_tree,
    is_child,
    reap_children,
    signal_processes,
    start_process,
)
from journal.supervise import exit_status

STOP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
GRACE = 5.0  # seconds from SIGTERM to SIGKILL when asked to stop
ORPHAN_GRACE = 1.5  # the same after the parent was killed: nobody waits then
LONGEST_BACKOFF = 30.0
STEADY = 60.0  # a part that ran this long has its restarts forgiven
# The canary goes round every 30 s, and a worker that is too busy for it took a job, whose time limit is 60 s. Longer
# silence means a worker that takes no jobs; after it, the queue moves again within 90 s of the kill that stopped it.
# Web is asked for /healthz every LOOK_EVERY seconds, and gets the same patience: its first start may be slow.
SILENT = 65.0
HEARD = 10.0  # watch beats every 5 s at least
LOOK_EVERY = 2.0
WATCHED = ("web", "watch", "worker")

Beats = Callable[[], Mapping[str, datetime]]
Say = Callable[[str], None]


@dataclass(slots=True)
class Part:
    """One child program: its process, its restarts and its last sign of life."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    pid: int | None = None
    started: float = 0.0
    failures: int = 0
    start_at: float = 0.0
    beat: datetime | None = None
    beat_seen: float = 0.0
    looked: float = 0.0


class Supervisor:
    """Keeps the parts running until a stop signal. Everything here happens in the main thread of one process:
    the kernel ties the children's lives to that thread."""

    def __init__(self, parts: Sequence[Part], *, cwd: Path, beats: Beats, say: Say, grace: float = GRACE) -> None:
        self._grace = grace
        self._parts = parts
        self._cwd = cwd
        self._beats = beats
        self._say = say
        self._parent = os.getppid()
        self._looked = 0.0

    def run(self, *, each_turn: Callable[[], None]) -> None:
        """Returns when all parts and all they started have ended, at most `grace` and a moment after the signal."""
        # Blocked and read with sigtimedwait: a signal that comes during a turn waits for its end and is never lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS | {signal.SIGCHLD})
        adopt_orphans()
        while True:
            now = time.monotonic()
            for part in self._parts:
                if part.pid is None and now >= part.start_at:
                    self._start(part, now)
            each_turn()
            if now - self._looked >= LOOK_EVERY:
                self._looked = now
                self._end_silent_parts(now)
            received = signal.sigtimedwait(STOP_SIGNALS | {signal.SIGCHLD}, 0.25)
            if received is not None and received.si_signo in STOP_SIGNALS:
                break
            self._note_deaths()
        self._stop()

    def _start(self, part: Part, now: float) -> None:
        part.pid = start_process(part.argv, env=part.env, cwd=self._cwd)
        part.started = part.beat_seen = now

    def _note_deaths(self) -> None:
        for pid, code in reap_children():
            part = next((part for part in self._parts if part.pid == pid), None)
            if part is None:
                continue
            self._end_orphans()
            now = time.monotonic()
            part.failures = 1 if now - part.started > STEADY else part.failures + 1
            wait = min(2.0 ** (part.failures - 1), LONGEST_BACKOFF)
            part.pid, part.start_at = None, now + wait
            self._say(f"{part.name} ended ({exit_status.describe_exit(code)}); it starts again in {wait:.0f} s.")

    def _end_orphans(self) -> None:
        """Ends what a dead part left behind: children of this process that are none of its parts.

        The workers of a killed queue go on taking jobs, and nobody would stop them.
        """
        own = {part.pid for part in self._parts}
        for process in descendants():
            if process.pid not in own and is_child(process):
                signal_processes([*descendants(process.pid), process], signal.SIGKILL)

    def _end_silent_parts(self, now: float) -> None:
        """Ends the tree of a part whose sign of life has not changed for SILENT seconds; its restart follows.

        A queue that lost its lock to a killed worker looks busy to every process list and takes no job for ever. A
        stopped web process, or one whose threads all hang, keeps its port and answers nobody.
        """
        for part in silent_parts(self._parts, self._beats(), now):
            if part.pid is not None:
                self._say(f"{part.name} gave no sign of life for {SILENT:.0f} s; its processes are ended.")
                end_tree(part.pid)
                part.beat_seen = now

    def _stop(self) -> None:
        grace = self._grace if os.getppid() == self._parent else ORPHAN_GRACE
        deadline = time.monotonic() + grace
        running = {part.pid for part in self._parts if part.pid is not None}
        for pid in running:
            # Only the part itself: it knows in which order its own processes end.
            os.kill(pid, signal.SIGTERM)
        while running and time.monotonic() < deadline:
            running -= {pid for pid, _ in reap_children()}
            time.sleep(0.05)
        end_descendants(grace=0.0)


def silent_parts(parts: Sequence[Part], beats: Mapping[str, datetime], now: float) -> list[Part]:
    """Takes note of the beats, and gives the running parts whose sign of life has not changed for SILENT seconds.

    Watch sends the worker's canary round: the worker's silence is counted only while watch is heard, and goes on from
    there when watch is heard again.
    """
    watched = [part for part in parts if part.name in WATCHED and part.pid is not None]
    for part in watched:
        if (beat := beats.get(part.name)) != part.beat:
            part.beat, part.beat_seen = beat, now
    is_heard = any(part.name == "watch" and now - part.beat_seen <= HEARD for part in watched)
    for part in watched:
        if part.name == "worker" and not is_heard:
            part.beat_seen = min(now, part.beat_seen + now - (part.looked or now))
        part.looked = now
    return [part for part in watched if now - part.beat_seen > SILENT]
