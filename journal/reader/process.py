"""Readings in processes that can be killed: a file that never answers costs its reader a wait, and nobody else.

No budget inside SQLite ends an open, a `stat` on a stuck mount, or one long function: only the end of the process does.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from journal.errors import JournalUnreadable, StepkeeperError, UsageError
from journal.reader.sqlite_errors import printable

T = TypeVar("T")

# Seconds past a question's own budget: a busy machine is slow, and not hung.
GRACE = 3.0
MOST = 4
_START = 30.0
# A file that did not answer is not asked for so long; then one question tries it again.
_REST = 10.0
_ROOT = str(Path(__file__).resolve().parents[2])
_MAIN = "import sys; from journal.reader.process import serve; serve(int(sys.argv[1]))"


class _Child:
    """One process that answers one question at a time, and ends when its asker is gone."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            path = os.pathsep.join(filter(None, (_ROOT, os.environ.get("PYTHONPATH"))))
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "PYTHONPATH": path},
            )
        self._connection = Connection(ours.detach())
        self._wait(_START)

    def ask(self, seconds: float, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any]:
        """How the function ended, and its value or error. Raises TimeoutError; EOFError or OSError for a dead child."""
        self._connection.send((function, arguments))
        return self._wait(seconds)

    def _wait(self, seconds: float) -> tuple[str, Any]:
        if not self._connection.poll(seconds):
            raise TimeoutError
        answer: tuple[str, Any] = self._connection.recv()
        return answer

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process, whatever it waits for. A process that waits for a device dies when the device answers."""
        self._connection.close()
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)

    def forget(self) -> None:
        """In a forked child: close the copy of the connection. The process belongs to the parent."""
        self._connection.close()
        self._process.returncode = 0


class Pool:
    """Up to `most` processes that answer, each started when it is needed and kept."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._turns = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._resting: dict[str, float] = {}

    def run(self, path: str, seconds: float, function: Callable[..., T], *arguments: Any) -> T:
        """What a module's function returns, called in another process and given at most `seconds`.

        `path` names the file it reads. A file that did not answer rests: then each question is refused at once. Raises
        JournalUnreadable(kind="hung"), and kind="busy" where every process was busy all the time.
        """
        self._refuse_resting(path, seconds)
        if not self._turns.acquire(timeout=seconds):
            raise _refusal(path, "busy", "other journals keep every reader process busy.", "Try again in a moment.")
        try:
            ended, value = self._ask(path, seconds, function, arguments)
        finally:
            self._turns.release()
        if ended == "returned":
            returned: T = value
            return returned
        if ended == "unreadable":
            raise JournalUnreadable(value[0], kind=value[2], hint=value[1])
        if ended == "refused":
            raise UsageError(value[0], hint=value[1])
        raise RuntimeError(f"A reader process failed: {value}")

    def _ask(
        self, path: str, seconds: float, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> tuple[str, Any]:
        kept = child = self._take()
        try:
            child = child or _Child()
            answer = child.ask(seconds, function, arguments)
        except TimeoutError:
            self._rest(path)
            cause, hint = f"it gave no answer within {seconds:.1f} s.", "Look whether its disk or mount answers."
            raise _refusal(path, "hung", cause, hint) from None
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            if kept is not None:
                # It may have died while it was idle. A question changes nothing, so another process is asked.
                return self._ask(path, seconds, function, arguments)
            self._rest(path)
            cause = f"the process that read it ended ({type(error).__name__})."
            raise _refusal(path, "hung", cause, "Check the file and the files beside it.") from None
        else:
            with self._lock:
                self._idle.append(child)
                self._resting.pop(path, None)
            child = None
            return answer
        finally:
            if child is not None:
                child.kill()

    def _take(self) -> _Child | None:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.is_alive:
                    return child
                child.kill()
        return None

    def close(self) -> None:
        """End the processes that have nothing to answer."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.kill()

    def forget(self) -> None:
        """In a forked child: begin anew. The processes, and the turns its threads held, are the parent's."""
        for child in self._idle:
            child.forget()
        self._turns, self._lock = threading.BoundedSemaphore(self._most), threading.Lock()
        self._idle, self._resting = [], {}

    def _rest(self, path: str) -> None:
        with self._lock:
            self._resting[path] = time.monotonic() + _REST

    def _refuse_resting(self, path: str, seconds: float) -> None:
        with self._lock:
            until = self._resting.get(path)
            if until is None:
                return
            if time.monotonic() >= until:
                # This question tries the file again. The others are refused until it has its answer.
                self._resting[path] = time.monotonic() + seconds + _REST
                return
        raise _refusal(path, "hung", "it gave no answer a moment ago.", "Look whether its disk or mount answers.")


_pool: Pool | None = None


def read_apart() -> None:
    """From now on every reading of this process happens in processes that can be killed."""
    global _pool
    if _pool is None:
        _pool = Pool()
        atexit.register(_pool.close)
        os.register_at_fork(after_in_child=_pool.forget)


def is_apart() -> bool:
    """Whether this process reads in other processes."""
    return _pool is not None


def run(path: str, budget: float, function: Callable[..., T], *arguments: Any) -> T:
    """What a function says of the file at `path`: asked in another process where this one reads apart, else here."""
    if _pool is None:
        return function(*arguments)
    return _pool.run(path, budget + GRACE, function, *arguments)


def serve(descriptor: int) -> None:
    """Answer the questions of the process that started this one, until it is gone."""
    connection = Connection(descriptor)
    questions: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    came = threading.Semaphore(0)

    def listen() -> None:
        # A thread of its own hears that the asker is gone, even while a question hangs.
        while True:
            try:
                questions.append(connection.recv())
            except (EOFError, OSError):
                os._exit(0)
            came.release()

    connection.send(("returned", None))
    threading.Thread(target=listen, daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt):  # a terminal's Ctrl-C reaches every process; the asker decides
        while True:
            came.acquire()
            function, arguments = questions.pop()
            connection.send(_answer(function, arguments))


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return ("returned", function(*arguments))
    except JournalUnreadable as error:
        return ("unreadable", (error.message, error.hint, error.kind))
    except StepkeeperError as error:
        return ("refused", (error.message, error.hint))
    except Exception as error:
        return ("failed", f"{type(error).__name__}: {error}")


def _refusal(path: str, kind: str, cause: str, hint: str) -> JournalUnreadable:
    return JournalUnreadable(f"Journal {printable(path)}: {cause}", kind=kind, hint=hint)
