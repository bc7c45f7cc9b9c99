"""A handler that SystemExit or a cancellation ends, in a process that goes on: run again, each time a little later."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from journal import Journal, StepWaiting, clock, tool
from journal.models import WaitReason
from tests.journal.agent import opened, rows, serving, soon, steps_of, task_row, wait_of


def leaves_by_exit(task: Any) -> None:
    sys.exit(1)


async def is_cancelled(task: Any) -> None:
    raise asyncio.CancelledError


async def exits_in_a_group(task: Any) -> None:
    async def leave() -> None:
        sys.exit(1)

    async with asyncio.TaskGroup() as group:
        group.create_task(leave())


@pytest.mark.parametrize(
    ("handler", "name"),
    [(leaves_by_exit, "SystemExit"), (is_cancelled, "CancelledError"), (exits_in_a_group, "SystemExit")],
)
def test_a_handler_that_is_broken_off_runs_again_after_a_pause_that_grows(path, world, handler, name):
    seen: dict[str, Any] = {}

    def waits() -> bool:
        seen.update(task_row(path, "t"))
        return bool(seen["status"] == "waiting")

    with opened(path, world, handlers={"h": handler}) as journal:
        journal.submit("h", task_id="t")
        with serving(journal):
            soon(waits)
    assert wait_of(path, "t") == WaitReason("broken_off", detail=name)
    assert seen["next_attempt_at"] > seen["updated_at"]
    # What was broken off many times in a row waits for minutes, also in a new boot.
    with opened(path, world, handlers={"h": handler}) as journal:
        journal.store.write(
            lambda tx: [
                tx.execute(
                    "INSERT INTO agent_task_run (task_id, run, boot, started_at, ended, revision)"
                    " VALUES ('t', ?, 1, ?, 'broken_off', ?)",
                    (run, tx.now, tx.revision()),
                )
                for run in range(100, 130)
            ],
            sync=False,
        )
        with pytest.raises(SystemExit), journal.task("t"):
            sys.exit(1)
    row = task_row(path, "t")
    assert (clock.parse(row["next_attempt_at"]) - clock.parse(row["updated_at"])).total_seconds() > 1


def asked_in_vain(world: Any) -> Any:
    """A tool whose call and whose `status=` both leave by SystemExit."""

    def exits(call: Any) -> None:
        world.asked.append(call.key)
        sys.exit(1)

    @tool(effect="mutating", status=exits)
    def leave(name: str) -> None:
        sys.exit(1)

    return leave


def test_a_status_function_that_exits_in_recovery_breaks_its_task_off(path, world):
    leave = asked_in_vain(world)

    def work(task: Any) -> None:
        task.run(leave, "x")

    for _ in range(2):
        with Journal(path, agent="triage", tools=[leave], handlers={"work": work}) as journal:
            journal.submit("work", task_id="t")
            journal.store.write(lambda tx: tx.execute("UPDATE agent_task SET status = 'queued'"), sync=False)
            with serving(journal):
                soon(lambda: task_row(path, "t")["status"] == "waiting")
    assert len(world.asked) == 1
    assert wait_of(path, "t") == WaitReason("broken_off", detail="SystemExit")
    assert steps_of(path, "t")[0]["hold_reason"] is None
    ended = rows(path, "SELECT ended FROM agent_task_run WHERE task_id = 't' ORDER BY run")
    assert [run["ended"] for run in ended] == ["broken_off", "broken_off"]


def test_a_status_function_that_exits_beside_any_run_is_said_in_the_log(path, world, caplog):
    leave = asked_in_vain(world)
    for boot in range(2):
        with Journal(path, agent="triage", tools=[leave]) as journal:
            if not boot:
                with pytest.raises(SystemExit), journal.task("t") as task:
                    task.run(leave, "x")
            else:
                with serving(journal):
                    soon(lambda: "SystemExit" in caplog.text)
                assert "work at t stopped; it is unfinished" in caplog.text
    assert len(world.asked) == 1


def test_a_status_function_that_exits_keeps_no_other_intent_of_its_task_waiting(path, world):
    leave = asked_in_vain(world)
    world.fail = TimeoutError("no answer")
    with opened(path, world, max_wait=0) as journal, journal.task("t") as task:
        with pytest.raises(SystemExit), task.branch("a") as branch:
            branch.run(leave, "x")
        with pytest.raises(StepWaiting), task.branch("b") as branch:
            branch.run(world.write, "x")
    world.fail = None
    with Journal(path, agent="triage", tools=[leave, world.write]) as journal, serving(journal):
        soon(lambda: steps_of(path, "t/b")[0]["status"] == "committed")
    assert world.asked
    assert steps_of(path, "t/a")[0]["status"] == "pending"
