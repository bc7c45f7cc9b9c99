"""Ctrl-C while the journal is written: the write is finished first, so that no step is left in flight."""

from __future__ import annotations

import signal
import sys
from typing import Any

import pytest

from journal import TaskClosed, tool
from journal.interrupts import Interrupts
from journal.ops import Read, Steps, Write, drive
from tests.journal.agent import opened, rows, steps_of, task_row


@pytest.fixture(autouse=True)
def at_a_terminal():
    """Ctrl-C as a terminal has it: what is started in the background without one is made deaf to it."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture
def interrupted_write(monkeypatch):
    """Makes a real signal arrive while the store is inside its next write of a kind."""

    def arrange(journal: Any, name: str, number: int = signal.SIGINT) -> None:
        original = getattr(journal.store, name)

        def write(change: Any, *, sync: bool) -> Any:
            monkeypatch.undo()
            signal.raise_signal(number)
            return original(change, sync=sync)

        monkeypatch.setattr(journal.store, name, write)

    return arrange


def attempts(path: Any) -> list[tuple[str, str]]:
    return [(row["verdict"], row["kind"]) for row in rows(path, "SELECT verdict, kind FROM agent_step_attempt")]


def test_an_outcome_is_written_before_an_interrupt_is_raised(path, world, interrupted_write):
    with opened(path, world) as journal:
        with journal.task("t") as task:
            interrupted_write(journal, "write_outcome")
            with pytest.raises(KeyboardInterrupt):
                task.run(world.blind, "x")
            with pytest.raises(TaskClosed):
                task.run(world.blind, "y")
        # In the same process, as in a notebook: nothing is in flight and nothing is unknown.
        with journal.task("t") as task:
            assert task.run(world.blind, "x") == "x"
    assert (world.calls, attempts(path)) == ([("blind", "x")], [("applied", "accepted")])


def test_an_interrupt_while_the_intent_is_written_calls_nothing_and_says_so(path, world, interrupted_write):
    with opened(path, world) as journal:
        with journal.task("t") as task:
            interrupted_write(journal, "write")
            with pytest.raises(KeyboardInterrupt):
                task.run(world.blind, "x")
        assert (world.calls, attempts(path)) == ([], [("not_sent", "stale")])
    assert steps_of(path, "t")[0]["hold_reason"] is None
    assert task_row(path, "t")["wait_reason"] == "broken off: left by KeyboardInterrupt"


def test_an_interrupt_is_not_lost_where_the_step_failed(path, world, interrupted_write):
    @tool(effect="read_only")
    def fails() -> None:
        raise ValueError("no")

    with opened(path, world) as journal, journal.task("t") as task:
        interrupted_write(journal, "write_outcome")
        with pytest.raises(KeyboardInterrupt):
            task.run(fails)
    assert steps_of(path, "t")[0]["status"] == "failed"


def test_a_handler_of_sigterm_that_exits_waits_for_the_outcome_too(path, world, interrupted_write):
    previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    try:
        with opened(path, world) as journal, journal.task("t") as task:
            interrupted_write(journal, "write_outcome", signal.SIGTERM)
            with pytest.raises(SystemExit, match="3"):
                task.run(world.blind, "x")
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert attempts(path) == [("applied", "accepted")]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_between_giving_back_two_handlers_loses_neither_handler(monkeypatch, number):
    ours = signal.signal(signal.SIGTERM, signal.default_int_handler)
    given = signal.signal

    def give(which: int, handler: Any) -> Any:
        found = given(which, handler)
        if handler is signal.default_int_handler:
            monkeypatch.undo()
            signal.raise_signal(number)
        return found

    def guarded() -> None:
        interrupts = Interrupts()
        with interrupts.put_off():
            pass
        interrupts.act()

    monkeypatch.setattr(signal, "signal", give)
    try:
        with pytest.raises(KeyboardInterrupt):
            guarded()
        found = [signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM)]
        assert found == [signal.default_int_handler] * 2
    finally:
        given(signal.SIGTERM, ours)


def test_only_a_write_is_guarded_because_a_read_that_is_cut_loses_nothing(path, world):
    with opened(path, world) as journal:

        def handler_in(operation: type[Read | Write]) -> Steps[Any]:
            return (yield operation(journal.store, lambda tx: signal.getsignal(signal.SIGINT)))

        assert drive(handler_in(Read)) is signal.default_int_handler
        assert drive(handler_in(Write)) is not signal.default_int_handler
