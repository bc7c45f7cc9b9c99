"""docs/reference/known-limits.md: what it says about forking is what happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from journal import Journal, JournalBusy
from tests.crash.looking import until

pytestmark = pytest.mark.crash

# Forks in the way named by its argument and says so; the test kills it by SIGKILL while the child lives on.
_AGENT = """
import ctypes, os, sys
from journal import ForkedTask, Journal

journal = Journal("agent.db", agent="forks")
fork = os.fork if sys.argv[1] == "python" else ctypes.CDLL(None).fork
child = fork()
if child == 0:
    if sys.argv[1] == "python":
        try:
            journal.task("t")
        except ForkedTask:
            os.write(1, b"ForkedTask\\n")
    sys.stdin.buffer.read()
    os._exit(0)
if sys.argv[1] == "c":
    os.write(1, f"{child}\\n".encode())
sys.stdin.buffer.read()
"""


@pytest.fixture
def forking(tmp_path):
    started: list[subprocess.Popen[bytes]] = []

    def start(how: str) -> tuple[bytes, subprocess.Popen[bytes]]:
        process = subprocess.Popen(
            [sys.executable, "-c", _AGENT, how],
            cwd=tmp_path,
            # What measures coverage has forks of its own in mind.
            env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout is not None
        said = process.stdout.readline()
        process.kill()
        process.wait(10)
        return said, process

    yield start
    for process in started:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()  # ends the child, which waits for the end of its input
        process.stdout.read()
        process.stdout.close()


def test_a_fork_by_python_lets_go_of_the_lock_and_may_not_use_the_journal(forking, tmp_path):
    said, _ = forking("python")
    assert said == b"ForkedTask\n"
    Journal(tmp_path / "agent.db", agent="forks", wait=0).close()


def test_a_fork_past_pythons_hooks_keeps_the_lock_and_is_named(forking, tmp_path):
    said, process = forking("c")
    with pytest.raises(JournalBusy, match=rf"held by pid {int(said)}, which inherited the lock") as busy:
        Journal(tmp_path / "agent.db", agent="forks", wait=0)
    assert busy.value.pid == int(said) != process.pid
    os.kill(int(said), signal.SIGKILL)
    until(lambda: can_open(tmp_path / "agent.db"), "the end of the lock")


def can_open(path: Path) -> bool:
    try:
        Journal(path, agent="forks", wait=0).close()
    except JournalBusy:
        return False
    return True
