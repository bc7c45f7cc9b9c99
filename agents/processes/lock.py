"""The lock files of a data folder: one running dashboard, and one watch loop, at a time."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Literal

import psutil

from journal.errors import StepkeeperError

# A dashboard whose parent was killed stops within this time; until then its successor waits instead of refusing.
STOPPING = 8.0


class AlreadyRunning(StepkeeperError):
    """Another process holds the lock; `pid` is the process to stop, None where nobody can tell."""

    def __init__(self, folder: Path, program: str, pid: int | None) -> None:
        who = f"pid {pid}" if pid is not None else "another process"
        hint = "Stop that process, or set STEPKEEPER_DATA to another folder."
        super().__init__(f"'{folder}' is in use: its {program} runs as {who}.", hint=hint)
        self.pid = pid


def hold_folder(folder: Path, program: Literal["dashboard", "watch loop"]) -> int:
    """Take the folder for this program until the last process that holds the returned descriptor ends.

    A file that a killed process left behind blocks nobody. Raises AlreadyRunning at once when the holder lives, and
    after STOPPING seconds when the holder was killed and its children are still stopping.
    """
    name = {"dashboard": "up.lock", "watch loop": "watch.lock"}[program]
    descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + STOPPING
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            pid = _written_pid(descriptor)
            if (pid is not None and _runs(pid)) or time.monotonic() > deadline:
                os.close(descriptor)
                raise AlreadyRunning(folder, program, pid) from None
            time.sleep(0.1)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _written_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else None


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
