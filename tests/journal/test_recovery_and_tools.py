"""Recovery runs no code of a tool but `status=` and replays under a key: the rest runs where its task runs."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from journal import Journal, StepHeld, StepWaiting, http_tool, tool
from journal.request import Request
from tests.journal.agent import World, opened, rows, steps_of, task_row
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


def _now_http(name: str) -> Request:
    return Request("POST", "http://127.0.0.1:9/x", json={"name": name})


def _now_reading(name: str) -> str:
    return name


OTHER_KINDS = [
    http_tool(effect="mutating", name="write")(_now_http),
    tool(effect="read_only", name="write")(_now_reading),
]


@pytest.mark.parametrize("other", OTHER_KINDS, ids=["http", "read_only"])
def test_a_tool_that_became_another_kind_is_not_run_as_the_effect_of_a_stored_step(path, world, other):
    interrupted(path, world, world.write)
    with Journal(path, agent="triage", tools=[other]) as journal:
        assert journal.recover().held == 1
        with pytest.raises(StepHeld) as held, journal.task("t") as task:
            task.run(other, "x")
    assert held.value.reason == "tool_missing"
    assert steps_of(path, "t")[0]["status"] == "pending"
    with opened(path, world) as journal:
        assert journal.recover().settled == 1
    assert world.names() == ["write"]


def test_a_tool_that_lost_its_status_is_not_asked(path, world):
    interrupted(path, world, world.once)
    blind = tool(effect="mutating", name="once")(_now_reading)
    with Journal(path, agent="triage", tools=[blind]) as journal:
        assert journal.recover().held == 1
    step = steps_of(path, "t")[0]
    assert (step["hold_reason"], step["hold_detail"]) == ("tool_missing", "The tool once no longer has status=.")


def _unkeyed(call: Any, path: str, text: str = "") -> str:
    raise AssertionError("its target removes no duplicates any more")


def _without_call(path: str, text: str = "") -> str:
    raise AssertionError("it cannot pass the key on")


@pytest.mark.parametrize(
    ("other", "keyed", "sentence"),
    [
        (_unkeyed, None, "no longer has keyed="),
        (_without_call, None, "no longer has keyed="),
        (_without_call, timedelta(hours=24), "takes no `call`"),
    ],
)
def test_what_was_begun_under_a_key_is_not_repeated_without_it(path, world, other, keyed, sentence):
    interrupted(path, world, world.write)
    changed = tool(effect="mutating", name="write", keyed=keyed)(other)
    with Journal(path, agent="triage", tools=[changed]) as journal:
        assert journal.recover().held == 1
        with pytest.raises(StepHeld, match=sentence) as held, journal.task("t") as task:
            task.run(changed, "x")
    assert held.value.reason == "tool_missing"
    assert rows(path, "SELECT attempt FROM agent_step_attempt") == [{"attempt": 1}]
    with opened(path, world) as journal:
        assert journal.recover().settled == 1
    assert world.names() == ["write"]


def test_what_was_begun_under_a_key_is_asked_for_but_not_sent_without_it(path, world, tmp_path, monkeypatch):
    def find(call: Any) -> None:
        world.asked.append(call.key)

    def begun(call: Any, name: str) -> str:
        raise TimeoutError("no answer")

    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    for keyed, function in ((timedelta(hours=24), begun), (None, _now_reading)):
        leave = tool(effect="mutating", name="leave", status=find, keyed=keyed)(function)
        with (
            Journal(path, agent="triage", tools=[leave], max_wait=0) as journal,
            pytest.raises(StepWaiting if keyed else StepHeld) as put_aside,
            journal.task("t") as task,
        ):
            task.run(leave, "x")
        moved.write_text("60")
    assert "no longer has keyed=" in str(put_aside.value)
    assert len(world.asked) == 1
    assert rows(path, "SELECT attempt FROM agent_step_attempt") == [{"attempt": 1}]


def _takes_less(call: Any) -> str:
    raise AssertionError("it takes none of the stored arguments")


def _takes_more(call: Any, path: str, text: str, mode: int) -> str:
    raise AssertionError("it needs an argument that was not stored")


@pytest.mark.parametrize("other", [_takes_less, _takes_more])
def test_a_tool_that_no_longer_takes_the_stored_arguments_uses_up_no_dispatch(path, world, other):
    interrupted(path, world, world.write)
    changed = tool(effect="mutating", name="write", keyed=timedelta(hours=24))(other)
    with Journal(path, agent="triage", tools=[changed]) as journal:
        for _ in range(6):
            report = journal.recover()
            assert (report.held, report.waiting) == (1, 0)
        with pytest.raises(StepHeld) as held, journal.task("t") as task:
            task.run(changed, **({} if other is _takes_less else {"path": "x", "text": "", "mode": 1}))
    assert held.value.reason == "tool_missing"
    assert "no longer takes the stored arguments" in str(held.value)
    with opened(path, world) as journal:
        assert journal.recover().settled == 1
    assert world.names() == ["write"]
    attempts = rows(path, "SELECT attempt, verdict FROM agent_step_attempt ORDER BY attempt")
    assert [row["verdict"] for row in attempts] == ["unknown", "applied"]


def test_stored_arguments_given_by_place_alone_still_fit(path, world):
    @tool(effect="mutating", keyed=timedelta(hours=24))
    def place(name: str, /, *, call: Any, **more: Any) -> str:
        if world.fail is not None:
            raise world.fail
        world.calls.append((name, more))
        return name

    interrupted(path, world, place)
    with Journal(path, agent="triage", tools=[place]) as journal:
        assert journal.recover().settled == 1
    assert world.calls == [("x", {})]
