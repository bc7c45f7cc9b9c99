"""What a tool did, returned or raised is stored as it was, and an interrupt is no outcome."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from journal import Journal, NoEffect, OutcomeUnknown, StepFailed, tool
from tests.journal.agent import opened, python, rows, steps_of


def test_a_failure_is_stored_and_raised_again_with_its_type_message_and_chain(path, world):
    class Odd(Exception):
        pass

    @tool(effect="read_only")
    def broken() -> None:
        world.calls.append(("broken", None))
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise Odd("outer \ud83d") from error

    seen = []
    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task, pytest.raises(StepFailed) as caught:
            task.run(broken)
        seen.append(caught.value)
    assert world.names() == ["broken"]
    first, again = seen
    assert first.type == again.type
    assert first.type.endswith("Odd")
    assert first.chain == again.chain == ("KeyError: 'inner'",)
    assert "outer \\ud83d" in str(first)
    assert steps_of(path, "t")[0]["status"] == "failed"


def test_a_mutating_tool_that_surely_did_nothing_fails_its_step(path, world):
    world.fail = NoEffect("the branch exists")
    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            with pytest.raises(StepFailed, match="the branch exists"):
                task.run(world.blind, "x")
            task.run(world.read, 1)  # the task goes on
    assert world.names() == ["blind", "read"]


def test_a_tool_that_raised_after_its_effect_is_settled_by_its_status(path, world):
    world.fail = TimeoutError("no answer")  # raised after the effect stood in the world
    with opened(path, world) as journal, journal.task("t") as task:
        assert task.run(world.once, "tag") == {"name": "tag"}
    assert world.names() == ["once"]
    assert len(world.asked) == 1
    assert steps_of(path, "t")[0]["status"] == "committed"


@pytest.mark.parametrize("arrives", [True, False])
def test_a_tool_that_raised_fails_only_once_its_request_can_no_longer_arrive(path, world, arrives):
    def find(call: Any) -> Any:
        # The client gave up first; its server is still at work when the status is asked at once.
        world.asked.append(call.key)
        return "late" if arrives and len(world.asked) > 1 else None

    @tool(effect="mutating", status=find, horizon=timedelta(seconds=0.2))
    def send(name: str) -> str:
        raise TimeoutError("no answer in time")

    with Journal(path, agent="triage", tools=[send], max_wait=5) as journal, journal.task("t") as task:
        if arrives:
            assert task.run(send, "x") == "late"
        else:
            with pytest.raises(StepFailed, match="no answer in time"):
                task.run(send, "x")
    assert len(world.asked) == 2


def test_a_tool_that_says_that_nothing_of_it_is_left_under_way_fails_at_once(path, world):
    @tool(effect="mutating", status=lambda call: world.asked.append(call.key), horizon=timedelta(0))
    def send(name: str) -> str:
        raise ValueError("no such name")

    with (
        Journal(path, agent="triage", tools=[send], max_wait=0) as journal,
        journal.task("t") as task,
        pytest.raises(StepFailed, match="no such name"),
    ):
        task.run(send, "x")
    assert len(world.asked) == 1


@pytest.mark.parametrize(
    "output",
    [
        (1, 2),
        {"when": datetime(2026, 11, 29, tzinfo=UTC)},
        None,
        "",
        {1: "a"},
        [float("nan")],
        {"big": "x" * 100_000},
        "é💡",
        b"bytes",
        object,
    ],
    ids=lambda output: type(output).__name__,
)
@pytest.mark.parametrize("effect", ["read_only", "mutating"])
def test_the_first_run_returns_what_a_resume_returns(path, world, output, effect):
    calls = []

    @tool(effect=effect)
    def produce() -> Any:
        calls.append(1)
        return output

    results = []
    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            results.append(task.run(produce))
    assert len(calls) == 1
    assert json.dumps(results[0]) == json.dumps(results[1])
    step = steps_of(path, "t")[0]
    assert step["status"] == "committed"
    stored = output == {1: "a"} or isinstance(output, list | bytes | type)
    assert step["output_complete"] == int(not stored)


def test_a_big_body_stands_once_beside_the_row_and_reads_back(path, world):
    big = "x" * 50_000
    with opened(path, world) as journal, journal.task("t") as task:
        for _ in range(3):
            assert task.run(world.read, 1, note=big)["note"] == big
    assert rows(path, "SELECT count(*) AS n FROM agent_body")[0]["n"] == 1  # input and output are one text
    assert all(len(step["arguments_json"]) < 200 for step in steps_of(path, "t"))
    with opened(path, world) as journal, journal.task("t") as task:
        assert task.run(world.read, 1, note=big)["note"] == big
    assert len(world.calls) == 3


def test_a_pending_read_of_a_killed_process_is_simply_run_again(path, world):
    @tool(effect="read_only")
    def cut() -> int:
        world.calls.append(("cut", None))
        if len(world.calls) == 1:
            raise KeyboardInterrupt
        return 1

    with opened(path, world) as journal:
        with pytest.raises(KeyboardInterrupt), journal.task("t") as task:
            task.run(cut)
        step = steps_of(path, "t")[0]
        assert (step["status"], step["starts"], step["error_json"]) == ("pending", 0, None)
        with journal.task("t") as task:
            assert task.run(cut) == 1


def test_an_interrupt_in_a_mutating_tool_is_no_outcome(path, world):
    @tool(effect="mutating")
    def cut() -> None:
        raise SystemExit(3)

    with opened(path, world) as journal:
        with pytest.raises(SystemExit), journal.task("t") as task:
            task.run(cut)
        with pytest.raises(OutcomeUnknown), journal.task("t") as task:
            task.run(cut)
    (attempt,) = rows(path, "SELECT * FROM agent_step_attempt")
    assert (attempt["verdict"], attempt["kind"]) == ("unknown", "no_outcome")


def test_a_status_function_that_kills_its_process_is_quarantined_alone(path):
    code = """
        import os, sys
        from journal import Journal, tool

        def find(call):
            print("asked", flush=True)
            os.kill(os.getpid(), 9)

        @tool(effect="mutating", status=find)
        def send(name):
            raise TimeoutError("no answer")

        with Journal(sys.argv[1], agent="a", tools=[send]) as journal:
            journal.recover()
            with journal.task("t") as task:
                task.run(send, "x")
    """
    ended = [python(code, path) for _ in range(5)]
    assert [done.returncode for done in ended] == [-9, -9, -9, 75, 75]
    assert [done.stdout for done in ended] == ["asked\n"] * 3 + [""] * 2
    assert steps_of(path, "t")[0]["hold_reason"] == "quarantined"
    assert rows(path, "SELECT count(*) AS n FROM agent_step_attempt") == [{"n": 1}]
