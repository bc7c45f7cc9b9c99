"""The clock that tests move: recorded on each boot, and refused in a sentence where it is none."""

from __future__ import annotations

import pytest

from journal import clock
from journal.reader import Reader
from tests.journal.agent import World, opened


@pytest.fixture
def moved(tmp_path, monkeypatch):
    file = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(file))
    return file


def test_each_boot_records_how_far_its_clock_was_moved(path, moved):
    for text in ("-3600", "0", "7200.5"):
        moved.write_text(text)
        opened(path, World()).close()
    assert [boot.clock_offset for boot in Reader(path).boots()] == [-3600.0, 0.0, 7200.5]


def test_a_clock_that_is_not_there_yet_or_empty_moves_nothing(moved):
    assert clock.offset() == 0.0
    moved.write_text("\n")
    assert clock.offset() == 0.0


def test_a_clock_that_is_no_number_is_named_with_what_it_holds(path, moved):
    moved.write_text("tomorrow")
    with pytest.raises(ValueError, match=r"^STEPKEEPER_TEST_CLOCK: .*clock holds 'tomorrow', not a number of seconds"):
        opened(path, World())
    # The lock was given back.
    moved.write_text("0")
    opened(path, World()).close()
