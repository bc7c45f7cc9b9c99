"""Calls of a model whose tools were registered, or taken away, between two starts of their agent."""

from __future__ import annotations

from typing import Any

import pytest

from journal import Diverged, Journal, Reply, StepHeld
from tests.journal.agent import World, opened, steps_of


def choosing(world, *calls):
    def choose(question: str) -> Reply:
        world.calls.append(("choose", question))
        return Reply("", calls=calls)

    return choose


def acted(path, tools, choose):
    with Journal(path, agent="triage", tools=tools) as journal, journal.task("t") as task:
        return [str(output) for output in task.act(choose, "q")]


def test_a_committed_call_is_served_though_its_tool_is_no_longer_registered(path, world):
    choose = choosing(world, ("blind", {"name": "n"}), ("write", {"path": "p"}), ("read", {"number": 2}))
    shown = acted(path, world.tools(), choose)
    # `write` has a default that the call leaves out: with the tool it is gone.
    assert acted(path, [], choose) == acted(path, [world.read], choose) == shown
    assert world.names() == ["choose", "blind", "write", "read"]
    assert all((step["status"], step["hold_reason"]) == ("committed", None) for step in steps_of(path, "t"))


@pytest.mark.parametrize("arguments", [{"path": "p"}, {"path": "p", "text": float("inf")}, {"wrong": 1}, "no object"])
def test_a_call_that_failed_for_want_of_its_tool_stays_so_when_the_tool_is_registered(path, world, arguments):
    choose = choosing(world, ("write", arguments), {"name": "write", "arguments": arguments}, ("read", {"number": 1}))
    shown = acted(path, [world.read], choose)
    assert acted(path, world.tools(), choose) == acted(path, [world.read], choose) == shown
    assert world.names() == ["choose", "read"]
    assert [step["status"] for step in steps_of(path, "t")][1:] == ["failed", "failed", "committed"]


def test_a_pending_call_whose_tool_is_not_there_is_held_and_goes_on_when_it_is_back(path, world):
    choose = choosing(world, ("write", {"path": "p"}))
    world.fail = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        acted(path, world.tools(), choose)
    world.fail = None
    with pytest.raises(StepHeld) as held:
        acted(path, [world.read], choose)
    assert held.value.reason == "tool_missing"
    assert "'attempt': 2" in acted(path, world.tools(), choose)[0]
    assert world.names() == ["choose", "write", "write"]


@pytest.mark.parametrize(
    ("before", "now", "difference"),
    [
        ("blind", "made_up", "tool is mutating blind in the journal, and unregistered made_up in the code"),
        ("made_up", "blind", "tool is refused made_up in the journal, and mutating blind in the code"),
        ("made_up", "other", "tool is refused made_up in the journal, and unregistered other in the code"),
        ("made_up", None, "tool is refused made_up in the journal, and model made_up in the code"),
        (None, "made_up", "tool is model made_up in the journal, and unregistered made_up in the code"),
    ],
)
def test_no_effect_is_made_up_for_a_tool_that_nobody_registered(path, world, before, now, difference):
    def made_up(question: str) -> Reply:
        return Reply("")

    def step(task: Any, name: str | None) -> Any:
        # What `act` does with one call of a reply that is in the journal.
        return task.ask(made_up, "q") if name is None else task._answer((name, {"name": "n"}))

    with opened(path, world) as journal, journal.task("t") as task:
        step(task, before)
    with opened(path, world) as journal, journal.task("t") as task, pytest.raises(Diverged, match=difference):
        step(task, now)


def test_a_call_is_the_same_though_a_word_of_it_became_a_credential_since(path, world, monkeypatch):
    choose = choosing(world, ("blind", {"name": "letmein1"}), ("made_up", {"name": "letmein1"}))
    shown = acted(path, world.tools(), choose)
    monkeypatch.setenv("DOOR", "letmein1")
    with opened(path, World()) as journal, journal.task("t") as task:
        journal.tools.clear()
        journal.context.settle_context("task").secrets.learn(["DOOR"])
        assert [str(output) for output in task.act(choose, "q")] == shown
