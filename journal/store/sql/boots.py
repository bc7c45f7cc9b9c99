"""Statements on boots: one row for each process that took the lock and wrote."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from journal import clock
from journal.models import JournalDoubt

if TYPE_CHECKING:
    from journal.store.transaction import Transaction

# True while this thread (or asyncio task) settles intents of older boots, or asks about one.
recovering: ContextVar[bool] = ContextVar("recovering", default=False)


@contextmanager
def in_recovery() -> Iterator[None]:
    """Count the model calls that are made within."""
    token = recovering.set(True)
    try:
        yield
    finally:
        recovering.reset(token)


def read_meta(tx: Transaction, key: str) -> str:
    """A value of the journal's own description; empty where there is none."""
    row = tx.one("SELECT value FROM journal_meta WHERE key = ?", (key,))
    return "" if row is None else str(row["value"])


def write_meta(tx: Transaction, key: str, value: str) -> None:
    """Set a value of the journal's own description."""
    tx.execute("INSERT OR REPLACE INTO journal_meta (key, value) VALUES (?, ?)", (key, value))


def read_agent_name(tx: Transaction) -> str:
    """The agent whose journal this is."""
    return read_meta(tx, "agent")


def next_boot_number(tx: Transaction) -> int:
    """The number after the highest one; numbers are never reused."""
    row = tx.one("SELECT coalesce(max(boot), 0) + 1 AS boot FROM agent_boot")
    assert row is not None
    return int(row["boot"])


def find_later_boot(tx: Transaction) -> tuple[int, int] | None:
    """(boot, pid) of a boot after this transaction's, if there is one: then this writer is fenced off."""
    row = tx.one("SELECT boot, pid FROM agent_boot WHERE boot > ? LIMIT 1", (tx.boot,))
    return None if row is None else (int(row["boot"]), int(row["pid"]))


def open_boot(tx: Transaction, *, role: str, deaths: Mapping[int, str], file: str, doubt: JournalDoubt | None) -> None:
    """Open this transaction's boot and close every one left open: by `deaths` (pid → how) where that is known.

    `file` identifies the file for the next boot; a `doubt` about it is kept until a person lifts it.
    """
    write_meta(tx, "file", file)
    if doubt is not None:
        set_doubt(tx, doubt)
    for row in tx.all("SELECT boot, pid, os_boot_id FROM agent_boot WHERE ended IS NULL"):
        unknown = "vanished" if row["os_boot_id"] == clock.os_boot_id() else "machine restarted"
        end_boot(tx, int(row["boot"]), deaths.get(int(row["pid"]), unknown))
    tx.execute(
        "INSERT INTO agent_boot (boot, role, pid, host, os_boot_id, started_at, clock_offset, revision)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            tx.boot,
            role,
            os.getpid(),
            socket.gethostname(),
            clock.os_boot_id(),
            tx.now,
            clock.offset(),
            tx.revision(),
        ),
    )


def end_boot(tx: Transaction, boot: int, ended: str) -> None:
    """Record how a boot ended; the first record stands."""
    tx.execute(
        "UPDATE agent_boot SET ended_at = ?, ended = ?, revision = ? WHERE boot = ? AND ended IS NULL",
        (tx.now, ended, tx.revision(), boot),
    )


def find_open_agent_boot(tx: Transaction, pid: int) -> int | None:
    """The boot of the agent process `pid` that has no end yet."""
    row = tx.one(
        "SELECT boot FROM agent_boot WHERE role = 'agent' AND pid = ? AND ended IS NULL ORDER BY boot DESC", (pid,)
    )
    return None if row is None else int(row["boot"])


def count_recovery_model_call(tx: Transaction) -> None:
    """Count a model call that recovery made (in a `status=`, for example). The promise is that there is none."""
    tx.execute(
        "UPDATE agent_boot SET recovery_model_calls = recovery_model_calls + 1, revision = ? WHERE boot = ?",
        (tx.revision(), tx.boot),
    )


def set_doubt(tx: Transaction, doubt: JournalDoubt) -> None:
    """Record in this boot that the file is restored, copied or another one: from now on no machine sends of it."""
    write_meta(tx, "doubt", doubt)
    write_meta(tx, "doubt_boot", str(tx.boot))


def find_doubt(tx: Transaction) -> tuple[str, int] | None:
    """(kind, boot that noticed it) of a doubt about the file that nobody has lifted yet."""
    kind = read_meta(tx, "doubt")
    return (kind, int(read_meta(tx, "doubt_boot"))) if kind else None


def lift_doubt(tx: Transaction) -> None:
    """Take the doubt back: a person has accepted the file as it is."""
    tx.execute("DELETE FROM journal_meta WHERE key IN ('doubt', 'doubt_boot')")
