"""A reading that hangs costs a process that can be killed: its asker is told, and everyone else goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from journal.errors import JournalUnreadable, UsageError
from journal.reader import Reader, inspect, process
from journal.reader.process import Pool
from tests.journal.agent import ROOT, soon
from tests.journal.rows import a_journal, a_step, a_task, writer

PATIENT = 30.0
HASTY = 0.3


@pytest.fixture
def pool() -> Iterator[Pool]:
    pool = Pool(2)
    yield pool
    pool.close()


@pytest.fixture
def apart(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> Pool:
    """The whole process reads apart, as the web does."""
    monkeypatch.setattr(process, "_pool", pool)
    return pool


@pytest.fixture
def pipe(tmp_path: Path) -> str:
    """A named pipe with nobody at its other end: opening it waits for ever."""
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


def _hang(pool: Pool, path: str) -> None:
    with pytest.raises(JournalUnreadable, match="gave no answer") as caught:
        pool.run(path, HASTY, os.open, path, os.O_RDONLY)
    assert caught.value.kind == "hung"


def test_a_reader_says_the_same_apart_and_here(path: Path, apart: Pool, monkeypatch: pytest.MonkeyPatch):
    a_journal(path)
    connection = writer(path)
    a_task(connection)
    a_step(connection, status="pending", output_json=None)
    connection.close()
    reader = Reader(path, budget=PATIENT)

    def everything() -> list[object]:
        return [
            reader.state,
            reader.load_task("t", limit=3, most_branches=3),
            reader.load_step("t", 0),
            reader.load_pending(limit=1),
            reader.changes(0),
            reader.tasks(),
        ]

    there = everything()
    monkeypatch.setattr(process, "_pool", None)
    assert everything() == there


def test_errors_come_back_as_they_were_raised(path: Path, apart: Pool):
    with pytest.raises(JournalUnreadable, match="there is no such file") as caught:
        Reader(path, budget=PATIENT).counts()
    assert (caught.value.kind, caught.value.hint) == ("missing", "Check the path.")
    assert Reader(path, budget=PATIENT).state == inspect(path)
    with pytest.raises(UsageError, match="place in the list"):
        Reader(a_journal(path), budget=PATIENT).tasks(after="nonsense")


def test_a_question_that_hangs_is_ended_with_its_process(pool: Pool, pipe: str):
    pid = pool.run("first", PATIENT, os.getpid)
    _hang(pool, pipe)
    soon(lambda: not Path(f"/proc/{pid}").exists())
    assert pool.run("another", PATIENT, os.getpid) != pid


def test_a_file_that_hung_is_refused_at_once_and_the_others_are_read(pool: Pool, pipe: str):
    _hang(pool, pipe)
    with pytest.raises(JournalUnreadable, match="gave no answer a moment ago"):
        # Were it asked again, this test would never end.
        pool.run(pipe, 1e6, os.open, pipe, os.O_RDONLY)
    assert pool.run("another", PATIENT, os.path.basename, "/a/b") == "b"


def test_a_file_is_tried_again_after_its_rest(pool: Pool, pipe: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(process, "_REST", 0.0)
    _hang(pool, pipe)
    assert pool.run(pipe, PATIENT, os.path.basename, pipe) == "pipe"


def test_a_process_that_dies_is_a_card_and_the_next_question_gets_another(pool: Pool):
    with pytest.raises(JournalUnreadable, match="the process that read it ended") as caught:
        pool.run("bad", PATIENT, signal.raise_signal, signal.SIGKILL)
    assert caught.value.kind == "hung"
    assert pool.run("good", PATIENT, os.path.basename, "/a") == "a"


def test_a_process_that_was_killed_while_idle_is_no_question_lost(pool: Pool):
    pid = pool.run("a", PATIENT, os.getpid)
    os.kill(pid, signal.SIGKILL)
    soon(lambda: "Z" in Path(f"/proc/{pid}/stat").read_text())
    assert pool.run("a", PATIENT, os.getpid) != pid


def test_more_questions_than_processes_wait_for_a_turn_and_no_longer(pool: Pool, pipe: str):
    one = Pool(1)
    one._turns.acquire()
    with pytest.raises(JournalUnreadable, match="keep every reader process busy") as caught:
        one.run("a", 0.05, os.getpid)
    assert caught.value.kind == "busy"


_ASKER = """
    import os, sys, threading
    from journal.reader.process import Pool
    pool = Pool()
    print(pool.run("a", 30.0, os.getpid), flush=True)
    pool.run("a", 1e6, os.open, sys.argv[1], os.O_RDONLY)
"""
_FORKER = """
    import os
    from journal.reader import process
    process.read_apart()
    mine = process.run("a", 30.0, os.getpid)
    child = os.fork()
    if child == 0:
        os._exit(0 if process.run("a", 30.0, os.getpid) != mine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert process.run("a", 30.0, os.getpid) == mine
"""


def _python(code: str, *arguments: str) -> subprocess.Popen[str]:
    import textwrap

    argv = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_a_hung_process_ends_with_the_process_that_asked(pipe: str):
    with _python(_ASKER, pipe) as asker:
        assert asker.stdout is not None
        child = int(asker.stdout.readline())
        asker.kill()
    soon(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text())


def test_a_forked_process_asks_processes_of_its_own():
    with _python(_FORKER) as forker:
        assert forker.wait(60) == 0
