"""Exit codes of an agent's process that its supervisor understands.

75: a task waits for a person or a due time, and nobody caught it. 4: another process holds the journal.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from types import TracebackType

from journal.errors import JournalBusy, JournalFailed, StepHeld, StepWaiting, leaves

WAITING = 75
BUSY = 4

_state: dict[str, int | bool] = {"installed": False, "code": 0}


def install_exit_hooks() -> None:
    """Make an uncaught StepHeld or StepWaiting end the process with 75, an uncaught JournalBusy with 4. Idempotent."""
    if _state["installed"]:
        return
    _state["installed"] = True
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        previous(kind, error, traceback)
        _state["code"] = _code(leaves(error))

    sys.excepthook = hook
    # Registered late, so this function runs before the exit functions of modules that were imported earlier;
    # those imported before us (logging, coverage) are run here first.
    atexit.register(_leave)


def _code(causes: list[BaseException]) -> int:
    # As the task was ended: in a group one that waits is enough, unless the journal itself is in trouble.
    if any(isinstance(one, JournalFailed) for one in causes):
        return 0
    if any(isinstance(one, StepHeld | StepWaiting) for one in causes):
        return WAITING
    return BUSY if any(isinstance(one, JournalBusy) for one in causes) else 0


def _leave() -> None:
    code = int(_state["code"])
    if not code:
        return
    _state["code"] = 0
    atexit.unregister(_leave)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed, or its reader is gone: the code matters more
            stream.flush()
    os._exit(code)
