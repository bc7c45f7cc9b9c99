"""The lock that allows one running dashboard per data folder."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import psutil

# A dashboard whose parent was killed stops within this time; until then its successor waits instead of refusing.
STOPPING = 8.0


class AlreadyRunning(Exception):
    """Another dashboard holds the data folder; `pid` is the one to stop, None where it cannot be told."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        who = f"pid {pid}" if pid is not None else "another process"
        super().__init__(
            f"'{folder}' is in use: its dashboard runs as {who}. "
            "Stop that one, or set STEPKEEPER_DATA to another folder."
        )
        self.pid = pid


def hold_folder(folder: Path) -> int:
    """Takes the folder until the last process holding the returned descriptor ends; no stale file can block it.

    Raises AlreadyRunning at once when the holder lives, or after it had its time to stop when it was killed.
    """
    descriptor = os.open(folder / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + STOPPING
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            pid = _written_pid(descriptor)
            if (pid is not None and _runs(pid)) or time.monotonic() > deadline:
                os.close(descriptor)
                raise AlreadyRunning(folder, pid) from None
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
