"""Law 8: under a clock that stands before the newest time in the journal, no machine sends."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from typing import Any

import pytest

from journal import OutcomeUnknown, StepHeld, StepWaiting, clock, tool
from journal.effects import Read, Sleep
from journal.inbox import mailbox
from journal.settle import settle
from journal.settle.context import load_intent
from journal.store.sql import model_calls, steps, tasks
from tests.journal.agent import opened, rows, serving, soon, status, steps_of

DAY = 86400


def held_reason(path, task_id: str) -> Any:
    return steps_of(path, task_id)[0]["hold_reason"]


def test_a_first_dispatch_waits_for_a_clock_that_went_back(path, world, clock_at):
    clock_at(10 * DAY)
    with opened(path, world) as journal, journal.task("before") as task:
        task.run(world.read, "x")
    world.calls.clear()
    clock_at(0)
    with opened(path, world) as journal:
        with pytest.raises(StepHeld) as held, journal.task("t") as task:
            task.run(world.write, "x")
        assert held.value.reason == "clock_suspect"
        assert not isinstance(held.value, OutcomeUnknown)  # nothing of it can have arrived
    assert world.calls == []
    assert rows(path, "SELECT * FROM agent_step_attempt WHERE task_id = 't'") == []
    clock_at(10 * DAY + 60)
    with opened(path, world) as journal:
        journal.recover()
        with journal.task("t") as task:
            task.run(world.write, "x")
    assert len(world.calls) == 1


def test_rows_written_under_an_earlier_clock_do_not_hide_the_newest_time(path, world, clock_at):
    with opened(path, world) as journal:
        clock_at(10 * DAY)  # while the process runs
        with journal.task("ahead") as task:
            task.run(world.write, "x")
        clock_at(0)
        with journal.task("behind") as task:
            task.run(world.read, "y")
    for days in (0, 5):
        clock_at(days * DAY)
        with opened(path, world) as journal:
            newest = journal.store.read(lambda tx: tx.newest)
            assert clock.parse(newest) > clock.wall() + timedelta(days=4)
            with journal.task(f"more-{days}") as task:
                task.run(world.read, "z")


def test_a_served_task_goes_on_by_itself_once_the_time_has_caught_up(path, world, clock_at):
    handlers = {"look": lambda task: task.run(world.read, "x"), "work": lambda task: task.run(world.write, "x")}
    clock_at(60)
    with opened(path, world, handlers=handlers) as journal, serving(journal):
        journal.submit("look", task_id="before")
        soon(lambda: status(path, "before") == "completed")
        clock_at(0)
        journal.submit("work", task_id="t")
        soon(lambda: status(path, "t") == "waiting")
        assert held_reason(path, "t") == "clock_suspect"
        clock_at(61)
        soon(lambda: status(path, "t") == "completed")
    assert world.names() == ["read", "write"]


def test_a_wait_for_a_clock_that_was_set_back_ends_where_it_is_set_further_back_or_the_process_stops(
    path, world, clock_at
):
    clock_at(0)
    with opened(path, world, max_wait=0) as journal:
        world.fail = TimeoutError("lost")
        with pytest.raises(StepWaiting), journal.task("t") as task:
            task.run(world.write, "x")
        clock_at(-0.95)
        run = settle.settle_step(journal.context.settle_context("recover"), "t", 0)
        look_first = next(run)
        assert isinstance(look_first, Read)
        sleep = run.send(look_first.perform())
        assert isinstance(sleep, Sleep)
        assert not sleep.woken()
        clock_at(-3600)
        assert sleep.woken()
        clock_at(-0.95)
        journal.context.stopping = True
        assert sleep.woken()
        look_again = run.send(None)
        assert isinstance(look_again, Read)
        with pytest.raises(StepWaiting):
            run.send(look_again.perform())


def test_what_was_written_last_carries_the_newest_time_whichever_row_is_last(path, world, clock_at):
    with opened(path, world) as journal:
        with journal.task("long") as task:
            child = task.branch("late")
            task.run(world.read, 1)
            with child:
                child.run(world.read, 2)
        with journal.task("other") as task:
            task.run(world.read, 3)
        clock_at(3600)
        journal.store.write(lambda tx: steps.note_drift(tx, "long", 0, "{}"), sync=False)
    clock_at(0)
    with opened(path, world) as journal:
        assert clock.parse(journal.store.read(lambda tx: tx.newest)) > clock.wall() + timedelta(minutes=50)


@pytest.mark.parametrize(
    "change",
    [
        lambda tx: steps.note_drift(tx, "t", 0, "{}"),
        lambda tx: steps.mark_diverged(tx, "t", 0, "$.x", "$.x"),
        lambda tx: steps.count_start(tx, "pending", 0),
        lambda tx: tasks.submit_task(tx, "new", "work", "{}", "triage"),
        lambda tx: tasks.start_task(tx, "u", agent="triage"),
        lambda tx: model_calls.open_call(tx, "t", 0),
    ],
    ids=["drift", "diverged", "start", "submitted", "run", "model"],
)
def test_a_killed_process_leaves_the_time_of_its_last_change_whatever_that_was(path, world, clock_at, change):
    world.fail = TimeoutError("no answer")
    with opened(path, world, max_wait=0) as journal:
        with journal.task("t") as task:
            task.run(world.read, 1)
        with pytest.raises(StepWaiting), journal.task("pending") as task:
            task.run(world.write, 1)
        clock_at(3600)
        journal.store.write(change, sync=False)
        with sqlite3.connect(path) as copied, sqlite3.connect(path.with_name("killed.db")) as copy:
            copied.backup(copy)
    clock_at(0)
    with opened(path.with_name("killed.db"), world) as journal:
        newest = clock.parse(journal.store.read(lambda tx: tx.newest))
    assert newest > clock.wall() + timedelta(minutes=50)


def test_the_mark_is_given_only_while_the_judgement_stands(path, world, clock_at):
    world.fail = TimeoutError("no answer")
    with opened(path, world, max_wait=0) as journal:
        with pytest.raises(StepWaiting), journal.task("t") as task:
            task.run(world.write, "x")
        clock_at(600)
        seen = journal.store.read(lambda tx: load_intent(tx, "t", 0))
        clock_at(25 * 3600)
        assert journal.store.write(lambda tx: settle._mark(tx, seen, {}), sync=False) is None
        clock_at(25 * 3600 - 1)
    assert [row["attempt"] for row in rows(path, "SELECT attempt FROM agent_step_attempt")] == [1]


def test_a_clock_set_back_by_a_moment_delays_a_dispatch_and_holds_nothing(path, world, clock_at):
    clock_at(0.4)
    with opened(path, world) as journal:
        with journal.task("before") as task:
            task.run(world.read, "x")
        clock_at(0)
        with journal.task("t") as task:
            task.run(world.write, "x")
    assert steps_of(path, "t")[0]["status"] == "committed"
    assert held_reason(path, "t") is None


def test_an_answer_that_claims_to_come_from_the_future_is_set_aside(held, world):
    later = clock.moment()
    body = {"kind": "evidence", "task_id": "t", "step_index": 0, "attempt": 1, "answer": "absent"}
    asked = {"asked_at": "9999-01-01T00:00:00.000000Z", "asked_boottime": later.boot, "os_boot_id": later.os_boot_id}
    mailbox.post_message(held, body | asked)
    with opened(held, world) as journal:
        report = journal.recover()
        assert journal.store.read(lambda tx: tx.newest) < "9999"
    assert any("not in the past" in line for line in report.lines)
    assert rows(held, "SELECT * FROM agent_evidence") == []


def test_a_wrong_clock_stops_no_reading_and_no_tool_that_changes_nothing(path, world, clock_at):
    clock_at(DAY)
    with opened(path, world) as journal, journal.task("before") as task:
        task.run(world.read, "x")
    clock_at(0)

    @tool(effect="read_only")
    def look() -> int:
        return 7

    with opened(path, world) as journal, journal.task("t") as task:
        assert task.run(look) == 7
