"""Whose turn it is among steps that ended twice with their process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from journal import Journal, StepWaiting
from journal.effects import Sleep, drive
from journal.models import Step
from journal.settle.context import SettleContext
from journal.settle.quarantine import take_turn

STEP = Step("t", 0, "tool", "pending", "read_only", "k", "{}", None, None, None)


@pytest.fixture
def moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that moves the clock."""
    file = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(file))
    return file


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SettleContext]:
    with Journal(tmp_path / "a.db", agent="a") as journal:
        yield journal.context.settle_context("task")


def waits(context: SettleContext, deaths: int) -> bool:
    """Whether a step with so many deaths has to wait now."""
    return isinstance(next(take_turn(context, STEP, deaths), None), Sleep)


def test_a_second_suspect_waits_until_the_first_has_ended(context: SettleContext) -> None:
    with drive(take_turn(context, STEP, 2)):
        assert waits(context, 2)
        assert waits(replace(context, mode="recover"), 3)
    assert not waits(context, 2)


def test_a_step_that_ended_once_with_its_process_waits_for_nobody(context: SettleContext) -> None:
    with drive(take_turn(context, STEP, 2)):
        assert not waits(context, 0)
        assert not waits(context, 1)


def test_a_suspect_that_fails_gives_its_turn_back(context: SettleContext) -> None:
    with pytest.raises(KeyError), drive(take_turn(context, STEP, 2)):
        raise KeyError
    assert not waits(context, 2)


def test_nobody_waits_longer_than_a_minute_for_a_suspect_that_hangs(context: SettleContext, moved: Path) -> None:
    with drive(take_turn(context, STEP, 2)):
        patient = take_turn(replace(context, max_wait=timedelta(0)), STEP, 2)
        assert isinstance(next(patient), Sleep)
        moved.write_text("59")
        assert isinstance(patient.send(None), Sleep)
        moved.write_text("61")
        with pytest.raises(StopIteration):
            patient.send(None)
        assert waits(context, 2)
    assert not waits(context, 2)


def test_a_stopping_process_begins_no_suspect_that_waited(context: SettleContext) -> None:
    stopping = threading.Event()
    with drive(take_turn(context, STEP, 2)):
        patient = take_turn(replace(context, stopping=stopping.is_set), STEP, 2)
        assert isinstance(next(patient), Sleep)
        stopping.set()
        with pytest.raises(StepWaiting):
            patient.send(None)
