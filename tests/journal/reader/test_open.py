"""A reader takes nothing from the agent, and never mixes two states of a file."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from journal.errors import JournalUnreadable
from journal.reader import Reader, file_signature, inspect
from journal.reader.open import read_journal
from tests.journal.rows import a_journal, a_step, a_task, hash_only_table, insert, writer

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def _reading(path: Path, read: Callable[[], object], threads: int = 2) -> Iterator[list[object]]:
    """Threads that read in a loop while the block runs; they collect what they read, and what they raised."""
    seen: list[object] = []
    over = threading.Event()

    def loop() -> None:
        while not over.is_set():
            try:
                seen.append(read())
            except JournalUnreadable as error:
                seen.append(error.kind)

    running = [threading.Thread(target=loop) for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield seen
    finally:
        over.set()
        for thread in running:
            thread.join()


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_writer_in_a_loop_sees_no_lock_of_ours(tmp_path: Path, mode: str):
    path = tmp_path / "j.db"
    with closing(writer(path, mode=mode)) as connection:
        hash_only_table(connection)
        connection.execute("PRAGMA busy_timeout = 500")
        with _reading(path, lambda: Reader(path).counts()["steps"]) as seen:
            for index in range(300):
                insert(connection, "agent_step_journal", task_id="t", step_index=index, status="committed")
        assert connection.execute("SELECT count(*) FROM agent_step_journal").fetchone() == (300,)
    assert [value for value in seen if isinstance(value, int)]


_OPEN_WRITE_CLOSE = """
import sqlite3, sys
for number in range(150):
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO a VALUES (?, zeroblob(3000))", (number,))
    connection.execute("INSERT INTO b VALUES (?, zeroblob(3000))", (number,))
    connection.execute("COMMIT")
    connection.close()
"""


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_writer_that_comes_and_goes_never_makes_a_mixed_answer(tmp_path: Path, mode: str):
    path = tmp_path / "j.db"
    with closing(writer(path, mode=mode)) as connection:
        for table in ("a", "b"):
            connection.execute(f"CREATE TABLE {table} (number INTEGER, filler BLOB)")

    def both(connection: sqlite3.Connection) -> tuple[int, int]:
        counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("a", "b")]
        return counts[0], counts[1]

    with _reading(path, lambda: read_journal(str(path), both), threads=1) as seen:
        subprocess.run([sys.executable, "-c", _OPEN_WRITE_CLOSE, path], check=True)
    pairs = [value for value in seen if isinstance(value, tuple)]
    assert pairs
    assert [pair for pair in pairs if pair[0] != pair[1]] == []
    assert {value for value in seen if isinstance(value, str)} <= {"busy"}


def test_a_stopped_transaction_of_the_agent_does_not_stop_a_reader(tmp_path: Path):
    path = a_journal(tmp_path / "j.db")
    with closing(writer(path)) as connection:
        a_task(connection)
        connection.execute("BEGIN IMMEDIATE")
        a_task(connection, "unfinished")
        assert [task.task_id for task in Reader(path).tasks().items] == ["t"]


def test_a_replaced_file_is_another_journal_at_the_next_read(tmp_path: Path):
    path = a_journal(tmp_path / "j.db")
    other = a_journal(tmp_path / "new.db", agent="other")
    first, before = inspect(path), file_signature(path)
    os.replace(other, path)
    second = inspect(path)
    assert (first.agent, second.agent) == ("triage", "other")
    assert first.uuid != second.uuid
    assert file_signature(path) != before


def test_a_file_replaced_while_it_is_read_is_read_again(tmp_path: Path):
    path = a_journal(tmp_path / "j.db")
    with closing(writer(path)) as connection:
        a_task(connection)
        other = tmp_path / "new.db"
        a_journal(other)
        calls: list[int] = []

        def work(reading: sqlite3.Connection) -> int:
            calls.append(1)
            if len(calls) == 1:
                os.replace(other, path)
            return int(reading.execute("SELECT count(*) FROM agent_task").fetchone()[0])

        read_journal(str(path), work)
    assert len(calls) == 2


def test_an_idle_journal_written_while_it_is_read_is_read_again(tmp_path: Path):
    path = a_journal(tmp_path / "j.db")
    seen: list[int] = []

    def work(reading: sqlite3.Connection) -> int:
        if not seen:
            with closing(writer(path)) as connection:
                a_task(connection)
        seen.append(int(reading.execute("SELECT count(*) FROM agent_task").fetchone()[0]))
        return seen[-1]

    assert read_journal(str(path), work) == 1
    assert len(seen) == 2


def test_an_error_of_a_file_that_changed_meanwhile_is_no_damage(tmp_path: Path):
    path = a_journal(tmp_path / "j.db")
    calls: list[int] = []

    def work(reading: sqlite3.Connection) -> str:
        calls.append(1)
        if len(calls) == 1:
            with closing(writer(path)) as connection:
                a_task(connection)
            reading.execute("SELECT nothing FROM nowhere")
        return "read"

    assert read_journal(str(path), work) == "read"


def test_a_journal_that_changes_at_each_read_is_busy(tmp_path: Path):
    path = a_journal(tmp_path / "j.db")
    os.utime(path, (1, 1))

    def work(reading: sqlite3.Connection) -> None:
        os.utime(path, (1, os.stat(path).st_mtime + 1))

    with pytest.raises(JournalUnreadable) as caught:
        read_journal(str(path), work)
    assert caught.value.kind == "busy"


_WITHOUT_DESCRIPTORS = """
import os, resource, sys
from journal.reader import inspect
inspect(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True:
        os.open(os.devnull, os.O_RDONLY)
except OSError:
    state = inspect(sys.argv[1])
print(state.kind, state.sentence)
"""


def test_a_process_without_a_free_descriptor_does_not_blame_the_file(tmp_path: Path):
    path = a_journal(tmp_path / "j.db")
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_DESCRIPTORS, path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("busy ")
    assert "no file descriptor left" in done.stdout


def test_every_write_changes_the_signature(tmp_path: Path):
    path = a_journal(tmp_path / "j.db")
    seen = {file_signature(path)}
    with closing(writer(path)) as connection:
        for index in range(20):
            a_step(connection, index=index)
            seen.add(file_signature(path))
    assert len(seen) > 20


def test_a_vanished_journal_is_missing_and_is_not_made_anew(tmp_path: Path):
    path = a_journal(tmp_path / "j.db")
    reader = Reader(path)
    reader.tasks()
    path.unlink()
    with pytest.raises(JournalUnreadable) as caught:
        reader.tasks()
    assert caught.value.kind == "missing"
    assert list(tmp_path.iterdir()) == []


def _fifo(path: str) -> None:
    os.mkfifo(path)


def _socket(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path)


def _link_out(path: str) -> None:
    os.symlink("/etc/hostname", path)


@pytest.mark.parametrize("place", [_fifo, _socket, os.mkdir, _link_out])
@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_what_is_no_file_beside_a_journal_is_named_and_never_opened(
    tmp_path: Path, end: str, place: Callable[[str], None]
):
    path = a_journal(tmp_path / "j.db")
    place(f"{path}{end}")
    state = inspect(path)
    assert state.kind == "not_a_file"
    assert f"j.db{end} is not a regular file" in state.sentence
    with pytest.raises(JournalUnreadable, match="not a regular file"):
        Reader(path).counts()


def test_a_pipe_that_takes_the_files_place_after_the_check_is_not_opened(tmp_path: Path):
    path = tmp_path / "j.db"
    os.mkfifo(path)
    with pytest.raises(JournalUnreadable, match="not a regular file"):
        read_journal(str(path), lambda connection: None)
