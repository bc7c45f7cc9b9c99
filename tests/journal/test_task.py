"""A task as its handler sees it: steps in order, stored before they happen, served when they happened."""

from __future__ import annotations

from typing import Any

import pytest

from journal import OutcomeUnknown, TaskClosed, UsageError, post_submit, tool
from journal.models import WaitReason
from tests.journal.agent import opened, rows, status, steps_of, task_row, wait_of


def test_a_resume_returns_what_was_stored_and_calls_nothing(path, world):
    def agent(task):
        issue = task.run(world.read, number=42)
        plan = task.ask(world.model, "what now?")
        done = task.run(world.write, "a.txt", text=plan.content["answer"])
        return issue, plan, done, task.run(world.once, "tag")

    results = []
    for _ in range(3):
        with opened(path, world) as journal:
            assert journal.recover().model_calls == 0
            with journal.task("t") as task:
                results.append(agent(task))
    assert world.names() == ["read", "model", "write", "once"]
    assert results[0] == results[1] == results[2]
    assert [run["served_through"] for run in rows(path, "SELECT * FROM agent_task_run ORDER BY run")] == [-1, 3, 3]


def test_an_intent_is_on_disk_before_its_tool_runs(path, world):
    seen: list[dict[str, Any]] = []

    @tool(effect="mutating")
    def look(call: Any, name: str) -> None:
        seen.extend(steps_of(path, call.task_id))
        seen.extend(rows(path, "SELECT * FROM agent_step_attempt"))
        assert call.key == seen[0]["idempotency_key"]

    with opened(path, world) as journal, journal.task("t") as task:
        assert task.run(look, "x") is None
    step, attempt = seen
    assert (step["status"], step["arguments_json"]) == ("pending", '{"name": "x"}')
    assert (attempt["attempt"], attempt["verdict"]) == (1, None)
    assert (steps_of(path, "t")[0]["status"], steps_of(path, "t")[0]["output_json"]) == ("committed", "null")


def test_a_step_that_is_held_closes_the_task_in_this_process(path, world):
    world.fail = TimeoutError("no answer")
    with opened(path, world) as journal, journal.task("t") as task:
        with pytest.raises(OutcomeUnknown) as held:
            task.run(world.blind, "x")
        assert (held.value.task_id, held.value.step_index, held.value.reason) == ("t", 0, "unknown_outcome")
        with pytest.raises(TaskClosed, match="held"):
            task.run(world.read, 1)
        with pytest.raises(TaskClosed):
            task.ask(world.model, "q")
    assert world.names() == ["blind"]
    assert (status(path, "t"), wait_of(path, "t")) == ("waiting", WaitReason("held", "t", 0, "unknown_outcome"))


def test_a_task_that_was_left_takes_no_step(path, world):
    with opened(path, world) as journal:
        with journal.task("t") as task:
            pass
        with pytest.raises(TaskClosed):
            task.run(world.read, 1)


def test_a_task_is_open_once(path, world):
    with opened(path, world) as journal, journal.task("t"), pytest.raises(UsageError, match="open"):
        journal.task("t")


def test_a_failed_task_that_is_opened_again_and_goes_on_is_running_again(path, world):
    with opened(path, world) as journal:
        task = journal.task("t")
        task.run(world.read, 1)
        task.leave(ZeroDivisionError("the handler's own"))
        assert task_row(path, "t")["status"] == "failed"
        with journal.task("t") as task:
            task.run(world.read, 1)
            assert task_row(path, "t")["status"] == "failed"  # served: nothing new happened
            task.run(world.write, "p")
            assert task_row(path, "t")["status"] == "running"
    assert task_row(path, "t")["status"] == "completed"
    assert task_row(path, "t")["error_json"] is None


def test_a_completed_task_that_takes_a_further_step_is_recovered_like_any_other(path, world):
    with opened(path, world) as journal:
        journal.task("t").leave(None)
        world.fail = RuntimeError("lost")
        with pytest.raises(OutcomeUnknown), journal.task("t") as task:
            task.run(world.blind, "x")
    with opened(path, world) as journal:
        assert journal.recover().held == 1
    assert task_row(path, "t")["status"] == "waiting"


@pytest.mark.parametrize(
    "task_id",
    ["a/b", "a?b", "a#b", "a%2Fb", "..", "a b ", "💡", "x" * 512, "a\\b", "a\nb", "t:0", "<img onerror=x>", "'; --"],
)
def test_any_text_is_a_task_id(path, world, task_id):
    for _ in range(2):
        with opened(path, world) as journal, journal.task(task_id) as task:
            task.run(world.write, "p")
    assert len(world.calls) == 1
    assert task_row(path, task_id)["status"] == "completed"


@pytest.mark.parametrize("task_id", ["", "x" * 513, "a\x00b", "\ud83d"])
def test_what_cannot_be_a_task_id_is_refused(path, world, task_id):
    with opened(path, world) as journal, pytest.raises(UsageError, match="Task id"):
        journal.task(task_id)


@pytest.mark.parametrize("given", [42, None, b"x", ["x"]])
def test_an_id_that_is_no_text_is_refused_with_its_type(path, world, given):
    with opened(path, world, handlers={"h": lambda task: None}) as journal, journal.task("t") as task:
        for name in (journal.task, task.branch, lambda it: journal.submit("h", task_id=it)):
            with pytest.raises(UsageError, match=rf"{type(given).__name__}, not str.*str\(…\)"):
                name(given)
        with pytest.raises(UsageError, match="not str"):
            post_submit(path, "h", task_id=given)
    assert [row["task_id"] for row in rows(path, "SELECT task_id FROM agent_task")] == ["t"]
