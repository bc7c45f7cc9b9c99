"""Idempotency keys: computed once, stored, never derived again."""

from __future__ import annotations

import hashlib


def key(task_id: str, step_index: int, arguments_json: str, *, generation: int = 0) -> str:
    """The step's key, 64 hex digits: `sha256(f"{task_id}:{step_index}:{arguments_json}")`.

    Generation n > 0, which only an operator's `replay_as_new` makes, hashes `f"{task_id}:{step_index}#{n}:{json}"`.
    """
    mark = f"#{generation}" if generation else ""
    return sha256_hex(f"{task_id}:{step_index}{mark}:{arguments_json}")


def sha256_hex(data: str | bytes) -> str:
    """SHA-256 of the bytes (of the UTF-8 form of a text), as hex."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def sent_key(task_id: str, step_index: int, attempt: int) -> str:
    """The name in `journal_meta` of what an attempt was sent with, where that is not what its request was made with."""
    return f"sent:{step_index}:{attempt}:{task_id}"
