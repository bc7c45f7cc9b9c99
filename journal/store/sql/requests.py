"""Statements on frozen requests. One statement per function; each takes the open transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from journal import ids
from journal.models import FrozenRequest

if TYPE_CHECKING:
    from journal.store.transaction import Transaction

_REFERENCE = "env:"


def insert_request(
    tx: Transaction, task_id: str, step_index: int, request: FrozenRequest, *, asked_with: Iterable[str]
) -> None:
    """Write the frozen request of a new step, and which environment variables it and its status query name."""
    for name in {*(ref[3] for ref in request.refs), *asked_with}:
        # A later boot must know whose values to hide, though it may never send this request.
        tx.execute("INSERT OR IGNORE INTO journal_meta (key, value) VALUES (?, '')", (f"{_REFERENCE}{name}",))
    tx.execute(
        "INSERT INTO agent_request (task_id, step_index, key_generation, method, url, headers_json, refs_json,"
        " body, sha256, created_at) VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?, ?)",
        (
            task_id,
            step_index,
            request.method,
            request.url,
            json.dumps(request.headers),
            json.dumps(request.refs),
            request.body,
            request.sha256,
            tx.now,
        ),
    )


def find_request(tx: Transaction, task_id: str, step_index: int, generation: int) -> FrozenRequest | None:
    """The frozen request of this key generation, or None for a Python tool."""
    row = tx.one(
        "SELECT method, url, headers_json, refs_json, body, sha256 FROM agent_request"
        " WHERE task_id = ? AND step_index = ? AND key_generation = ?",
        (task_id, step_index, generation),
    )
    if row is None:
        return None
    return FrozenRequest(
        method=row["method"],
        url=row["url"],
        headers=tuple((name, text) for name, text in json.loads(row["headers_json"])),
        body=bytes(row["body"]),
        refs=tuple(
            (part, start, end, name, quoting, "".join(mark))
            for part, start, end, name, quoting, *mark in json.loads(row["refs_json"])
        ),
        sha256=row["sha256"],
    )


def note_sent_marks(tx: Transaction, task_id: str, step_index: int, attempt: int, marks: Mapping[str, str]) -> None:
    """Store the marks of the values an attempt is sent with, if the request was made with others."""
    # Beside the request, never in it, because the first values are part of its hash.
    if marks:
        tx.execute(
            "INSERT INTO journal_meta (key, value) VALUES (?, ?)",
            (ids.sent_marks_key(task_id, step_index, attempt), json.dumps(marks)),
        )


def find_sent_marks(tx: Transaction, task_id: str, step_index: int, attempt: int) -> dict[str, str]:
    """The marks that `note_sent` kept for the attempt."""
    row = tx.one("SELECT value FROM journal_meta WHERE key = ?", (ids.sent_marks_key(task_id, step_index, attempt),))
    return {} if row is None else json.loads(row["value"])


def list_references(tx: Transaction) -> list[str]:
    """The environment variables that any request of this journal named, or the status query about it."""
    found = tx.all("SELECT key FROM journal_meta WHERE key >= 'env:' AND key < 'env;'")
    return [str(row["key"]).removeprefix(_REFERENCE) for row in found]
