"""One run of a supervised command: a process in a group of its own that does not outlive its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence

from journal.errors import UsageError
from journal.supervise import exit_status

_PR_SET_PDEATHSIG = 1
# Loaded before any fork: the child must not allocate or import between fork and exec.
_LIBC = ctypes.CDLL(None)


class Child:
    """A started command. `mask` is the signal mask it gets: the parent's own may have signals blocked.

    Raises UsageError where the command cannot be started. Start it from the main thread: the parent's death is told
    to a child when the *thread* that started it ends.
    """

    def __init__(self, command: Sequence[str], *, mask: set[int | signal.Signals]) -> None:
        parent = os.getpid()

        def tie() -> None:
            # SIGKILL, not SIGTERM: a child busy in a call would outlive us, and the journal is made for kills.
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

        self._oom_kills = _oom_kills()
        try:
            # preexec_fn is safe here: the supervisor has one thread.
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=tie)
        except OSError as error:
            raise UsageError(
                f"Command {command[0]}: cannot be started: {error.strerror}.", hint="Name a program that exists."
            ) from error

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self) -> bool:
        """Whether the process is dead; it stays a zombie, and its pid its own, until `collect`."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def signal(self, number: int) -> None:
        """Send a signal to the process, not to its group, so that a tool's subprocess may finish its work."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL the whole group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def collect(self) -> int:
        """Reap the dead process; returns its return code, negative for a signal."""
        # Processes of the dead daemon's tools must not act beside the next daemon. The zombie keeps the group's id.
        self.kill()
        return self._process.wait()

    def oom_kills(self) -> int:
        """By how much the cgroup's out-of-memory kills rose since the start."""
        return _oom_kills() - self._oom_kills


def _oom_kills() -> int:
    with contextlib.suppress(OSError), open("/proc/self/cgroup", encoding="utf-8") as file:
        path = exit_status.find_memory_events(file.read())
        if path is not None:
            with open(path, encoding="ascii") as events:
                return exit_status.count_oom_kills(events.read())
    return 0
