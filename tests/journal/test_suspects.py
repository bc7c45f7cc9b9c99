"""Whose turn it is among steps that ended twice with their process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from journal import Journal
from journal.desk import Desk
from journal.ops import Sleep, drive
from journal.suspects import turn


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Journal(tmp_path / "a.db", agent="a") as journal:
        yield journal.desk("task")


def waits(desk: Desk, deaths: int) -> bool:
    """Whether a step with so many deaths has to wait now."""
    return isinstance(next(turn(desk, deaths), None), Sleep)


def test_a_second_suspect_waits_until_the_first_has_ended(desk: Desk) -> None:
    with drive(turn(desk, 2)):
        assert waits(desk, 2)
        assert waits(replace(desk, mode="recover"), 3)
    assert not waits(desk, 2)


def test_a_step_that_ended_once_with_its_process_waits_for_nobody(desk: Desk) -> None:
    with drive(turn(desk, 2)):
        assert not waits(desk, 0)
        assert not waits(desk, 1)


def test_a_suspect_that_fails_gives_its_turn_back(desk: Desk) -> None:
    with pytest.raises(KeyError), drive(turn(desk, 2)):
        raise KeyError
    assert not waits(desk, 2)


def test_nobody_waits_longer_than_max_wait_for_a_suspect_that_hangs(desk: Desk) -> None:
    with drive(turn(desk, 2)):
        impatient: AbstractContextManager[None] = drive(turn(replace(desk, max_wait=timedelta(0)), 2))
        with impatient:
            assert waits(desk, 2)
    assert not waits(desk, 2)


def test_a_stopping_process_keeps_nobody_waiting(desk: Desk) -> None:
    stopping = threading.Event()
    with drive(turn(desk, 2)):
        patient = turn(replace(desk, stopping=stopping.is_set), 2)
        assert isinstance(next(patient), Sleep)
        stopping.set()
        with pytest.raises(StopIteration):
            patient.send(None)
