"""A forked child is told that the journal is its parent's, and leaves it whole."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest

from journal import ForkedTask
from journal.store.transaction import Transaction
from tests.journal.agent import World, in_fork, note, noted, opened, python, steps_of


def test_a_forked_child_is_told_so_and_the_parent_goes_on(path):
    world = World()
    with opened(path, world) as journal, journal.task("t") as task:
        task.run(world.read, 1)
        assert in_fork(lambda: task.run(world.read, 2), clean_exit=True).startswith("ForkedTask")
        assert in_fork(journal.close, clean_exit=True) == "None"
        assert task.run(world.write, "p")["path"] == "p"
    assert [step["status"] for step in steps_of(path, "t")] == ["committed", "committed"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_a_child_forked_while_another_thread_writes_is_told_at_once(path):
    with opened(path, World()) as journal:
        inside, leave = threading.Event(), threading.Event()

        def slow(tx: Transaction) -> None:
            inside.set()
            leave.wait(10)

        writer = threading.Thread(target=lambda: journal.store.write(slow, sync=False))
        writer.start()
        inside.wait(10)
        said = in_fork(lambda: journal.store.write(note("child"), sync=False))
        leave.set()
        writer.join()
        assert said.startswith("ForkedTask")
        with pytest.raises(ForkedTask):
            raise ForkedTask("as a child would")


def test_a_child_that_ends_like_any_program_leaves_the_parents_journal_whole(path):
    code = """
        import os, sys
        from journal import Journal
        journal = Journal(sys.argv[1], agent="a")
        write = lambda text: journal.store.write(
            lambda tx: tx.execute("INSERT INTO journal_meta (key, value) VALUES (?, 'x')", (text,)), sync=True)
        write("before")
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        write("after")
        os._exit(0)
    """
    done = python(code, path)
    assert done.returncode == 0, done.stderr
    assert noted(path) == ["before", "after"]
