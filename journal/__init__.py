"""Stepkeeper's runtime: agents that resume exactly where they were, and never do a thing twice.

Names are loaded at first use, so that `import journal` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from journal.errors import (
        Diverged,
        ForkedTask,
        InvalidArguments,
        JournalBusy,
        JournalFailed,
        JournalUnreadable,
        NoEffect,
        OutcomeUnknown,
        ProfileError,
        StepAbandoned,
        StepFailed,
        StepHeld,
        StepkeeperError,
        StepWaiting,
        TaskCancelled,
        TaskClosed,
        TaskConflict,
        UnorderedStep,
        UsageError,
    )
    from journal.reply import Reply
    from journal.request import Request, env
    from journal.runtime.journal import Journal, post_submit
    from journal.runtime.task import Task
    from journal.tools import Call, http_tool, tool

_HOMES = {
    "Journal": "runtime.journal",
    "post_submit": "runtime.journal",
    "Reply": "reply",
    "Request": "request",
    "env": "request",
    "http_tool": "tools",
    "tool": "tools",
    "Call": "tools",
    "Task": "runtime.task",
}

__version__ = "0.1.0"

__all__ = [
    "Call",
    "Diverged",
    "ForkedTask",
    "InvalidArguments",
    "Journal",
    "JournalBusy",
    "JournalFailed",
    "JournalUnreadable",
    "NoEffect",
    "OutcomeUnknown",
    "ProfileError",
    "Reply",
    "Request",
    "StepAbandoned",
    "StepFailed",
    "StepHeld",
    "StepWaiting",
    "StepkeeperError",
    "Task",
    "TaskCancelled",
    "TaskClosed",
    "TaskConflict",
    "UnorderedStep",
    "UsageError",
    "__version__",
    "env",
    "http_tool",
    "post_submit",
    "tool",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'journal' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"journal.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
