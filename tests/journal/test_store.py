"""What the writer's transactions promise: pragmas, fences, revisions, and outcomes that get written."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading
from contextlib import closing

import pytest

from journal import ForkedTask, JournalFailed, mounts, reserve, tool
from journal.errors import JournalUnreadable
from journal.ownership import lock_path
from journal.store import BOOT_SHIFT, Store
from journal.transaction import Transaction
from tests.journal.agent import World, in_fork, opened, python, rows, steps_of, task_row

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


@pytest.fixture
def path(tmp_path):
    return tmp_path / "j.db"


def note(text: str):
    def change(tx: Transaction) -> None:
        tx.execute("INSERT INTO journal_meta (key, value) VALUES (?, 'x')", (text,))

    return change


def noted(path) -> list[str]:
    return [row["key"] for row in rows(path, "SELECT key FROM journal_meta WHERE value = 'x'")]


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


FULL_DISK = """
    import resource, signal, sys, threading
    from pathlib import Path
    from journal import Journal, JournalFailed, tool
    from journal.store import Store

    path = Path(sys.argv[1])
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill():
        # No file of this process may be written past its first bytes: to SQLite the volume is full.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limit[1]))

    def free():
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)

    calls = []
    @tool(effect="mutating")
    def write(text):
        calls.append(text)
        if text == "during":
            fill()
            if sys.argv[2] == "freed":
                threading.Timer(0.3, free).start()
        return {"text": text, "padding": "x" * 100_000}

    def say(*what):
        print(*what, flush=True)

    journal = Journal(path, agent="a", tools=[write])
    journal.store._outcome_tries = 5 if sys.argv[2] == "freed" else 2
    task = journal.task("t")
"""


def test_an_outcome_is_tried_until_the_disk_has_room_again(path):
    done = python(FULL_DISK + '    say(task.run(write, "during")["text"], calls)\n', path, "freed")
    assert (done.returncode, done.stdout) == (0, "during ['during']\n"), done.stderr
    assert steps_of(path, "t")[0]["status"] == "committed"


def test_an_outcome_that_cannot_be_written_stops_the_process_from_starting_further_steps(path):
    code = (
        FULL_DISK
        + """
    for text in ("during", "after"):
        try:
            task.run(write, text)
        except Exception as error:
            say(type(error).__name__)
    say(calls, path.with_name("j.db.reserve").exists())
    """
    )
    done = python(code, path, "full")
    assert done.stdout.splitlines() == ["JournalFailed", "TaskClosed", "['during'] False"], done.stderr
    world = World()
    with opened(path, world) as journal:
        report = journal.recover()
        assert report.held == 1
    assert steps_of(path, "t")[0]["hold_reason"] == "no_key_no_status"


def test_a_tool_is_not_called_when_its_intent_cannot_be_written(path):
    code = (
        FULL_DISK
        + """
    fill()
    try:
        task.run(write, "x" * 100_000)
    except Exception as error:
        say(type(error).__name__)
    free()
    try:
        task.run(write, "the next step, as if this one had been")
    except Exception as error:
        say(type(error).__name__)
    say(len(calls))
    """
    )
    done = python(code, path, "full")
    assert done.stdout.splitlines() == ["StepUnwritten", "TaskClosed", "0"], (done.stdout, done.stderr)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MB; skips where this user may mount none."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", mounted], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot mount a small disk here: {done.stderr.strip()}")
    yield mounted
    subprocess.run(["umount", "--lazy", mounted], check=True)


def test_on_a_full_disk_the_reserve_lets_the_last_outcome_be_written(small_disk):
    path = small_disk / "j.db"
    world = World()

    with opened(path, world) as journal, journal.task("t") as task:
        # Settled first, so that the tables have their pages.
        task.run(world.blind, "first")
        filler = small_disk / "filler"

        def fill(call: object, name: str) -> str:
            world.calls.append(("fill", name))
            with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * 4096)
            return name * 100_000

        assert reserve.BYTES > 200_000
        assert len(task.run(tool(effect="mutating")(fill), "y")) == 100_000
        assert not (small_disk / "j.db.reserve").exists()
        filler.unlink()
    assert [step["status"] for step in steps_of(path, "t")] == ["committed", "committed"]


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


def test_a_file_of_somebody_else_is_left_as_it_was(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(JournalUnreadable, match="tables that stepkeeper did not make"):
        opened(path, World())
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("data", "kind"), [(b"not a database, but long enough to look like one" * 50, "damaged"), (None, "damaged")]
)
def test_what_is_no_database_is_refused_in_a_sentence(path, data, kind):
    if data is None:
        path.mkdir()
    else:
        path.write_bytes(data)
    with pytest.raises(JournalUnreadable, match=r"Journal j\.db") as caught:
        opened(path, World())
    assert caught.value.kind == kind


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(JournalUnreadable, match="folder must exist"):
        opened(tmp_path / "missing" / "j.db", World())


def test_a_network_disk_is_refused_before_anything_is_written(path, tmp_path, monkeypatch):
    mountinfo = f"36 35 98:0 / {tmp_path} rw - nfs4 server:/x rw\n".encode()
    real = mounts.filesystem
    monkeypatch.setattr(mounts, "filesystem", lambda where: real(where, mountinfo=mountinfo))
    with pytest.raises(JournalUnreadable, match="nfs4") as caught:
        opened(path, World())
    assert (caught.value.kind, list(tmp_path.iterdir())) == ("network_fs", [])


def test_a_closed_journal_says_so(path):
    world = World()
    journal = opened(path, world)
    task = journal.task("t")
    journal.close()
    journal.close()
    with pytest.raises(JournalFailed, match="closed"):
        task.run(world.read, 1)
    assert task_row(path, "t")["status"] == "running"
