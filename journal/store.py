"""The journal's only writer: one connection, one transaction at a time.

Every write is a function of a `Transaction`; the caller says whether it must be on the platter when `write` returns.
That is all a leader needs to put several callers' functions into one commit later.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from journal import boots, clock, reserve, schema
from journal.errors import ForkedTask, JournalFailed, JournalUnreadable
from journal.ownership import WAIT_SECONDS, Lock

T = TypeVar("T")

BOOT_SHIFT = 32
# How long an outcome that cannot be written is tried again before the process gives up: 0.1 s doubling.
_OUTCOME_TRIES = 7
_TABLES_WITH_REVISIONS = (
    "agent_step_journal",
    "agent_task",
    "agent_step_attempt",
    "agent_task_run",
    "agent_evidence",
    "agent_model_call",
    "agent_decision",
    "agent_boot",
)


class Transaction:
    """One open write transaction: SQL, the boot it belongs to, and fresh revisions."""

    __slots__ = ("_connection", "_next", "boot", "now", "revised")

    def __init__(self, connection: sqlite3.Connection, *, boot: int, next_revision: Callable[[], int]) -> None:
        self._connection = connection
        self._next = next_revision
        self.boot = boot
        self.now = clock.now_text()
        self.revised = 0

    def revision(self) -> int:
        """A revision no row of this journal ever had."""
        self.revised = self._next()
        return self.revised

    def execute(self, sql: str, parameters: tuple[Any, ...] | dict[str, Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, parameters)

    def one(self, sql: str, parameters: tuple[Any, ...] = ()) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._connection.execute(sql, parameters).fetchone()
        return row

    def all(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[sqlite3.Row]:
        return self._connection.execute(sql, parameters).fetchall()


class Store:
    """The writer of one journal. Open it with the ownership lock; whoever opens is the only writer until `close`."""

    def __init__(
        self,
        path: Path,
        *,
        agent: str,
        role: str,
        wait: float = WAIT_SECONDS,
        deaths: Mapping[int, str] | None = None,
    ) -> None:
        self.path = path
        self.role = role
        self._deaths = deaths or {}
        self._pid = os.getpid()
        self._mutex = threading.RLock()
        self._failed: JournalFailed | None = None
        self._synchronous = ""
        self._count = 0
        self.boot = 0
        self.revision = 0
        self._lock = Lock(path, role=role)
        self._lock.acquire(wait=wait)
        try:
            self._connection = self._connect()
            schema.migrate(self._connection, agent=agent)
            os.chmod(path, 0o600)
            if role == "agent":
                self._open_boot()
                reserve.keep(self.path)
        except sqlite3.DatabaseError as error:
            self._lock.release()
            raise JournalUnreadable(
                f"Journal {path.name}: {error}.", kind="damaged", hint="Run `python -m journal check` on it."
            ) from error
        except BaseException:
            self._lock.release()
            raise

    def write(self, change: Callable[[Transaction], T], *, sync: bool) -> T:
        """Run `change` in one transaction; with `sync` it survives a power cut once this returns.

        Without `sync` it survives `kill -9` at once and a power cut after the next synced write. An error from
        `change` rolls the transaction back and is raised as it is.
        """
        with self._mutex:
            self._check()
            self._boot_row()
            return self._transact(change, sync=sync)

    def write_outcome(self, change: Callable[[Transaction], T], *, sync: bool) -> T:
        """Like `write`, for what already happened outside: tried again until it is on disk.

        When it cannot be written after several tries, with the reserve file freed, JournalFailed is raised and this
        store takes no further write: the process must not start another step.
        """
        for number in range(_OUTCOME_TRIES):
            try:
                return self.write(change, sync=sync)
            except sqlite3.Error as error:
                last = error
                if number == 0:
                    reserve.free(self.path)
                time.sleep(0.1 * 2**number)
        failure = JournalFailed(
            f"Journal {self.path.name}: an outcome could not be written: {last}.",
            hint="Free disk space or mend the volume, then start the agent again: the step is recovered as unknown.",
        )
        self._failed = failure
        raise failure from last

    def read(self, look: Callable[[Transaction], T]) -> T:
        """Run `look` on the writer's own connection, outside any transaction."""
        with self._mutex:
            self._check()
            return look(Transaction(self._connection, boot=self.boot, next_revision=self._refuse_revision))

    def close(self, *, ended: str = "clean") -> None:
        """End the boot, close the connection, free the lock. Harmless when closed already."""
        with self._mutex:
            if not self._lock.held or os.getpid() != self._pid:
                return
            if self.boot and self._failed is None:
                with contextlib.suppress(sqlite3.Error):
                    self._transact(lambda tx: boots.end_boot(tx, tx.boot, ended), sync=False)
            self._connection.close()
            self._lock.release()

    def agent_name(self) -> str:
        """The agent whose journal this is."""
        row = self.read(lambda tx: tx.one("SELECT value FROM journal_meta WHERE key = 'agent'"))
        return "" if row is None else str(row["value"])

    @property
    def closed(self) -> bool:
        return not self._lock.held

    def is_current(self) -> bool:
        """Whether no later boot has opened this journal (law 6: asked between the mark and the first byte)."""
        return self.read(boots.later_boot) is None and self._lock.held

    def _transact(self, change: Callable[[Transaction], T], *, sync: bool) -> T:
        self._set_synchronous("FULL" if sync else "NORMAL")
        transaction = Transaction(self._connection, boot=self.boot, next_revision=self._next_revision)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._fence(transaction)
            result = change(transaction)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            # A failed COMMIT says nothing about the row: look, on a new connection, before anybody is told.
            self._reopen()
            if not self._is_committed(transaction.revised):
                raise
        self.revision = max(self.revision, transaction.revised)
        return result

    def _fence(self, transaction: Transaction) -> None:
        later = boots.later_boot(transaction) if self.boot else None
        if later is not None:
            self._failed = JournalFailed(
                f"Journal {self.path.name}: boot {later[0]} (pid {later[1]}) has taken over from boot {self.boot}.",
                hint="This process must end; its lock file was replaced or copied.",
            )
            raise self._failed

    def _is_committed(self, revision: int) -> bool:
        if not revision:
            return False
        for table in _TABLES_WITH_REVISIONS:
            if self._connection.execute(f"SELECT 1 FROM {table} WHERE revision = ?", (revision,)).fetchone():
                return True
        return False

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedTask(
                f"Journal {self.path.name}: used in a forked child of pid {self._pid}.",
                hint="Open the journal after forking, in one process.",
            )
        if self._failed is not None:
            raise self._failed
        if not self._lock.held:
            raise JournalFailed(f"Journal {self.path.name}: it is closed.", hint="Open it again.")

    def _connect(self) -> sqlite3.Connection:
        fresh = not self.path.exists()
        if fresh and self.role != "agent":
            raise JournalUnreadable(
                f"Journal {self.path.name}: there is no such file.", kind="missing", hint="Its agent makes it."
            )
        connection = sqlite3.connect(self.path, timeout=10.0, isolation_level=None, check_same_thread=False)
        connection.row_factory = sqlite3.Row
        if fresh:
            os.chmod(self.path, 0o600)
            connection.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")
        try:
            # Before any PRAGMA that would change somebody else's database.
            schema.check(connection)
        except BaseException:
            connection.close()
            raise
        wanted = {"journal_mode": "wal", "wal_autocheckpoint": 500, "journal_size_limit": 4 * 1024 * 1024}
        for name, value in wanted.items():
            found = connection.execute(f"PRAGMA {name} = {value}").fetchone()[0]
            if found != value:
                connection.close()
                raise JournalFailed(
                    f"Journal {self.path.name}: PRAGMA {name} is {found!r}, not {value!r}.",
                    hint="The journal needs a local file system with shared memory (WAL).",
                )
        self._synchronous = ""
        return connection

    def _reopen(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        self._connection = self._connect()

    def _set_synchronous(self, level: str) -> None:
        if self._synchronous != level:
            self._connection.execute(f"PRAGMA synchronous = {level}")
            self._synchronous = level

    def _next_revision(self) -> int:
        self._count += 1
        return (self.boot << BOOT_SHIFT) + self._count

    def _refuse_revision(self) -> int:
        raise AssertionError("a read asked for a revision")

    def _boot_row(self) -> None:
        # A writer that is no agent opens its boot with its first write, so that looking leaves no trace.
        if not self.boot:
            self._open_boot()

    def _open_boot(self) -> None:
        self.boot = self.read(boots.next_boot)
        # Synced: a boot number that a power cut took back would be given out twice, and with it revisions.
        self._transact(lambda tx: boots.open_boot(tx, role=self.role, deaths=self._deaths), sync=True)


def close_ended_boot(path: Path, *, pid: int, ended: str, wait: float = WAIT_SECONDS) -> bool:
    """Record how the agent process `pid` ended, as role `supervisor`; False where no open boot row names it.

    Raises JournalBusy when another writer holds the journal: whoever that is closes the row.
    """
    if not path.exists():
        return False
    store = Store(path, agent="", role="supervisor", wait=wait, deaths={pid: ended})
    try:
        if store.read(lambda tx: boots.open_agent_boot(tx, pid)) is None:
            return False
        store.write(lambda tx: None, sync=False)
        return True
    finally:
        store.close()
