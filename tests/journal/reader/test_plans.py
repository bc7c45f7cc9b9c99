"""What a page shows costs what it shows: no statement of a reader walks through a table of the journal."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from journal.reader import Reader, changes, native
from journal.reader.open import read_journal
from tests.journal.rows import BOOT, a_boot, a_journal, a_step, a_task, an_attempt

QUESTIONS: dict[str, Callable[[sqlite3.Connection], object]] = {
    "list_tasks": lambda c: native.list_tasks(c, after=None, limit=10, status=None, text=None),
    "find_task": lambda c: native.find_task(c, "t", cap=1000),
    "find_tasks": lambda c: native.find_tasks(c, ["t", "t2", "none"]),
    "list_branches": lambda c: native.list_branches(c, ["t", "t2"], limit=10),
    "list_runs": lambda c: native.list_runs(c, ["t", "t2"], limit=10),
    "list_boots": lambda c: native.list_boots(c, limit=10),
    "list_steps": lambda c: native.list_steps(c, "t", after=0, limit=10),
    "find_start_of_newest": lambda c: native.find_start_of_newest(c, "t", limit=2),
    "find_steps": lambda c: native.find_steps(c, [("t", 0), ("t", 1)]),
    "find_step": lambda c: native.find_step(c, "t", 1, cap=1000),
    "list_pending": lambda c: native.list_pending(c, after=native.list_pending(c, limit=1).next_cursor, limit=1),
    "list_diverged": lambda c: native.list_diverged(c, limit=10),
    "find_next_due": native.find_next_due,
    "find_profiles": lambda c: native.find_profiles(c, [("t", 0), ("t", 1)]),
    "find_request": lambda c: native.find_request(c, "t", 0, cap=1000),
    "find_sent_marks": lambda c: native.find_sent_marks(c, "t", 0, 1),
    "read_stored_bytes": lambda c: [native.read_stored_bytes(c, "t", 0, name) for name in ("output", "body")],
    "list_attempts": lambda c: [native.list_attempts(c, "t", steps) for steps in (None, 0, range(3))],
    "list_evidence": lambda c: [native.list_evidence(c, "t", steps) for steps in (None, 0, range(3))],
    "list_decisions": lambda c: [native.list_decisions(c, "t", steps) for steps in (None, 0, range(3))],
    "list_model_calls": lambda c: [native.list_model_calls(c, "t", steps) for steps in (None, 0, range(3))],
    "find_hosts": lambda c: native.find_hosts(c, [("t", 0), ("t2", 1)]),
    "find_attempts": lambda c: native.find_attempts(c, [("t", 0, 1), ("t2", 1, 1)]),
    "find_evidence": lambda c: native.find_evidence(c, [("t", 0, 1), ("t2", 1, 1)]),
    "find_decisions": lambda c: native.find_decisions(c, [("t", 0, 1), ("t2", 1, 1)]),
    "find_model_calls": lambda c: native.find_model_calls(c, [("t", 0, 1), ("t2", 1, 1)]),
    "list_first_steps": lambda c: native.list_first_steps(c, ["t", "t2"], limit=2),
    "find_decision": lambda c: native.find_decision(c, "m"),
    "read_changes": lambda c: changes.read_changes(c, BOOT, limit=10),
}
# Walks that end with what they show: made-up rows, the few boots, and the pending or unfinished rows by an index that
# holds nothing else. The list of tasks goes down the row ids from the newest.
_SHORT_WALKS = re.compile(r"SCAN ((\d+ )?CONSTANT ROWS?|wanted|agent_boot|.* INDEX (step_pending\w*|task_unfinished))$")
_LISTS = {"list_tasks": "SCAN t"}


@pytest.fixture
def path(path: Path, agent: sqlite3.Connection) -> Path:
    a_journal(path)
    a_boot(agent)
    for task_id in ("t", "t2"):
        a_task(agent, task_id, parent_id=None if task_id == "t" else "t")
        for index in range(3):
            a_step(agent, task_id, index, status="pending" if index else "committed", output_json=None)
    an_attempt(agent)
    return path


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_statement_walks_through_a_table(path: Path, name: str):
    def plans(connection: sqlite3.Connection) -> list[str]:
        asked: list[str] = []
        connection.set_trace_callback(asked.append)
        QUESTIONS[name](connection)
        connection.set_trace_callback(None)
        assert asked
        return [str(row[3]) for sql in asked for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]

    walks = {step for step in read_journal(str(path), plans) if step.startswith("SCAN")}
    assert {walk for walk in walks if not _SHORT_WALKS.match(walk)} - {_LISTS.get(name)} == set()


def test_every_question_about_our_own_journals_has_its_plan_looked_at():
    asking = {name for name in vars(native) if name.startswith(("list_", "find_", "read_stored"))}
    assert asking <= set(QUESTIONS)


def test_a_task_costs_the_same_however_many_steps_of_others_are_pending(path: Path, agent: sqlite3.Connection):
    def work(connection: sqlite3.Connection) -> int:
        count = 0

        def tick() -> int:
            nonlocal count
            count += 1
            return 0

        connection.set_progress_handler(tick, 100)
        native.find_task(connection, "t", cap=None)
        return count

    before = read_journal(str(path), work)
    agent.execute("BEGIN")
    for number in range(3000):
        a_step(agent, f"other{number // 20}", number % 20, status="pending", output_json=None)
    agent.execute("COMMIT")
    assert read_journal(str(path), work) == before
    found = Reader(path).task("t")
    assert found is not None
    assert found.pending == 2


def test_pending_steps_are_walked_in_parts_that_lose_none(path: Path, agent: sqlite3.Connection):
    for number in range(25):
        a_step(agent, f"other{number // 3}", number % 3, status="pending", updated_at=f"2026-11-0{1 + number % 3}")
    seen: list[tuple[str, int]] = []
    cursor: str | None = None
    while True:
        page = Reader(path).load_pending(after=cursor, limit=7)
        seen += [(one.step.task_id, one.step.step_index) for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 29
    assert seen == [(step.task_id, step.step_index) for step in Reader(path).pending()]
