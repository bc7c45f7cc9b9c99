"""Branches have steps of their own, and their task ends only when they do."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from journal import OutcomeUnknown, StepHeld, StepWaiting, TaskClosed, UnorderedStep, UsageError, tool
from journal.models import WaitReason
from tests.journal.agent import opened, rows, task_row, wait_of


def test_another_thread_is_told_to_open_a_branch(path, world):
    with opened(path, world) as journal, journal.task("t") as task:
        caught: list[BaseException] = []

        def other() -> None:
            try:
                task.run(world.read, 1)
            except BaseException as error:
                caught.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert isinstance(caught[0], UnorderedStep)
        assert "task.branch(name)" in str(caught[0])
        with pytest.raises(TaskClosed, match="another thread"):
            task.run(world.read, 2)
    assert world.calls == []
    assert task_row(path, "t")["status"] == "failed"


def test_branches_have_steps_of_their_own_and_run_side_by_side(path, world):
    def work(task: Any, name: str) -> None:
        with task.branch(name) as child:
            child.run(world.read, 1)
            child.run(world.write, name)

    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            threads = [threading.Thread(target=work, args=(task, name)) for name in ("a", "b", "c")]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            task.run(world.read, 9)
    assert len(world.calls) == 7
    children = rows(path, "SELECT * FROM agent_task WHERE parent_id = 't' ORDER BY task_id")
    assert [(row["task_id"], row["status"]) for row in children] == [
        ("t/a", "completed"),
        ("t/b", "completed"),
        ("t/c", "completed"),
    ]


def test_a_branch_name_is_used_once_per_run(path, world):
    with opened(path, world) as journal, journal.task("t") as task:
        task.branch("a").leave(None)
        for name in ("a", ""):
            with pytest.raises(UsageError, match="used once"):
                task.branch(name)
        with pytest.raises(UsageError, match="surrogate"):
            task.branch("\ud83d")


@pytest.mark.accept
def test_a_branch_and_a_task_of_its_own_never_share_an_id(path, world):
    with opened(path, world) as journal:
        journal.task("t/a").leave(None)
        with journal.task("t") as task:
            with pytest.raises(UsageError, match="a task of its own"):
                task.branch("a")
            with task.branch("b") as child, child.branch("c"):
                pass
        with pytest.raises(UsageError, match="a branch of 't'"):
            journal.task("t/b")
        with journal.task("t/b/c/d") as other:
            other.run(world.read, 1)
    assert task_row(path, "t/b/c")["parent_id"] == "t/b"
    assert task_row(path, "t/b/c/d")["parent_id"] is None


def test_a_task_completes_only_when_no_branch_has_a_pending_step(path, world):
    world.fail = RuntimeError("lost")
    with opened(path, world) as journal, journal.task("t") as task:
        with pytest.raises(OutcomeUnknown), task.branch("a") as child:
            child.run(world.blind, "x")
        with pytest.raises(TaskClosed, match="no further step"):
            task.run(world.read, 1)
    assert (task_row(path, "t")["status"], task_row(path, "t/a")["status"]) == ("waiting", "waiting")
    assert wait_of(path, "t") == WaitReason("held", "t/a", 0, "unknown_outcome")


def test_a_task_whose_branch_is_due_later_is_looked_at_again_by_itself(path, world):
    def down(call: Any) -> Any:
        raise ConnectionError("down")

    @tool(effect="mutating", status=down)
    def send(name: str) -> str:
        raise TimeoutError("lost")

    with (
        opened(path, world, max_wait=0) as journal,
        journal.task("t") as task,
        pytest.raises(StepWaiting),
        task.branch("a") as child,
    ):
        child.run(send, "x")
    row = task_row(path, "t")
    assert (row["status"], wait_of(path, "t")) == ("waiting", WaitReason("due", "t/a", 0))
    assert row["next_attempt_at"] is not None


def test_a_held_branch_does_not_hide_one_that_is_due(path, world):
    def down(call: Any) -> Any:
        raise ConnectionError("down")

    @tool(effect="mutating", status=down)
    def send(name: str) -> str:
        raise TimeoutError("lost")

    world.fail = TimeoutError("lost")
    with opened(path, world, max_wait=0) as journal, journal.task("t") as task:
        with pytest.raises(OutcomeUnknown), task.branch("a") as child:
            child.run(world.blind, "x")
        with pytest.raises(StepWaiting), task.branch("b") as child:
            child.run(send, "x")
    row = task_row(path, "t")
    assert (row["status"], wait_of(path, "t")) == ("waiting", WaitReason("due", "t/b", 0))
    assert row["next_attempt_at"] is not None


def test_a_handler_that_fails_beside_an_open_step_does_not_end_its_task(path, world):
    def handler(task: Any) -> None:
        try:
            with task.branch("a") as child:
                child.run(world.blind, "x")
        except SystemExit:
            raise ValueError("the handler's own") from None

    world.fail = SystemExit()
    with opened(path, world) as journal, pytest.raises(ValueError, match="own"), journal.task("t") as task:
        handler(task)
    row = task_row(path, "t")
    assert (row["status"], wait_of(path, "t")) == ("waiting", WaitReason("unresolved", "t/a", 0))


def test_a_task_whose_step_is_held_opens_no_branch(path, world):
    world.fail = TimeoutError("lost")
    for expected in (OutcomeUnknown, StepHeld):
        with opened(path, world) as journal, journal.task("t") as task:
            with pytest.raises(expected):
                task.run(world.blind, "first")
            with pytest.raises(TaskClosed, match="no further step"):
                task.branch("fallback")
    assert world.calls == [("blind", "first")]
    assert [row["task_id"] for row in rows(path, "SELECT task_id FROM agent_task")] == ["t"]
    assert task_row(path, "t")["status"] == "waiting"


def test_a_task_that_was_left_opens_no_branch(path, world):
    with opened(path, world) as journal:
        with journal.task("t") as task:
            task.run(world.read, 1)
        with pytest.raises(TaskClosed, match="it was left"):
            task.branch("late")
    assert task_row(path, "t")["status"] == "completed"
