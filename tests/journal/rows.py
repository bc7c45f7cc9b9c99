"""Journals written row by row, for tests that need cells no runtime would write."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from journal import schema
from journal.ids import sha256_hex, step_key

WHEN = "2026-11-01T10:00:00.000000Z"
BOOT = 1 << 32


def a_journal(path: Path, *, agent: str = "triage") -> Path:
    """An empty journal of the current schema, cleanly closed."""
    with closing(writer(path)) as connection:
        schema.migrate_schema(connection, agent=agent)
    return path


def writer(path: Path, *, mode: str = "wal") -> sqlite3.Connection:
    """A writing connection as an agent has one."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")
    connection.execute(f"PRAGMA journal_mode = {mode}")
    return connection


def insert(connection: sqlite3.Connection, table: str, **cells: object) -> None:
    """One row, whatever its cells hold."""
    names = ", ".join(cells)
    signs = ", ".join("?" for _ in cells)
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({signs})", tuple(cells.values()))


def a_task(connection: sqlite3.Connection, task_id: str = "t", *, revision: int = BOOT + 1, **cells: object) -> None:
    """One running task."""
    row: dict[str, object] = {
        "task_id": task_id,
        "handler": "triage",
        "input_json": "{}",
        "agent": "triage",
        "status": "running",
        "boot": 1,
        "created_at": WHEN,
        "updated_at": WHEN,
        "revision": revision,
    }
    insert(connection, "agent_task", **{**row, **cells})


def a_step(
    connection: sqlite3.Connection,
    task_id: str = "t",
    index: int = 0,
    *,
    arguments: dict[str, object] | None = None,
    revision: int = BOOT + 2,
    **cells: object,
) -> None:
    """One committed mutating step of a Python tool, key and hashes right."""
    text = json.dumps(arguments or {"number": index}, sort_keys=True)
    row: dict[str, object] = {
        "task_id": task_id,
        "step_index": index,
        "tool_name": "open_issue",
        "idempotency_key": step_key(task_id, index, text),
        "arguments_json": text,
        "status": "committed",
        "output_json": '{"ok": true}',
        "created_at": WHEN,
        "updated_at": WHEN,
        "args_hash": sha256_hex(text),
        "effect": "mutating",
        "boot": 1,
        "revision": revision,
        "transport": "python",
        "payload_sha256": sha256_hex(text),
        "arguments_bytes": len(text),
        "output_bytes": 12,
        "committed_boot": 1,
        "duration": 0.25,
    }
    insert(connection, "agent_step_journal", **{**row, **cells})


def an_attempt(
    connection: sqlite3.Connection, task_id: str = "t", index: int = 0, attempt: int = 1, **cells: object
) -> None:
    """One dispatch that was applied."""
    row: dict[str, object] = {
        "task_id": task_id,
        "step_index": index,
        "attempt": attempt,
        "key_generation": 0,
        "boot": 1,
        "started_at": WHEN,
        "started_boottime": 100.0,
        "os_boot_id": "os",
        "ended_at": WHEN,
        "verdict": "applied",
        "kind": "accepted",
        "revision": BOOT + 3,
    }
    insert(connection, "agent_step_attempt", **{**row, **cells})


def a_boot(connection: sqlite3.Connection, boot: int = 1, **cells: object) -> None:
    """One start of an agent."""
    row: dict[str, object] = {
        "boot": boot,
        "role": "agent",
        "pid": 4242,
        "host": "here",
        "os_boot_id": "os",
        "started_at": WHEN,
        "revision": boot * BOOT,
    }
    insert(connection, "agent_boot", **{**row, **cells})


def a_held_journal(path: Path) -> Path:
    """A journal of one finished task and one with a held step."""
    a_journal(path)
    with closing(writer(path)) as connection:
        a_boot(connection)
        a_task(connection, "done", status="completed")
        a_step(connection, "done")
        an_attempt(connection, "done")
        a_task(connection, "held", status="waiting", wait_kind="held",
               wait_step_task="held", wait_step_index=1, wait_hold="no_key_no_status")  # fmt: skip
        a_step(connection, "held", 0, effect="read_only")
        a_step(connection, "held", 1, status="pending", output_json=None, hold_reason="no_key_no_status")
        an_attempt(connection, "held", 1, verdict=None, kind=None, ended_at=None)
    return path


def minimal_table(connection: sqlite3.Connection) -> None:
    """The nine columns of the design, made by hand."""
    connection.execute(
        "CREATE TABLE agent_step_journal (task_id TEXT, step_index INTEGER, tool_name TEXT, idempotency_key TEXT, "
        "arguments_json TEXT, status TEXT, output_json TEXT, created_at TEXT, updated_at TEXT, "
        "PRIMARY KEY (task_id, step_index))"
    )


def hash_only_table(connection: sqlite3.Connection) -> None:
    """A hash of the arguments instead of the arguments."""
    connection.execute(
        "CREATE TABLE agent_step_journal (task_id TEXT, step_index INTEGER, tool_name TEXT, args_hash TEXT, "
        "status TEXT, output TEXT, created_at TEXT, PRIMARY KEY (task_id, step_index))"
    )
