"""Starting processes that cannot outlive their parent, and ending whole trees of them (Linux)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def adopt_orphans() -> None:
    """Makes this process the new parent of every descendant whose own parent dies, so that it can end them all."""
    if _libc is not None:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int, with_signal: signal.Signals) -> None:
    """Has the kernel send this process `with_signal` when its parent dies.

    The signal follows the *thread* that forked: only a parent's main thread may start children that call this.
    """
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(with_signal), 0, 0, 0)
    if os.getppid() != parent:  # it died between the fork and the line above
        os.kill(os.getpid(), with_signal)


def start_process(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> int:
    """Starts a program in a session of its own, with no input, ended by SIGTERM when this process dies. Its pid."""
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.chdir(cwd)
        die_with_parent(parent, signal.SIGTERM)  # last: what runs after it is the program itself
        os.execve(argv[0], list(argv), dict(env))
    except BaseException as error:
        os.write(2, f"cannot start {argv[0]}: {error}\n".encode())
    finally:
        os._exit(127)


def reap_children() -> list[tuple[int, int]]:
    """Pids and exit codes (negative: the signal) of children and adopted orphans that have ended. Does not wait."""
    ended = []
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended.append((pid, os.waitstatus_to_exitcode(status)))
    return ended


def descendants(pid: int | None = None) -> list[psutil.Process]:
    """Every process below `pid` (default: this one), without dead ones that are not reaped yet."""
    with contextlib.suppress(psutil.NoSuchProcess):
        below = psutil.Process(pid).children(recursive=True)
        return [process for process in below if _is_alive(process)]
    return []


def signal_processes(processes: Sequence[psutil.Process], with_signal: signal.Signals) -> None:
    """Signals each process that is still the one it was; a reused pid is left alone."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.send_signal(with_signal)


def end_tree(pid: int) -> None:
    """Kills a process and everything below it; the process first, so that it starts nothing anew."""
    with contextlib.suppress(psutil.NoSuchProcess):
        top = psutil.Process(pid)
        signal_processes([top, *top.children(recursive=True)], signal.SIGKILL)


def is_child(process: psutil.Process) -> bool:
    """Whether this process is its direct parent, by birth or by adoption."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.ppid() == os.getpid())
    return False


def end_descendants(*, grace: float) -> None:
    """Ends every descendant: SIGTERM, then SIGKILL after `grace` seconds, until none is left."""
    deadline = time.monotonic() + grace
    if grace > 0:
        signal_processes(descendants(), signal.SIGTERM)
    while descendants() and time.monotonic() < deadline:
        reap_children()
        time.sleep(0.05)
    # A process may fork before it is killed: its orphan becomes our child, and the next turn of the loop ends it.
    give_up = time.monotonic() + 2
    while (left := descendants()) and time.monotonic() < give_up:
        signal_processes(left, signal.SIGKILL)
        reap_children()
        time.sleep(0.02)
    reap_children()


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
