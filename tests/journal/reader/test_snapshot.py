"""A snapshot is one instant of a journal: what is written while it is read is not in it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from journal.reader import Reader, snapshot
from journal.reader.open import read_journal
from journal.reader.snapshot import TaskSnapshot
from tests.journal.rows import BOOT, WHEN, a_boot, a_journal, a_step, a_task, an_attempt, hash_only_table, insert


def _filled(path: Path, agent: sqlite3.Connection) -> None:
    a_journal(path)
    a_boot(agent)
    a_task(agent)
    for index in range(3):
        a_step(agent, index=index)


def test_no_part_of_a_task_is_newer_than_another(path: Path, agent: sqlite3.Connection):
    _filled(path, agent)

    def load(connection: sqlite3.Connection) -> TaskSnapshot:
        def write(statement: str) -> None:
            # Between the task and its steps, as an agent would that works on it.
            if "agent_task_run" in statement:
                an_attempt(agent, index=0, attempt=9)
            if " agent_task " in statement:
                a_step(agent, index=3)
                agent.execute("UPDATE agent_task SET status = 'completed'")

        connection.execute("SELECT 1 FROM agent_boot").fetchall()
        connection.set_trace_callback(write)
        return snapshot.load_task(connection, "t", after=-1, limit=10, most_branches=1, named=())

    found = read_journal(str(path), load)
    assert found.task is not None
    assert (found.task.status, found.task.steps) == ("running", 3)
    assert ([step.step_index for step in found.content.steps], found.content.attempts) == ([0, 1, 2], {})
    later = Reader(path).load_task("t", limit=10)
    assert later.task is not None
    assert (later.task.status, len(later.content.steps)) == ("completed", 4)


def test_branches_stand_behind_their_parents_with_their_own_history(path: Path, agent: sqlite3.Connection):
    _filled(path, agent)
    for task_id, parent in (
        ("t/b", "t"),
        ("t/a", "t"),
        ("t/b/c", "t/b"),
        ("t/b/c/d", "t/b/c"),
        ("t/b/c/d/e", "t/b/c/d"),
    ):
        a_task(agent, task_id, parent_id=parent)
        for index in range(4):
            a_step(agent, task_id, index)
        an_attempt(agent, task_id, 1)
    found = Reader(path).load_task("t", limit=2, most_branches=40)
    assert [(branch.task.task_id, branch.depth) for branch in found.branches] == [
        ("t/b", 1),
        ("t/b/c", 2),
        ("t/b/c/d", 3),
        ("t/a", 1),
    ]
    assert found.more_branches == 1
    assert [len(branch.content.steps) for branch in found.branches] == [2] * 4
    assert all(branch.content.more and list(branch.content.attempts) == [1] for branch in found.branches)
    assert (found.content.last, found.content.more) == (1, True)


def test_branches_past_the_limit_are_counted_and_not_read(path: Path, agent: sqlite3.Connection):
    _filled(path, agent)
    for number in range(7):
        a_task(agent, f"t/{number}", parent_id="t")
    found = Reader(path).load_task("t", limit=2, most_branches=3)
    assert ([branch.task.task_id for branch in found.branches], found.more_branches) == (["t/0", "t/1", "t/2"], 4)


def test_a_later_page_begins_past_its_place_and_knows_the_step_before(path: Path, agent: sqlite3.Connection):
    _filled(path, agent)
    an_attempt(agent, index=0)
    found = Reader(path).load_task("t", after=0, limit=1, most_branches=40)
    assert [step.step_index for step in found.content.steps] == [1]
    assert ([step.step_index for step in found.before.steps], list(found.before.attempts)) == ([0], [0])


def test_a_task_of_another_maker_has_steps_and_nothing_else(path: Path, agent: sqlite3.Connection):
    hash_only_table(agent)
    for index in range(3):
        insert(agent, "agent_step_journal", task_id="t", step_index=index, tool_name="x", status="committed")
    found = Reader(path).load_task("t", after=0, limit=1)
    assert [step.step_index for step in found.content.steps] == [1]
    assert [step.step_index for step in found.before.steps] == [0]
    assert found.boots == ()
    assert Reader(path).load_step("t", 2).step is not None


def test_a_task_or_step_that_is_not_there_is_none(path: Path, agent: sqlite3.Connection):
    _filled(path, agent)
    for task_id in ("none", "\ud800"):
        assert Reader(path).load_task(task_id, limit=1).task is None
        assert Reader(path).load_step(task_id, 0).step is None
    assert Reader(path).load_step("t", 2**70).step is None


def test_an_intent_carries_what_recovery_decides_by(path: Path, agent: sqlite3.Connection):
    _filled(path, agent)
    a_step(agent, index=3, status="pending", output_json=None, profile_json='{"name": "forge"}')
    an_attempt(agent, index=3, attempt=1)
    insert(
        agent, "agent_evidence", task_id="t", step_index=3, attempt=1, asked_at=WHEN, asked_boottime=1.0,
        os_boot_id="os", answer="absent", source="status", revision=BOOT + 9,
    )  # fmt: skip
    (intent,) = Reader(path).load_pending().items
    assert intent == Reader(path).load_intents([("t", 3)])[0]
    assert (intent.step.step_index, intent.task and intent.task.task_id) == (3, "t")
    assert ([one.attempt for one in intent.attempts], [one.answer for one in intent.evidence]) == ([1], ["absent"])
    assert intent.profile_json == '{"name": "forge"}'
