"""Code that asks for another step than the journal holds sends nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from journal import Diverged, Journal, OutcomeUnknown, Reply, TaskClosed, codec, tool
from tests.journal.agent import DAY, opened, steps_of, task_row


def first_run(path, world, **arguments: Any) -> None:
    with opened(path, world) as journal, journal.task("t") as task:
        task.run(world.write, "a.txt", **arguments)


@pytest.mark.parametrize(
    ("again", "difference"),
    [
        (lambda task, world: task.run(world.write, "b.txt"), r'\$\.path is "a\.txt" in the journal, and "b\.txt"'),
        (lambda task, world: task.run(world.write, "a.txt", text="x"), r"\$\.text"),
        (lambda task, world: task.run(world.read, 1), r"mutating write in the journal, and read_only read"),
        (lambda task, world: task.run(world.once, "a.txt"), r"mutating once in the code"),
        (lambda task, world: task.ask(world.model, "q"), r"model model in the code"),
    ],
)
def test_another_step_is_refused_naming_the_first_difference_and_nothing_is_sent(path, world, again, difference):
    first_run(path, world)
    world.calls.clear()
    with opened(path, world) as journal:
        with pytest.raises(Diverged, match=difference), journal.task("t") as task:
            again(task, world)
        with pytest.raises(TaskClosed):
            task.run(world.read, 1)
    assert world.calls == []
    step = steps_of(path, "t")[0]
    assert (step["status"], step["hold_reason"]) == ("committed", "diverged")
    assert task_row(path, "t")["status"] == "completed"  # it had ended; nothing of it is undone


@pytest.mark.parametrize(
    ("asked", "now", "place"),
    [
        ("q", "q?", r"\$\.prompt is"),
        ("q" * 300, "q" * 301, "the prompts differ first between characters 256 and 320"),
        ("q" * 300, "q" * 299 + "?", "the prompts differ first between characters 256 and 320"),
    ],
    ids=["what is shown", "length", "hash"],
)
def test_another_prompt_is_another_step_and_the_model_is_not_asked(path, world, asked, now, place):
    with opened(path, world) as journal, journal.task("t") as task:
        task.ask(world.model, asked)
    with opened(path, world) as journal, journal.task("t") as task, pytest.raises(Diverged, match=place):
        task.ask(world.model, now)
    assert world.calls == [("model", asked)]
    step = steps_of(path, "t")[0]
    assert (step["status"], step["hold_reason"]) == ("committed", "diverged")


def test_an_unfinished_task_waits_when_it_diverged_and_goes_on_with_the_old_code(path, world):
    with opened(path, world) as journal:
        task = journal.task("t")
        task.run(world.write, "a.txt")
        task.leave(KeyboardInterrupt())
        with pytest.raises(Diverged), journal.task("t") as task:
            task.run(world.write, "b.txt")
        row = task_row(path, "t")
        assert (row["status"], row["wait_kind"]) == ("waiting", "diverged")
        with journal.task("t") as task:
            task.run(world.write, "a.txt")
    assert steps_of(path, "t")[0]["hold_reason"] is None
    assert task_row(path, "t")["status"] == "completed"
    assert world.names() == ["write"]


@pytest.mark.parametrize(
    ("stored", "now", "same"),
    [
        ({"n": 1}, {"n": 1.0}, False),
        ({"n": 1}, {"n": True}, False),
        ({"n": [1, 2]}, {"n": [1, 2, 3]}, False),
        ({"n": {"b": 1, "a": 2}}, {"n": {"a": 2, "b": 1}}, True),
        ({"n": (1, 2)}, {"n": [1, 2]}, True),
        ({"n": None}, {"n": ""}, False),
    ],
)
def test_arguments_are_compared_as_the_json_they_are(path, world, stored, now, same):
    @tool(effect="mutating")
    def put(n: Any) -> None:
        world.calls.append(("put", n))

    with opened(path, world) as journal, journal.task("t") as task:
        task.run(put, **stored)
    with opened(path, world) as journal, journal.task("t") as task:
        if same:
            task.run(put, **now)
        else:
            with pytest.raises(Diverged):
                task.run(put, **now)
    assert len(world.calls) == 1


def test_a_new_parameter_is_no_difference_while_its_value_is_its_default(path, world):
    @tool(effect="mutating", name="put")
    def old(path: str) -> str:
        return path

    @tool(effect="mutating", name="put")
    def new(path: str, mode: str = "plain", tags: tuple[str, ...] = ()) -> str:
        raise AssertionError("called")

    with opened(path, world) as journal, journal.task("t") as task:
        task.run(old, "a")
    for arguments, same in (({}, True), ({"mode": "plain"}, True), ({"mode": "other"}, False)):
        with opened(path, world) as journal, journal.task("t") as task:
            if same:
                assert task.run(new, "a", **arguments) == "a"
            else:
                with pytest.raises(Diverged, match=r"\$\.mode is missing in the journal"):
                    task.run(new, "a", **arguments)


def test_a_tool_that_says_so_takes_the_stored_payload_and_the_drift_is_recorded(path, world):
    @tool(effect="mutating", drift="stored")
    def note(when: str) -> str:
        world.calls.append(("note", when))
        return when

    for when in ("09:00", "10:00", "11:00"):
        with opened(path, world) as journal, journal.task("t") as task:
            assert task.run(note, when) == "09:00"
    step = steps_of(path, "t")[0]
    assert (step["status"], step["hold_reason"], codec.loads(step["drift_json"])) == (
        "committed",
        None,
        {"path": "$.when"},
    )
    with opened(path, world) as journal, journal.task("t") as task, pytest.raises(Diverged):
        task.run(world.write, "another tool is never drift")


def test_a_pending_read_that_drifted_runs_with_the_stored_arguments(path, world):
    @tool(effect="read_only", drift="stored")
    def look(when: str) -> str:
        world.calls.append(("look", when))
        if len(world.calls) == 1:
            raise KeyboardInterrupt
        return when

    with opened(path, world) as journal:
        with pytest.raises(KeyboardInterrupt), journal.task("t") as task:
            task.run(look, "09:00")
        with journal.task("t") as task:
            assert task.run(look, "10:00") == "09:00"


@pytest.mark.parametrize("ask", ["run", "read", "ask", "act"])
def test_a_pending_intent_is_settled_from_its_bytes_before_the_new_code_is_looked_at(path, world, ask):
    lost = [True]

    @tool(effect="mutating", keyed=DAY)
    def put(call: Any, name: str) -> str:
        world.calls.append(("put", name))
        if lost[0]:
            raise SystemExit
        return name

    with pytest.raises(SystemExit), opened(path, world) as journal, journal.task("t") as task:
        task.run(put, "a")
    lost[0] = False

    def choose(question: str) -> Reply:
        world.calls.append(("choose", question))
        return Reply("", calls=[("missing", {})])

    again: dict[str, Callable[[Any], Any]] = {
        "run": lambda task: task.run(put, "b"),
        "read": lambda task: task.run(world.read, 1),
        "ask": lambda task: task.ask(world.model, "q"),
        "act": lambda task: task.act(choose, "q"),
    }
    # No recover() first: the handler itself meets the intent. Registered, so that other code can settle it.
    tools = [*world.tools(), put]
    with (
        Journal(path, agent="triage", tools=tools) as journal,
        pytest.raises(Diverged),
        journal.task("t") as task,
    ):
        again[ask](task)
    assert world.calls == [("put", "a"), ("put", "a")]
    assert steps_of(path, "t")[0]["status"] == "committed"


def test_a_difference_shown_in_an_error_is_cut_and_never_stored_with_its_values(path, world):
    first_run(path, world, text="s" * 1000)
    with opened(path, world) as journal, journal.task("t") as task, pytest.raises(Diverged) as caught:
        task.run(world.write, "a.txt", text="t" * 1000)
    assert len(str(caught.value)) < 600
    assert steps_of(path, "t")[0]["hold_detail"] == "$.text"


def test_a_held_intent_of_a_changed_handler_is_still_held_for_its_own_reason(path, world):
    world.fail = RuntimeError("lost")
    with opened(path, world) as journal:
        with pytest.raises(OutcomeUnknown), journal.task("t") as task:
            task.run(world.blind, "x")
        with pytest.raises(OutcomeUnknown), journal.task("t") as task:
            task.run(world.read, 1)
    assert steps_of(path, "t")[0]["hold_reason"] == "unknown_outcome"
