"""What the writer's transactions promise: pragmas, private files, fences, revisions, and nothing half-written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading
from contextlib import closing

import pytest

from journal import JournalFailed
from journal.errors import JournalUnreadable
from journal.store.transaction import Transaction
from journal.store.writer import BOOT_SHIFT, Store
from journal.writer_lock import lock_path
from tests.journal.agent import World, note, noted, opened, python, rows, task_row

TABLES = (
    "agent_step_journal",
    "agent_task",
    "agent_step_attempt",
    "agent_task_run",
    "agent_evidence",
    "agent_model_call",
    "agent_decision",
    "agent_boot",
)


def test_the_writer_has_the_pragmas_that_the_rules_name(path):
    with opened(path, World()) as journal:

        def pragma(name: str) -> object:
            return journal.store.read(lambda tx: tx.all(f"PRAGMA {name}"))[0][0]

        assert pragma("journal_mode") == "wal"
        assert pragma("wal_autocheckpoint") == 500
        assert pragma("journal_size_limit") == 4 * 1024 * 1024
        assert pragma("page_size") == 8192
        journal.store.write(note("a"), sync=True)
        assert pragma("synchronous") == 2
        journal.store.write(note("b"), sync=False)
        assert pragma("synchronous") == 1


def test_the_files_of_a_journal_are_private(path, tmp_path):
    before = os.umask(0)
    try:
        with opened(path, World()) as journal:
            journal.store.write(note("a"), sync=True)
            assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    finally:
        os.umask(before)


def test_a_synced_write_reaches_the_disk_and_an_unsynced_one_does_not_wait_for_it(path):
    code = """
        import os, sys
        from journal import Journal
        journal = Journal(sys.argv[1], agent="a")
        def note(text):
            return lambda tx: tx.execute("INSERT INTO journal_meta (key, value) VALUES (?, 'x')", (text,))
        # The first write since the file was made also syncs the beginning of its log.
        journal.store.write(note("first"), sync=False)
        print("ready", flush=True)
        for number in range(5):
            journal.store.write(note(f"u{number}"), sync=False)
        os.write(1, b"unsynced done\\n")
        for number in range(5):
            journal.store.write(note(f"s{number}"), sync=True)
        os._exit(0)
    """
    if shutil.which("strace") is None:
        done = python(code, path)
        assert done.returncode == 0, done.stderr
        pytest.skip("no strace on this machine")
    traced = subprocess.run(
        ["strace", "-f", "-e", "trace=fdatasync,fsync,write", sys.executable, "-c", textwrap.dedent(code), path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    after_ready = traced.stderr.partition('"ready')[2]
    unsynced, _, synced = after_ready.partition('"unsynced done\\n"')
    assert (unsynced.count("sync("), synced.count("sync(")) == (0, 5)


def test_an_error_in_a_change_rolls_all_of_it_back(path):
    with opened(path, World()) as journal:

        def change(tx: Transaction) -> None:
            note("a")(tx)
            raise KeyError("no")

        with pytest.raises(KeyError):
            journal.store.write(change, sync=True)
        journal.store.write(note("b"), sync=True)
        assert noted(path) == ["b"]


def test_an_error_of_sqlite_rolls_back_and_the_next_write_works(path):
    with opened(path, World()) as journal:
        with pytest.raises(sqlite3.IntegrityError):
            journal.store.write(lambda tx: [note("a")(tx), note("a")(tx)], sync=False)
        journal.store.write(note("c"), sync=False)
        assert noted(path) == ["c"]


def test_a_later_boot_fences_the_one_before(path):
    first = Store(path, agent="a", role="agent")
    # As if the lock file had been replaced: the only way a second writer can get in.
    lock_path(path).unlink()
    second = Store(path, agent="a", role="agent")
    second.write(note("second"), sync=True)
    with pytest.raises(JournalFailed, match="boot 2"):
        first.write(note("first"), sync=True)
    with pytest.raises(JournalFailed):
        first.write(note("first"), sync=True)
    assert not first.closed
    second.close()
    first.close()
    assert noted(path) == ["second"]


def test_revisions_are_unique_and_grow_across_boots(path):
    world = World()
    for number in range(3):
        with opened(path, world) as journal, journal.task(f"t{number}") as task:
            task.run(world.read, number)
            task.ask(world.model, "q")
            task.run(world.write, "p")
    found = [(table, row["revision"]) for table in TABLES for row in rows(path, f"SELECT revision FROM {table}")]
    revisions = [revision for _, revision in found]
    assert len(set(revisions)) == len(revisions)
    assert {revision >> BOOT_SHIFT for revision in revisions} == {1, 2, 3}
    assert [row["boot"] for row in rows(path, "SELECT boot FROM agent_boot ORDER BY boot")] == [1, 2, 3]


def test_a_boot_that_nobody_closed_is_closed_by_the_next(path):
    done = python("import os, sys; from journal import Journal; Journal(sys.argv[1], agent='a'); os._exit(0)", path)
    assert done.returncode == 0
    opened(path, World()).close()
    ended = [row["ended"] for row in rows(path, "SELECT ended FROM agent_boot ORDER BY boot")]
    assert ended == ["vanished", "clean"]


def test_many_threads_write_and_nothing_is_lost(path):
    with opened(path, World()) as journal:
        threads = [
            threading.Thread(
                target=lambda one=number: [journal.store.write(note(f"{one}-{n}"), sync=False) for n in range(40)]
            )
            for number in range(10)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(noted(path)) == 400


def test_a_version_that_was_never_written_is_refused(path):
    opened(path, World()).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = -5")
    with pytest.raises(JournalUnreadable, match="schema -5"):
        opened(path, World())


def test_a_closed_journal_says_so(path):
    world = World()
    journal = opened(path, world)
    task = journal.task("t")
    journal.close()
    journal.close()
    with pytest.raises(JournalFailed, match="closed"):
        task.run(world.read, 1)
    assert task_row(path, "t")["status"] == "running"
