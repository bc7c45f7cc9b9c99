"""Task ids and idempotency keys: which ids are valid, and how a key is computed."""

from __future__ import annotations

import hashlib

from journal.errors import UsageError


def step_key(task_id: str, step_index: int, arguments_json: str, *, generation: int = 0) -> str:
    """The step's key, 64 hex digits: `sha256(f"{task_id}:{step_index}:{arguments_json}")`.

    Generation n > 0, which this version never makes, hashes `f"{task_id}:{step_index}#{n}:{json}"`.
    """
    mark = f"#{generation}" if generation else ""
    return sha256_hex(f"{task_id}:{step_index}{mark}:{arguments_json}")


def sha256_hex(data: str | bytes) -> str:
    """SHA-256 of the bytes (of the UTF-8 form of a text), as hex."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def sent_marks_key(task_id: str, step_index: int, attempt: int) -> str:
    """The name in `journal_meta` for the values an attempt was sent with, if its request was made with others."""
    return f"sent:{step_index}:{attempt}:{task_id}"


# Longer ids do not fit file names, URLs and pages.
MAX_TASK_ID_CHARACTERS = 512


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
    if not task_id or len(task_id) > MAX_TASK_ID_CHARACTERS or "\x00" in task_id:
        raise UsageError(
            f"Task id {task_id[:80]!r}: it must be text of 1 to {MAX_TASK_ID_CHARACTERS} characters without NUL."
        )
    try:
        task_id.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"Task id {task_id!r}: has a lone surrogate.") from error
