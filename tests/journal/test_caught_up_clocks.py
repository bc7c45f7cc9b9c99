"""What a clock holds that went back goes on by itself once the time has caught up; what waits for a person stays so."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import pytest

from journal import Journal, StepHeld, clock
from journal.models import WaitReason
from journal.runtime.serve import run_task
from journal.store.sql import steps, tasks
from tests.journal.agent import World, opened, serving, soon, status, steps_of, task_row, wait_of
from tests.journal.operator import decide, outcome


@pytest.fixture
def clock_at(clock_at):
    """It begins a hundred seconds ahead."""
    clock_at(100)
    return clock_at


def agent(path: Any, world: World, work: Any = None) -> Journal:
    return opened(path, world, handlers={"work": work or (lambda task: task.run(world.write, "x"))})


@pytest.mark.parametrize("reason", ["unknown_outcome", "quarantined", "not_applied"])
def test_what_waits_for_a_person_keeps_its_reason_and_can_be_decided(path, world, clock_at, reason):
    world.fail = TimeoutError("no answer")
    with agent(path, world, lambda task: task.run(world.blind, "x")) as journal:
        run_task(journal.context, journal.submit("work", task_id="t"))
        journal.store.write(lambda tx: steps.hold_step(tx, "t", 0, reason, "because"), sync=False)
    clock_at(0)
    with agent(path, world) as journal:
        assert journal.recover().held == 1
        step = steps_of(path, "t")[0]
        assert (step["hold_reason"], step["hold_detail"]) == (reason, "because")
        assert task_row(path, "t")["next_attempt_at"] is None
        message = decide(path, "abandon")
        journal.context.apply_inbox()
    assert outcome(path, message) == "applied"


def _in_a_branch(world: World, task: Any) -> Any:
    with task.branch("b") as branch:
        return branch.run(world.blind, "x")


WORKS = [("t", lambda world, task: task.run(world.blind, "x")), ("t/b", _in_a_branch)]


@pytest.mark.parametrize(("where", "does"), WORKS, ids=["root", "branch"])
def test_what_a_start_would_have_mended_is_decided_anew_after_the_clock_was(path, world, clock_at, where, does):
    def work(task: Any) -> Any:
        return does(world, task)

    world.fail = TimeoutError("no answer")
    with agent(path, world, work) as journal:
        run_task(journal.context, journal.submit("work", task_id="t"))
        journal.store.write(lambda tx: steps.hold_step(tx, where, 0, "tool_missing", "not there"), sync=False)
    assert task_row(path, "t")["next_attempt_at"] is None
    clock_at(0)
    with agent(path, world, work) as journal, serving(journal):
        soon(lambda: steps_of(path, where)[0]["hold_reason"] == "clock_suspect")
        clock_at(600)
        soon(lambda: steps_of(path, where)[0]["hold_reason"] == "unknown_outcome")
    assert world.names() == ["blind"]


def test_a_handler_that_leaves_after_the_clock_was_mended_runs_again_at_once(path, world, clock_at):
    def work(task: Any) -> Any:
        try:
            return task.run(world.write, "x")
        finally:
            clock_at(200)

    with agent(path, world, work) as journal:
        record = journal.submit("work", task_id="t")
        clock_at(0)
        run_task(journal.context, record)
        assert (status(path, "t"), steps_of(path, "t")[0]["hold_reason"]) == ("waiting", "clock_suspect")
        with serving(journal):
            soon(lambda: status(path, "t") == "completed")
    assert world.names() == ["write"]


def test_a_root_that_went_on_without_a_held_branch_runs_again_once_the_time_has_caught_up(path, world, clock_at):
    def work(task: Any) -> str:
        try:
            with task.branch("b") as branch:
                branch.run(world.write, "x")
        except StepHeld:
            return "without it"
        return "with it"

    with agent(path, world, work) as journal:
        journal.submit("work", task_id="t")
        clock_at(0)
        with serving(journal):
            soon(lambda: status(path, "t") == "waiting")
            assert steps_of(path, "t/b")[0]["hold_reason"] == "clock_suspect"
            clock_at(101)
            soon(lambda: status(path, "t") == "completed")
    assert task_row(path, "t")["output_json"] == '"with it"'


@pytest.mark.parametrize("swallows", [True, False])
def test_a_branch_that_a_person_must_decide_hides_none_that_the_clock_alone_holds(path, world, clock_at, swallows):
    def work(task: Any) -> None:
        found = []
        for name, tool in (("a", world.blind), ("b", world.write)):
            try:
                with task.branch(name) as branch:
                    branch.run(tool, "x")
            except StepHeld as error:
                found.append(error)
        if not swallows:
            raise found[0]

    world.fail = TimeoutError("no answer")
    with agent(path, world) as journal, pytest.raises(StepHeld), journal.task("t") as task, task.branch("a") as branch:
        branch.run(world.blind, "x")
    clock_at(0)
    with agent(path, world) as journal, contextlib.suppress(StepHeld), journal.task("t") as task:
        work(task)
    held = [steps_of(path, f"t/{name}")[0]["hold_reason"] for name in "ab"]
    assert held == ["unknown_outcome", "clock_suspect"]
    assert task_row(path, "t")["next_attempt_at"] is not None


def test_what_the_clock_held_and_no_run_comes_to_is_looked_at_later_and_not_again_and_again(path, world, clock_at):
    def before(task: Any) -> Any:
        task.run(world.read, 1)
        clock_at(0)
        return task.run(world.blind, "x")

    with agent(path, world, before) as journal:
        run_task(journal.context, journal.submit("work", task_id="t"))
    assert steps_of(path, "t")[1]["hold_reason"] == "clock_suspect"
    clock_at(200)
    with agent(path, world, lambda task: task.run(world.read, 2)) as journal:
        task = journal.store.read(lambda tx: tasks.find_task(tx, "t"))
        assert task is not None
        run_task(journal.context, task)
    found = task_row(path, "t")
    assert found["wait_kind"] == "diverged"
    assert clock.parse(found["next_attempt_at"]) - clock.wall() > timedelta(seconds=20)


def test_a_task_beside_a_step_that_is_due_later_waits_as_long(path, world, monkeypatch):
    monkeypatch.setattr("journal.runtime.task_end._SETTLE_LATER", timedelta(0))
    world.fail = TimeoutError("no answer")

    def due(task: Any) -> None:
        with task.branch("b") as branch:
            branch.run(world.write, "x")

    def held(task: Any) -> None:
        with task.branch("a") as branch:
            branch.run(world.blind, "x")

    with opened(path, world, handlers={"work": due}, max_wait=0) as journal:
        record = journal.submit("work", task_id="t")
        run_task(journal.context, record)
        journal.handlers["work"] = held
        run_task(journal.context, record)
    [intent], found = steps_of(path, "t/b"), task_row(path, "t")
    assert wait_of(path, "t") == WaitReason("held", "t/a", 0, "unknown_outcome")
    assert found["next_attempt_at"] == intent["next_attempt_at"]
