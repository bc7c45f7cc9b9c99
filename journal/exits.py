"""Exit codes of an agent's process that its supervisor understands.

75: a task waits for a person or a due time, and nobody caught it. 4: another process holds the journal.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from types import TracebackType

from journal.errors import JournalBusy, StepHeld, StepWaiting

WAITING = 75
BUSY = 4

_state: dict[str, int | bool] = {"installed": False, "code": 0}


def install() -> None:
    """Make an uncaught StepHeld or StepWaiting end the process with 75, an uncaught JournalBusy with 4. Idempotent."""
    if _state["installed"]:
        return
    _state["installed"] = True
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        previous(kind, error, traceback)
        if isinstance(error, StepHeld | StepWaiting):
            _state["code"] = WAITING
        elif isinstance(error, JournalBusy):
            _state["code"] = BUSY

    sys.excepthook = hook
    # Registered late in the process's life, so it runs early among the exit functions of what was imported before;
    # those imported before us (logging, coverage) are run here first.
    atexit.register(_leave)


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
