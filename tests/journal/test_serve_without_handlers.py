"""`serve` settles what is due of a task that no handler here runs: a script's, or one whose handler is gone."""

from __future__ import annotations

import logging
import sqlite3
import time
from datetime import timedelta
from typing import Any

import pytest

from journal import StepWaiting, tool
from journal.runtime.serve import Server, run_task
from journal.store.sql import steps
from tests.journal.agent import opened, steps_of
from tests.journal.operator import decide


def looked(server: Server) -> None:
    """What a server does when it looks, done to its end."""
    server._look()
    server._errands.wait_for_all(time.monotonic() + 10)


def scripted(journal: Any, world: Any, task_id: str) -> None:
    with pytest.raises(StepWaiting), journal.task(task_id) as task:
        task.run(world.write, "x")


def handled(journal: Any, world: Any, task_id: str) -> None:
    def gone(task: Any) -> None:
        with task.branch("b") as branch:
            branch.run(world.write, "x")

    journal.handlers["gone"] = gone
    run_task(journal.context, journal.submit("gone", task_id=task_id))
    del journal.handlers["gone"]


@pytest.mark.parametrize(("left", "where"), [(scripted, "t"), (handled, "t/b")])
def test_an_intent_that_falls_due_is_sent_though_no_handler_comes_by(path, world, moved, left, where):
    world.fail = TimeoutError("no answer")
    with opened(path, world, max_wait=0) as journal:
        left(journal, world, "t")
    for hours in range(1, 3):
        # Pauses grow, so that the next one is no matter of luck.
        moved.write_text(str(600 * hours))
        with opened(path, world, max_wait=0) as journal:
            journal.recover()
    world.fail = None
    sent = len(world.calls)
    with opened(path, world, max_wait=0) as journal:
        server = Server(journal.context, 1)
        server._recover()
        looked(server)
        assert (len(world.calls), steps_of(path, where)[0]["status"]) == (sent, "pending")
        moved.write_text("1800")
        looked(server)
        assert steps_of(path, where)[0]["status"] == "committed"
    assert len(world.calls) == sent + 1


@pytest.mark.parametrize(("left", "where"), [(scripted, "t"), (handled, "t/b")])
def test_what_only_the_clock_holds_is_sent_once_it_has_caught_up(path, world, moved, left, where):
    world.fail = TimeoutError("no answer")
    moved.write_text("100")
    with opened(path, world, max_wait=0) as journal:
        left(journal, world, "t")
    world.fail = None
    moved.write_text("0")
    with opened(path, world, max_wait=0) as journal:
        server = Server(journal.context, 1)
        server._recover()
        looked(server)
        assert steps_of(path, where)[0]["hold_reason"] == "clock_suspect"
        moved.write_text("1000")
        looked(server)
        assert steps_of(path, where)[0]["status"] == "committed"
    assert len(world.calls) == 2


def test_what_meets_a_full_disk_is_settled_after_a_pause_once_there_is_room(path, world, moved):
    world.fail = TimeoutError("no answer")
    with opened(path, world, max_wait=0) as journal:
        scripted(journal, world, "t")
        moved.write_text("600")
        world.fail = None
        server = Server(journal.context, 1)
        # As a full disk answers, also to the next look; SQLite refuses every write.
        journal.store._connection.execute("PRAGMA query_only = 1")
        looked(server)
        assert steps_of(path, "t")[0]["status"] == "pending"
        journal.store._connection.execute("PRAGMA query_only = 0")
        looked(server)
        assert steps_of(path, "t")[0]["status"] == "pending"
        server._full_until = time.monotonic()
        looked(server)
        assert steps_of(path, "t")[0]["status"] == "committed"
    assert len(world.calls) == 2


def test_what_only_a_run_of_its_task_can_do_is_looked_at_once(path, world, caplog):
    caplog.set_level(logging.INFO, "journal")

    @tool(effect="mutating", status=lambda call: world.asked.append(call.key), horizon=timedelta(0))
    def leave(name: str) -> None:
        raise SystemExit

    with opened(path, world) as journal:
        journal.tools["leave"] = leave
        with pytest.raises(SystemExit), journal.task("t") as task:
            task.run(leave, "x")
        long_ago = "UPDATE agent_step_journal SET next_attempt_at = '2020-01-01T00:00:00.000000Z'"
        journal.store.write(lambda tx: tx.execute(long_ago), sync=False)
        server = Server(journal.context, 1)
        looked(server)
        looked(server)
    assert (len(world.asked), caplog.text.count("recovered: ")) == (1, 1)
    assert steps_of(path, "t")[0]["next_attempt_at"].startswith("2020")


def test_a_message_that_was_taken_before_the_journal_could_not_be_read_is_carried_out_after(path, world, monkeypatch):
    world.fail = TimeoutError("no answer")
    with opened(path, world, max_wait=0) as journal:
        scripted(journal, world, "t")
        journal.store.write(lambda tx: steps.hold_step(tx, "t", 0, "quarantined", "because"), sync=False)
    world.fail = None
    sent = len(world.calls)
    decide(path, "replay")
    with opened(path, world) as journal:
        server = Server(journal.context, 1)
        root, failures = server._root, [sqlite3.OperationalError("unable to open database file")]

        def once_unreadable(task_id: str) -> str:
            if failures:
                raise failures.pop()
            return root(task_id)

        monkeypatch.setattr(server, "_root", once_unreadable)
        looked(server)
        assert (failures, len(world.calls)) == ([], sent)
        looked(server)
    assert steps_of(path, "t")[0]["status"] == "committed"
    assert len(world.calls) == sent + 1
