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
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from journal import clock, schema
from journal.errors import ForkedTask, JournalFailed
from journal.models import JournalDoubt
from journal.store import ballast, connection, high_water
from journal.store.sql import boots
from journal.store.transaction import ClockHighWater, Transaction
from journal.writer_lock import WAIT_SECONDS, take_lock

T = TypeVar("T")
BOOT_SHIFT = 32
# The number of tries to write an outcome before the process gives up: after 0.1 s, doubling, 13 s in all.
OUTCOME_TRIES = 8

_stores: weakref.WeakSet[Store] = weakref.WeakSet()


class Store:
    """The writer of one journal. Open it with the ownership lock; the opener is the only writer until `close`."""

    def __init__(
        self,
        path: Path,
        *,
        agent: str,
        role: str,
        wait: float = WAIT_SECONDS,
        deaths: Mapping[int, str] | None = None,
        outcome_tries: int = OUTCOME_TRIES,
    ) -> None:
        # Resolved once: neither a link to the journal nor a later chdir may part it from the files beside it.
        self.path = path = Path(os.path.realpath(path))
        self.role = role
        self._deaths = deaths or {}
        self._pid = os.getpid()
        self._mutex = threading.RLock()
        self._failed: JournalFailed | None = None
        self._inode: int | None = None
        self._synchronous = connection.FULL
        self._broken = False
        self._outcome_tries = outcome_tries
        self._log_limit = connection.LONGEST_LOG
        self._count = self.boot = self.revision = 0
        self._newest = ClockHighWater()
        self._mark: high_water.MarkWriter | None = None
        connection.refuse_network(path)
        self._lock = take_lock(path, role=role, wait=wait)
        try:
            with contextlib.ExitStack() as undo:
                undo.callback(self._lock.release)
                self._connection = self._connect()
                undo.callback(lambda: self._connection.close())
                _stores.add(self)
                schema.migrate_schema(self._connection, agent=agent if role == "agent" else None)
                os.chmod(path, 0o600)
                self._doubt = self._find_doubt()
                undo.callback(self._close_mark)
                if role == "agent" or self._doubt is not None:
                    self._open_boot()
                if role == "agent":
                    ballast.keep_ballast(self.path)
                undo.pop_all()
        except (sqlite3.DatabaseError, OSError) as error:
            raise connection.explain_refusal(path, error) from error

    def write(self, change: Callable[[Transaction], T], *, sync: bool) -> T:
        """Run `change` in one transaction; with `sync` it survives a power cut once this returns.

        Without `sync` it survives `kill -9` at once and a power cut after the next synced write. An error from
        `change` rolls the transaction back and is raised as it is.
        """
        self._check_process()
        with self._mutex:
            self._check()
            if not self.boot:
                # A writer that is no agent opens its boot with its first write, so that looking leaves no trace.
                self._open_boot()
            return self._transact(change, sync=sync)

    def write_outcome(self, change: Callable[[Transaction], T], *, sync: bool) -> T:
        """Like `write`, for what already happened outside: tried again until it is on disk.

        When it cannot be written after several tries, with the reserve file freed, JournalFailed is raised and this
        store takes no further write: the process must not start another step.
        """
        tries = 0
        while True:
            try:
                return self.write(change, sync=sync)
            except sqlite3.Error as error:
                tries += 1
                if tries >= self._outcome_tries:
                    self._failed = JournalFailed(
                        f"Journal {self.path.name}: an outcome could not be written: {error}.",
                        hint="Free disk space or mend the volume, then start again: the step is recovered as unknown.",
                    )
                    raise self._failed from error
                if tries == 1:
                    ballast.free_ballast(self.path)
            time.sleep(0.1 * 2 ** (tries - 1))

    def read(self, look: Callable[[Transaction], T]) -> T:
        """Run `look` on the writer's own connection, outside any transaction."""
        self._check_process()
        with self._mutex:
            self._check()
            transaction = self._transaction(self._refuse_revision)
            # A visitor has no boot before it writes, and sees with the eyes of the one it would open.
            transaction.boot = self.boot or boots.next_boot_number(transaction)
            return look(transaction)

    def close(self, *, ended: str = "clean") -> None:
        """End the boot, close the connection, free the lock. Harmless when closed already."""
        if os.getpid() != self._pid:
            return
        with self._mutex:
            if not self._lock.held:
                return
            if self.boot and self._failed is None:
                # A writer that lost the journal leaves its row to the next writer.
                with contextlib.suppress(sqlite3.Error, JournalFailed):
                    self._transact(lambda tx: boots.end_boot(tx, tx.boot, ended), sync=False)
            self._connection.close()
            self._close_mark()
            self._lock.release()

    @property
    def closed(self) -> bool:
        return not self._lock.held

    def is_current(self) -> bool:
        """Whether no later boot has opened this journal (law 6: asked between the mark and the first byte)."""
        return self.read(boots.find_later_boot) is None and self._lock.held

    def _transact(self, change: Callable[[Transaction], T], *, sync: bool) -> T:
        self._set_synchronous(connection.FULL if sync else connection.NORMAL)
        transaction = self._transaction(self._next_revision)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._fence(transaction)
            result = change(transaction)
            self._newest.keep(transaction)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            # A failed COMMIT says nothing about the row: look, on a new connection, before anybody is told.
            self._reopen()
            if not transaction.is_committed(self._connection):
                raise
        self.revision = max(self.revision, transaction.revised)
        self._newest.committed(transaction)
        if self._mark is not None and transaction.revised:
            self._mark.note(transaction.revised, synced=sync)
        self._log_limit = connection.shorten_log(self._connection, self.path, limit=self._log_limit)
        return result

    def _fence(self, transaction: Transaction) -> None:
        later = boots.find_later_boot(transaction) if self.boot else None
        if later is not None:
            self._failed = JournalFailed(
                f"Journal {self.path.name}: boot {later[0]} (pid {later[1]}) has taken over from boot {self.boot}.",
                hint="This process must end; its lock file was replaced or copied.",
            )
            raise self._failed

    def _check_process(self) -> None:
        # Before the mutex: a child forked while another thread held it would wait for ever.
        if os.getpid() != self._pid:
            raise ForkedTask(
                f"Journal {self.path.name}: used in a forked child of pid {self._pid}.",
                hint="Open the journal after forking, in one process.",
            )

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed
        if not self._lock.held:
            raise JournalFailed(f"Journal {self.path.name}: it is closed.", hint="Open it again.")
        if self._broken:
            self._connection = self._connect()
            self._broken = False
        try:
            connection.require_same(self.path, self._inode)
        except JournalFailed as error:
            self._failed = error
            raise

    def _connect(self) -> sqlite3.Connection:
        self._synchronous = connection.FULL
        # Only the first connection may make the file; a later one must find the same.
        made = connection.connect_writer(self.path, may_create=self.role == "agent" and self._inode is None)
        if self._inode is None:
            self._inode = connection.find_inode(self.path)
        return made

    def _reopen(self) -> None:
        # Until a new connection is there, every write tries to make one first.
        self._broken = True
        with contextlib.suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        self._connection = self._connect()
        self._broken = False

    def _set_synchronous(self, level: int) -> None:
        if self._synchronous != level:
            self._connection.execute(f"PRAGMA synchronous = {level}")
            self._synchronous = level

    def _next_revision(self) -> int:
        self._count += 1
        return (self.boot << BOOT_SHIFT) + self._count

    def _transaction(self, next_revision: Callable[[], int]) -> Transaction:
        transaction = Transaction(self._connection, boot=self.boot, next_revision=next_revision)
        transaction.newest = self._newest.time(transaction)
        return transaction

    def _refuse_revision(self) -> int:
        raise AssertionError("a read asked for a revision")

    def _open_boot(self) -> None:
        self.boot, uuid = self.read(lambda tx: (boots.next_boot_number(tx), boots.read_meta(tx, "uuid")))
        file, doubt = high_water.identify_file(self.path), self._doubt
        try:
            self._mark = self._mark or high_water.MarkWriter(self.path, uuid=uuid, file=file)
            # Synced: a boot number that a power cut took back would be given out twice, and with it revisions. A doubt
            # about the file is on disk before the mark is overwritten, which alone tells of it.
            self._transact(
                lambda tx: boots.open_boot(tx, role=self.role, deaths=self._deaths, file=file, doubt=doubt), sync=True
            )
        except BaseException:
            self.boot = 0
            raise
        if self.boot == 1:
            # From now on the file itself, without its log, says whose copy a copy of it is. The emptied log needs room
            # to grow, so a full volume refuses the next intent as before.
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _find_doubt(self) -> JournalDoubt | None:
        mark, file = high_water.read_mark(self.path), high_water.identify_file(self.path)
        return self.read(
            lambda tx: high_water.find_doubt(
                mark,
                uuid=boots.read_meta(tx, "uuid"),
                file=file,
                known_as=boots.read_meta(tx, "file"),
                revision=tx.highest_revision(),
                os_boot_id=clock.os_boot_id(),
            )
        )

    def _close_mark(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.close()


def _keep_connections() -> None:
    # In a forked child: SQLite's handle is the parent's. Not even the interpreter's end may close the copy, so each
    # gets a reference that nothing gives back.
    import ctypes

    for store in list(_stores):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(store._connection))


os.register_at_fork(after_in_child=lambda: _keep_connections() if _stores else None)
