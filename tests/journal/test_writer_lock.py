"""One process writes a journal, and the operating system says which."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading

import pytest

from journal import Journal, JournalBusy
from journal.errors import JournalUnreadable
from journal.models import Writer
from journal.store.writer import Store
from journal.writer_lock import Lock, find_holder, lock_path
from tests.journal.agent import ROOT, World, in_fork, opened, rows, soon, start

HOLD = """
    import sys
    from journal.writer_lock import Lock
    from pathlib import Path
    Lock(Path(sys.argv[1]), role=sys.argv[2]).acquire()
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_second_process_is_refused_with_the_first_ones_pid(path):
    with start(HOLD, path, "agent") as child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(JournalBusy, match=f"held by pid {child.pid} \\(agent\\)") as caught:
            opened(path, World())
        assert (caught.value.pid, caught.value.role) == (child.pid, "agent")
        child.communicate("\n")


def test_a_second_journal_in_the_same_process_is_refused_too(path):
    with (
        opened(path, World()),
        pytest.raises(JournalBusy, match=rf"this process \(pid {os.getpid()}, agent\) has it open"),
    ):
        opened(path, World())


def test_another_name_of_the_same_file_is_the_same_journal(path, tmp_path):
    with opened(path, World()):
        alias = tmp_path / "alias.db"
        alias.symlink_to(path)
        with pytest.raises(JournalBusy):
            opened(alias, World())


def test_opening_waits_for_a_holder_that_is_no_agent(path):
    lock = Lock(path, role="worker")
    lock.acquire()
    threading.Timer(0.3, lock.release).start()
    with opened(path, World()) as journal:
        assert journal.store.boot == 1


def test_the_wait_for_a_holder_that_is_no_agent_ends(path):
    lock = Lock(path, role="cli")
    lock.acquire()
    with pytest.raises(JournalBusy, match="cli"):
        opened(path, World(), wait=0.1)
    lock.release()


def test_a_child_forked_during_the_wait_does_not_keep_the_lock(path):
    first, second, third = Lock(path, role="worker"), Lock(path, role="worker"), Lock(path, role="cli")
    first.acquire()
    waiting = threading.Thread(target=second.acquire)
    waiting.start()
    soon(lambda: second.held)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)  # lives until the parent's end of the pipe is closed
        os._exit(0)
    os.close(reader)
    try:
        first.release()
        waiting.join()
        second.release()
        third.acquire(wait=0)
        third.release()
    finally:
        os.close(writer)
        os.waitpid(child, 0)


def test_a_killed_holder_leaves_the_lock_free_at_once(path):
    with start(HOLD, path, "agent") as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.kill()
        child.wait()
        with opened(path, World()) as journal:
            assert journal.store.boot == 1


def test_the_text_of_a_dead_agent_does_not_refuse_while_another_role_holds_the_lock(path):
    with start("import sys; print('here', flush=True)") as gone:
        gone.wait()
    lock = Lock(path, role="worker")
    lock.acquire()
    lock_path(path).write_text(f'{{"pid": {gone.pid}, "role": "agent"}}', encoding="utf-8")
    threading.Timer(0.2, lock.release).start()
    with opened(path, World()) as journal:
        assert journal.store.boot == 1


def test_the_lock_file_is_private_and_stays_the_same_file(path):
    with opened(path, World()):
        first = lock_path(path).stat()
    with opened(path, World()):
        second = lock_path(path).stat()
    assert (first.st_ino, first.st_mode & 0o777) == (second.st_ino, 0o600)


def test_holder_names_the_writer_and_never_takes_the_lock(path):
    assert find_holder(path) is None
    assert not lock_path(path).exists()
    with opened(path, World()):
        seen = find_holder(path)
        assert seen is not None
        assert (seen.pid, seen.role) == (os.getpid(), "agent")
    assert find_holder(path) is None
    # A holder that looked by taking would make this fail now and then.
    stop = threading.Event()
    watcher = threading.Thread(target=lambda: [find_holder(path) for _ in iter(stop.is_set, True)])
    watcher.start()
    try:
        for _ in range(200):
            lock = Lock(path, role="agent")
            lock.acquire(wait=0)
            lock.release()
    finally:
        stop.set()
        watcher.join()


def test_a_holder_whose_text_is_not_written_yet_is_named_by_its_pid(path):
    lock = Lock(path, role="agent")
    lock.acquire()
    lock_path(path).write_text(f'{{"pid": {os.getppid()}, "role": "worker"}}', encoding="utf-8")
    assert find_holder(path) == Writer(pid=os.getpid(), role="unknown")
    lock.release()


def test_a_forked_child_closes_its_copy_and_the_parent_stays_the_writer(path):
    with opened(path, World()) as journal:
        said = in_fork(lambda: f"{journal.store.closed} {find_holder(path)}")
        assert said.startswith("True ")
        assert f"pid={os.getpid()}" in said
        with pytest.raises(JournalBusy):
            opened(path, World())


def test_a_forked_child_that_outlives_its_parent_does_not_keep_the_journal_locked(path):
    code = """
        import os, sys, time
        from journal import Journal
        journal = Journal(sys.argv[1], agent="a")
        pid = os.fork()
        if pid == 0:
            os.close(1)
            sys.stdin.readline()
            os._exit(0)
        print(pid, flush=True)
        os._exit(0)
    """
    with start(code, path) as child:
        assert child.stdout is not None
        orphan = int(child.stdout.readline())
        child.wait()
        os.kill(orphan, 0)
        with Journal(path, agent="a") as journal:
            assert journal.store.boot == 2
        assert child.stdin is not None
        child.stdin.close()


def test_a_subprocess_does_not_inherit_the_lock(path):
    journal = opened(path, World())
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, close_fds=False, cwd=ROOT
    ) as child:
        journal.close()
        with opened(path, World()) as again:
            assert again.store.boot == 2
        child.communicate()


def test_a_process_that_forked_past_python_and_kept_the_lock_is_named(path):
    code = """
        import ctypes, os, sys
        from journal import Journal
        journal = Journal(sys.argv[1], agent="a")
        pid = ctypes.CDLL(None).fork()  # no hook of Python's runs
        if pid == 0:
            sys.stdin.readline()
            os._exit(0)
        print(pid, flush=True)
        os._exit(0)
    """
    with start(code, path) as child:
        assert child.stdout is not None
        orphan = int(child.stdout.readline())
        child.wait()
        with pytest.raises(JournalBusy, match=f"held by pid {orphan}, which inherited the lock") as caught:
            opened(path, World(), wait=0.1)
        assert caught.value.pid == orphan
        assert find_holder(path) == Writer(pid=orphan, role="agent")
        assert child.stdin is not None
        child.stdin.close()


def test_a_writer_that_is_no_agent_and_writes_nothing_leaves_no_boot(path):
    opened(path, World()).close()
    Store(path, agent="", role="cli").close()
    assert [row["role"] for row in rows(path, "SELECT role FROM agent_boot")] == ["agent"]


def test_a_pipe_in_the_place_of_the_lock_file_is_not_waited_for(path):
    """Someone who locks a named pipe holds a lock whose text nobody may wait for."""
    os.mkfifo(lock_path(path))
    descriptor = os.open(lock_path(path), os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert find_holder(path) == Writer(pid=os.getpid(), role="unknown")
    os.close(descriptor)


def test_a_link_in_the_place_of_the_lock_file_is_refused(path, tmp_path):
    lock_path(path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JournalUnreadable, match="its lock file cannot be opened"):
        opened(path, World())
    assert not (tmp_path / "elsewhere").exists()
