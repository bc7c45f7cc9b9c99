"""A handler that SystemExit or a cancellation ends, in a process that goes on: run again, each time a little later."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from journal import clock
from tests.journal.agent import opened, serving, soon, task_row


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
    assert seen["wait_reason"] == f"broken off: left by {name}"
    assert seen["next_attempt_at"] > seen["updated_at"]
    # What was broken off many times in a row waits for minutes, also in a new boot.
    with opened(path, world, handlers={"h": handler}) as journal:
        journal.store.write(
            lambda tx: [
                tx.execute(
                    "INSERT INTO agent_task_run (task_id, run, boot, started_at, ended, revision)"
                    " VALUES ('t', ?, 1, ?, 'broken off', ?)",
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
