"""Tailing a journal by revision: nothing is lost, nothing is torn apart."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from journal.reader import Reader
from tests.journal.rows import BOOT, a_boot, a_journal, a_step, a_task, an_attempt


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return a_journal(tmp_path / "j.db")


def test_only_rows_past_the_revision_come_back_in_its_order(path: Path, agent: sqlite3.Connection):
    a_boot(agent)
    a_task(agent, revision=BOOT + 1)
    for index in range(5):
        a_step(agent, index=index, revision=BOOT + 10 - index)
    changes = Reader(path).changes(BOOT + 7)
    assert [step.step_index for step in changes.steps] == [2, 1, 0]
    assert (changes.tasks, changes.boots, changes.highest_revision, changes.more) == ((), (), BOOT + 10, False)
    again = Reader(path).changes(changes.highest_revision)
    assert (again.steps, again.highest_revision, again.more) == ((), BOOT + 10, False)


def test_a_tail_in_small_pieces_sees_every_row_once(path: Path, agent: sqlite3.Connection):
    for index in range(40):
        a_task(agent, f"t{index}", revision=BOOT + index * 3)
        a_step(agent, f"t{index}", revision=BOOT + index * 3 + 1)
        an_attempt(agent, f"t{index}", revision=BOOT + index * 3 + 1)
    reader, since, pieces = Reader(path), 0, 0
    steps: list[str] = []
    tasks: list[str] = []
    attempts: list[str] = []
    while True:
        changes = reader.changes(since, limit=7)
        pieces += 1
        assert changes.highest_revision > since
        since = changes.highest_revision
        steps += [step.task_id for step in changes.steps]
        tasks += [task.task_id for task in changes.tasks]
        attempts += [attempt.task_id for attempt in changes.attempts]
        if not changes.more:
            break
    assert steps == tasks == attempts == [f"t{index}" for index in range(40)]
    assert pieces >= 6


def test_rows_of_one_revision_stay_together_whatever_the_limit(path: Path, agent: sqlite3.Connection):
    for index in range(9):
        a_step(agent, index=index, revision=BOOT + 1)
    a_step(agent, index=9, revision=BOOT + 2)
    first = Reader(path).changes(0, limit=3)
    assert (len(first.steps), first.highest_revision, first.more) == (9, BOOT + 1, True)
    second = Reader(path).changes(first.highest_revision, limit=3)
    assert ([step.step_index for step in second.steps], second.more) == ([9], False)
