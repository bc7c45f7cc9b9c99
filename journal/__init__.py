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
        NoEffect,
        OutcomeUnknown,
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
    from journal.tools import http_tool, tool

_HOMES = {
    "Journal": "runtime.journal",
    "post_submit": "runtime.journal",
    "Reply": "reply",
    "Request": "request",
    "env": "request",
    "http_tool": "tools",
    "tool": "tools",
}

__all__ = [
    "Diverged",
    "ForkedTask",
    "InvalidArguments",
    "Journal",
    "JournalBusy",
    "JournalFailed",
    "NoEffect",
    "OutcomeUnknown",
    "Reply",
    "Request",
    "StepAbandoned",
    "StepFailed",
    "StepHeld",
    "StepWaiting",
    "StepkeeperError",
    "TaskCancelled",
    "TaskClosed",
    "TaskConflict",
    "UnorderedStep",
    "UsageError",
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
