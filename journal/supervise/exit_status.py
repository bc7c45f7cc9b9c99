"""How a process ended, in the words of `agent_boot.ended`. Pure: numbers and texts in, words out."""

from __future__ import annotations

import signal


def describe_exit(returncode: int, *, oom_kills: int = 0) -> str:
    """The words for a `returncode` (negative: a signal, as subprocess gives it).

    `oom_kills` is by how much the cgroup's count of out-of-memory kills rose while the process lived: it tells the
    kernel's SIGKILL from a person's.
    """
    if returncode == 0:
        return "clean"
    if returncode > 0:
        return f"exit {returncode}"
    if -returncode == signal.SIGKILL and oom_kills > 0:
        return "out of memory"
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"


def count_oom_kills(events: str) -> int:
    """The count of out-of-memory kills in the text of a cgroup's `memory.events` (or v1 `memory.oom_control`)."""
    for line in events.splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill" and value.strip().isdigit():
            return int(value)
    return 0


def find_memory_events(cgroup: str) -> str | None:
    """The file that counts out-of-memory kills, given the text of `/proc/self/cgroup`; None if there is none."""
    for line in cgroup.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        inside = path.strip("/")
        folder = f"/{inside}" if inside else ""
        if not controllers:
            return f"/sys/fs/cgroup{folder}/memory.events"
        if "memory" in controllers.split(","):
            return f"/sys/fs/cgroup/memory{folder}/memory.oom_control"
    return None
