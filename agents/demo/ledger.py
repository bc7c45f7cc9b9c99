"""A demo server's own ledger: every request it received and every effect it applied.

Append-only and apart from what the server answered: tests and the demo's sentences believe this, never the client.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from journal import clock

_TABLES = """
CREATE TABLE IF NOT EXISTS received (n INTEGER PRIMARY KEY, at TEXT NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL,
    key TEXT, raw BLOB NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS effect (id INTEGER PRIMARY KEY, request INTEGER NOT NULL, key TEXT, body BLOB NOT NULL,
    received_at TEXT NOT NULL, applied_at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS operation (key TEXT PRIMARY KEY, request INTEGER NOT NULL, fingerprint TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('in_progress', 'done')), status INTEGER, response TEXT,
    created_at TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came in. `raw` is every byte of it, the server's secret replaced by `<secret>`."""

    n: int
    at: datetime
    method: str
    path: str
    key: str | None
    raw: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that happened; `request` is the number of the request that did it."""

    id: int
    request: int
    key: str | None
    body: bytes
    received_at: datetime
    applied_at: datetime


@dataclass(frozen=True, slots=True)
class Operation:
    """What the server remembers under one key."""

    key: str
    request: int
    fingerprint: str
    state: str
    status: int | None
    response: str | None
    created_at: datetime


class Ledger:
    """A SQLite file, or memory where no path is given; one connection, one lock."""

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
        if path is not None:
            path.chmod(0o600)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(_TABLES)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One change, whole or not at all; other threads wait."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def receive(self, method: str, path: str, *, key: str | None, raw: bytes, body: bytes) -> Received:
        """Log one request before anything else happens to it."""
        at = clock.wall()
        with self._lock:
            n = self._connection.execute(
                "INSERT INTO received (at, method, path, key, raw, body) VALUES (?, ?, ?, ?, ?, ?)",
                (clock.text(at), method, path, key, raw, body),
            ).lastrowid
        return Received(n or 0, at, method, path, key, raw, body)

    def apply(self, received: Received) -> Effect:
        """Record that the request took effect now."""
        at = clock.wall()
        with self._lock:
            number = self._connection.execute(
                "INSERT INTO effect (request, key, body, received_at, applied_at) VALUES (?, ?, ?, ?, ?)",
                (received.n, received.key, received.body, clock.text(received.at), clock.text(at)),
            ).lastrowid
        return Effect(number or 0, received.n, received.key, received.body, received.at, at)

    def remember(self, operation: Operation) -> None:
        """Keep what is known under a key; a later state replaces an earlier one."""
        with self._lock:
            self._connection.execute(
                "INSERT OR REPLACE INTO operation VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    operation.key,
                    operation.request,
                    operation.fingerprint,
                    operation.state,
                    operation.status,
                    operation.response,
                    clock.text(operation.created_at),
                ),
            )

    def forget(self, key: str) -> None:
        """Drop a key whose retention is over."""
        with self._lock:
            self._connection.execute("DELETE FROM operation WHERE key = ?", (key,))

    def operation(self, key: str) -> Operation | None:
        """What is remembered under this key."""
        with self._lock:
            row = self._connection.execute("SELECT * FROM operation WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        key, request, fingerprint, state, status, response, created_at = row
        return Operation(key, request, fingerprint, state, status, response, clock.parse(created_at))

    def effects(self, key: str | None = None) -> list[Effect]:
        """Effects in the order they were applied, of one key or of all."""
        with self._lock:
            return _effects(self._connection, key)

    def requests(self, method: str | None = None) -> list[Received]:
        """Requests in the order they came in, of one method or of all."""
        with self._lock:
            return _requests(self._connection, method, None)


def read_effects(path: Path, key: str | None = None) -> list[Effect]:
    """The effects in another process's ledger file, read-only; none while the file is not there."""
    if not path.exists():
        return []
    with closing(_read_only(path)) as connection:
        return _effects(connection, key)


def read_requests(path: Path, *, key: str | None = None, method: str = "POST") -> list[Received]:
    """The requests of one key or of all in another process's ledger file, read-only; none without a file."""
    if not path.exists():
        return []
    with closing(_read_only(path)) as connection:
        return _requests(connection, method, key)


def count_requests(path: Path) -> dict[str, int]:
    """How often each key was sent, by key, in another process's ledger file."""
    if not path.exists():
        return {}
    with closing(_read_only(path)) as connection:
        question = "SELECT key, count(*) FROM received WHERE method = 'POST' AND key IS NOT NULL GROUP BY key"
        return dict(connection.execute(question).fetchall())


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1.0)


def _effects(connection: sqlite3.Connection, key: str | None) -> list[Effect]:
    rows = connection.execute(
        "SELECT id, request, key, body, received_at, applied_at FROM effect WHERE ?1 IS NULL OR key = ?1 ORDER BY id",
        (key,),
    ).fetchall()
    return [
        Effect(number, request, stored_key, body, clock.parse(received_at), clock.parse(applied_at))
        for number, request, stored_key, body, received_at, applied_at in rows
    ]


def _requests(connection: sqlite3.Connection, method: str | None, key: str | None) -> list[Received]:
    rows = connection.execute(
        "SELECT n, at, method, path, key, raw, body FROM received"
        " WHERE (?1 IS NULL OR method = ?1) AND (?2 IS NULL OR key = ?2) ORDER BY n",
        (method, key),
    ).fetchall()
    return [Received(n, clock.parse(at), *rest) for n, at, *rest in rows]
