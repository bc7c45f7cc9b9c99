"""The running daemon of a demo journal: its process id, and how the director kills it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from journal import writer_lock

_GONE_SECONDS = 5.0


def pid_of(journal: Path) -> int | None:
    """The process that writes this journal as an agent, if one does."""
    writer = writer_lock.find_holder(journal)
    return writer.pid if writer is not None and writer.role == "agent" and writer.alive else None


def kill(journal: Path) -> int | None:
    """SIGKILL the daemon, not its supervisor, and see it dead. Returns its pid; None where none runs."""
    pid = pid_of(journal)
    if pid is None:
        return None
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return None
    deadline = time.monotonic() + _GONE_SECONDS
    while not _is_dead(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return pid


def _is_dead(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    # The state follows the name, which stands in brackets and may hold anything.
    return stat.rpartition(")")[2].split()[0] in ("Z", "X")
