"""Recovery runs no code of a tool but `status=` and replays under a key: the rest runs where its task runs."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from journal import Journal, tool
from tests.journal.agent import World, opened, steps_of, task_row
from tests.journal.operator import decide


def interrupted(path: Path, world: World, declared: Any) -> None:
    """The tool was called and its process ended: what the call did is unknown."""
    world.fail = SystemExit()
    with suppress(SystemExit), opened(path, world) as journal, journal.task("t") as task:
        task.run(declared, "x")
    world.fail = None
    world.calls.clear()


@pytest.fixture
def unfindable(world):
    """A tool that is asked for its status and finds nothing; its horizon is over at once."""

    @tool(effect="mutating", status=lambda call: world.asked.append(call.key), horizon=timedelta(0))
    def leave(name: str) -> str:
        world.calls.append(("leave", name))
        if world.fail is not None:
            raise world.fail
        return name

    return leave


def test_a_tool_that_may_run_again_is_left_to_its_task(path, world, unfindable):
    interrupted(path, world, unfindable)
    with Journal(path, agent="triage", tools=[unfindable]) as journal:
        report = journal.recover()
        assert (report.left, report.settled, report.held) == (1, 0, 0)
        assert "its tool runs again when its task runs" in report.lines[0]
        assert world.asked == [steps_of(path, "t")[0]["idempotency_key"]]
        assert world.calls == []
        assert task_row(path, "t")["status"] == "queued"
        with journal.task("t") as task:
            assert task.run(unfindable, "x") == "x"
    assert world.calls == [("leave", "x")]


def test_an_approved_replay_of_a_tool_is_left_to_its_task(held, world):
    decide(held, "replay")
    with opened(held, world) as journal:
        assert journal.recover().left == 1
        assert world.calls == []
        with journal.task("t") as task:
            assert task.run(world.blind, "x") == "x"
    assert world.calls == [("blind", "x")]


@pytest.mark.parametrize(("name", "called"), [("write", [("write", "x")]), ("once", []), ("blind", [])])
def test_recovery_itself_calls_keyed_tools_alone(path, world, name, called):
    interrupted(path, world, getattr(world, name))
    with opened(path, world) as journal:
        journal.recover()
    assert world.calls == called
