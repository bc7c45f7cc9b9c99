"""Signals while the journal is written: the write is finished first, so that no step is left in flight."""

from __future__ import annotations

import signal
import sys
from typing import Any

import pytest

from journal import TaskClosed, tool
from journal.deferred_signals import DeferredSignals
from journal.effects import Program, Read, Write, drive
from journal.models import WaitReason
from tests.journal.agent import opened, rows, steps_of, wait_of


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
    assert wait_of(path, "t") == WaitReason("broken_off", detail="KeyboardInterrupt")


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


class TimeUp(Exception):
    """What the usual time limit by SIGALRM raises."""


@pytest.fixture
def handled():
    """Handles a signal with a handler that raises TimeUp, until the test ends."""
    previous: dict[int, Any] = {}

    def time_up(number: int, frame: object) -> None:
        raise TimeUp

    def handle(number: int) -> None:
        previous[number] = signal.signal(number, time_up)

    yield handle
    for number, handler in previous.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGHUP, signal.SIGUSR1, signal.SIGRTMIN])
def test_any_handled_signal_waits_for_the_outcome(path, world, interrupted_write, handled, number):
    handled(number)
    with opened(path, world) as journal:
        with journal.task("t") as task:
            interrupted_write(journal, "write_outcome", number)
            with pytest.raises(TimeUp):
                task.run(world.blind, "x")
        with journal.task("t") as task:
            assert task.run(world.blind, "x") == "x"
    assert (world.calls, attempts(path)) == ([("blind", "x")], [("applied", "accepted")])


def test_what_a_handler_raises_just_before_the_outcome_is_written_is_raised_after_it(path, world, monkeypatch, handled):
    handled(signal.SIGALRM)
    original, writes = DeferredSignals._noting, []

    def noting(interrupts: DeferredSignals) -> Any:
        writes.append(interrupts)
        if len(writes) == 2:
            signal.raise_signal(signal.SIGALRM)
        return original(interrupts)

    with opened(path, world) as journal, journal.task("t") as task:
        monkeypatch.setattr(DeferredSignals, "_noting", noting)
        with pytest.raises(TimeUp):
            task.run(world.blind, "x")
    assert (world.calls, attempts(path)) == ([("blind", "x")], [("applied", "accepted")])


def test_a_signal_as_the_handlers_are_given_back_before_the_call_leaves_the_step_not_sent(
    path, world, monkeypatch, handled
):
    handled(signal.SIGALRM)
    original = DeferredSignals.give_back

    def give_back(interrupts: DeferredSignals) -> None:
        found = interrupts._handlers is not None
        original(interrupts)
        if found:
            monkeypatch.undo()
            signal.raise_signal(signal.SIGALRM)

    with opened(path, world) as journal, journal.task("t") as task:
        monkeypatch.setattr(DeferredSignals, "give_back", give_back)
        with pytest.raises(TimeUp):
            task.run(world.blind, "x")
    assert (world.calls, attempts(path)) == ([], [("not_sent", "stale")])


def test_every_signal_that_waited_is_acted_on_though_one_raises(handled):
    handled(signal.SIGALRM)
    seen: list[int] = []
    previous = signal.signal(signal.SIGHUP, lambda number, frame: seen.append(number))
    try:
        interrupts = DeferredSignals()
        interrupts.put_off()
        signal.raise_signal(signal.SIGALRM)
        signal.raise_signal(signal.SIGHUP)
        assert seen == []
        with pytest.raises(TimeUp):
            interrupts.act()
    finally:
        signal.signal(signal.SIGHUP, previous)
    assert seen == [signal.SIGHUP]


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
        interrupts = DeferredSignals()
        interrupts.put_off()
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

        def handler_in(operation: type[Read | Write]) -> Program[Any]:
            return (yield operation(journal.store, lambda tx: signal.getsignal(signal.SIGINT)))

        assert drive(handler_in(Read)) is signal.default_int_handler
        assert drive(handler_in(Write)) is not signal.default_int_handler
