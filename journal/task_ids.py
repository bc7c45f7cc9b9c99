"""What can be a task's id."""

from __future__ import annotations

from journal.errors import UsageError

# Longer ids help nobody and do not fit file names, URLs and pages.
MAX_CHARACTERS = 512


def check_text(name: object, what: str) -> None:
    """Raise UsageError for a name that is no text."""
    if not isinstance(name, str):
        raise UsageError(
            f"{what} {name!r:.80}: of type {type(name).__name__}, not str.",
            hint="Pass text: str(…) makes it of a number.",
        )


def check_task_id(task_id: str) -> None:
    """Raise UsageError for what cannot name a task: no text, nothing, over 512 characters, NUL, lone surrogates."""
    check_text(task_id, "Task id")
    if not task_id or len(task_id) > MAX_CHARACTERS or "\x00" in task_id:
        raise UsageError(f"Task id {task_id[:80]!r}: text of 1 to {MAX_CHARACTERS} characters without NUL is wanted.")
    try:
        task_id.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"Task id {task_id!r}: has a lone surrogate.") from error
