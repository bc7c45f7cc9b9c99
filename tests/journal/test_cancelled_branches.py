"""A cancelled task ends its branches too: what is a branch of it, however deep, acts and asks no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from journal import Journal, TaskCancelled
from journal.inbox import mailbox
from tests.journal.agent import opened, rows, steps_of


def cancel(path: Path, journal: Journal, task_id: str) -> None:
    mailbox.post_message(path, {"kind": "cancel", "task_id": task_id, "actor": "ann", "reason": "wrong one"})
    journal.context.apply_inbox()


def test_a_cancelled_task_opens_no_further_branch(path, world):
    with opened(path, world) as journal:
        task = journal.task("t")
        task.run(world.blind, "before")
        cancel(path, journal, "t")
        with pytest.raises(TaskCancelled, match="wrong one"):
            task.branch("a")
        task.leave(None)
    assert world.names() == ["blind"]
    assert rows(path, "SELECT task_id, status FROM agent_task") == [{"task_id": "t", "status": "cancelled"}]


@pytest.mark.parametrize("step", ["blind", "read", "ask", "branch"])
@pytest.mark.parametrize("cancelled", ["t", "t/a"])
def test_a_completed_branch_of_a_cancelled_task_takes_no_further_step(path, world, step, cancelled):
    acts = {
        "blind": lambda child: child.run(world.blind, "x"),
        "read": lambda child: child.run(world.read, 1),
        "ask": lambda child: child.ask(world.model, "q"),
        "branch": lambda child: child.branch("c"),
    }

    def work(journal: Journal, again: bool) -> None:
        with journal.task("t") as task, task.branch("a") as child, child.branch("b") as grandchild:
            grandchild.run(world.write, "b")
            if again:
                # Served from the journal so far, the innermost is still completed.
                cancel(path, journal, cancelled)
                with pytest.raises(TaskCancelled, match="wrong one"):
                    acts[step](grandchild)
            grandchild.leave(None)
            raise SystemExit

    for again in (False, True):
        with opened(path, world) as journal, pytest.raises(SystemExit):
            work(journal, again)
    assert world.names() == ["write"]
    assert rows(path, "SELECT task_id, status FROM agent_task WHERE task_id IN (?, 't/a/b')", cancelled) == [
        {"task_id": cancelled, "status": "cancelled"},
        {"task_id": "t/a/b", "status": "completed"},
    ]
    assert len(steps_of(path, "t/a/b")) == 1


def test_recovery_sends_no_intent_of_a_branch_of_a_cancelled_task(path, world):
    world.fail = SystemExit()
    with (
        opened(path, world) as journal,
        pytest.raises(SystemExit),
        journal.task("t") as task,
        task.branch("a") as child,
    ):
        child.run(world.write, "x")
    world.fail = None
    with opened(path, world) as journal:
        # As an earlier version left it: its branches opened after the cancellation were not cancelled.
        end = "UPDATE agent_task SET status = 'cancelled', cancel_reason = 'no' WHERE task_id = 't'"
        journal.store.write(lambda tx: tx.execute(end), sync=False)
        report = journal.recover()
        assert (report.left, report.settled) == (1, 0)
        assert "Task t: it was cancelled: no" in report.lines[-1]
    assert world.names() == ["write"]
    assert steps_of(path, "t/a")[0]["status"] == "pending"
