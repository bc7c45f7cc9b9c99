"""What most tests of the journal start from: a path for it, and the world its agent acts on."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from journal import OutcomeUnknown
from tests.journal.agent import World, opened
from tests.journal.rows import writer


@pytest.fixture
def path(tmp_path):
    return tmp_path / "j.db"


@pytest.fixture
def world():
    return World()


@pytest.fixture
def held(path, world):
    """The journal of a task whose only step is held: its outcome is unknown and nothing can tell."""
    world.fail = TimeoutError("no answer")
    with opened(path, world) as journal, pytest.raises(OutcomeUnknown), journal.task("t") as task:
        task.run(world.blind, "x")
    world.fail = None
    world.calls.clear()
    return path


@pytest.fixture
def agent(path):
    """A connection that writes the journal at `path`, as an agent has one."""
    with closing(writer(path)) as connection:
        yield connection


@pytest.fixture
def moved(tmp_path, monkeypatch):
    """The file that says by how many seconds every clock is off."""
    file = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(file))
    return file


@pytest.fixture
def clock_at(moved):
    """A function that sets how far the clock is off, in seconds."""

    def move(seconds: float) -> None:
        new = moved.with_suffix(".new")
        new.write_text(str(seconds))
        os.replace(new, moved)

    return move
