"""On a full disk an outcome still gets written, or its process starts no further step."""

from __future__ import annotations

import contextlib
import subprocess

import pytest

from journal import tool
from journal.store import ballast
from tests.journal.agent import World, opened, python, steps_of

FULL_DISK = """
    import resource, signal, sys, threading
    from pathlib import Path
    from journal import Journal, JournalFailed, tool
    from journal.store.writer import Store

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
        except BaseException as error:
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
    except BaseException as error:
        say(type(error).__name__)
    free()
    try:
        task.run(write, "the next step, as if this one had been")
    except BaseException as error:
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

        assert ballast.BYTES > 200_000
        assert len(task.run(tool(effect="mutating")(fill), "y")) == 100_000
        assert not (small_disk / "j.db.reserve").exists()
        filler.unlink()
    assert [step["status"] for step in steps_of(path, "t")] == ["committed", "committed"]
