"""The threads of a served event loop: as many as it needs, no more than it may have, none that outlives its process."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from journal import Journal, Reply, tool
from journal.effects import Invoke, Program, drive
from journal.event_loop import DaemonThreads
from tests.journal.agent import python


def test_a_loop_runs_what_blocks_in_them_and_ends_after_it():
    done: list[int] = []

    async def main() -> list[int]:
        asyncio.get_running_loop().set_default_executor(DaemonThreads(2))
        loop = asyncio.get_running_loop()
        late = loop.run_in_executor(None, done.append, 100)
        found = await asyncio.gather(*(asyncio.to_thread(int, number) for number in range(20)))
        await late
        loop.run_in_executor(None, lambda: done.append(101))
        return list(found)

    assert asyncio.run(main()) == list(range(20))
    assert done == [100, 101]


def test_no_more_run_at_a_time_than_may_and_a_free_one_is_taken_again():
    threads = DaemonThreads(2)
    # Each piece of work waits for one beside it.
    pair, names = threading.Barrier(2), set()

    def work() -> None:
        names.add(threading.current_thread().name)
        pair.wait(10)

    given = [threads.submit(work) for _ in range(8)]
    threads.shutdown()
    assert [one.exception() for one in given] == [None] * 8
    assert len(names) == 2


def test_what_finds_no_further_thread_is_done_by_one_that_is_busy(monkeypatch):
    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threads, gate = DaemonThreads(2), threading.Event()
    first = threads.submit(gate.wait, 10)
    with monkeypatch.context() as patched:
        # As the interpreter says it at the limit of processes.
        patched.setattr(threading.Thread, "start", refused)
        second = threads.submit(int, "7")
        with pytest.raises(RuntimeError, match="new thread"):
            DaemonThreads(2).submit(int, "8")
    gate.set()
    assert (first.result(10), second.result(10)) == (True, 7)
    # The thread that came to it is free once, not twice: two calls that wait for each other run in two threads.
    pair = threading.Barrier(2)
    both = [threads.submit(pair.wait, 10) for _ in range(2)]
    threads.shutdown()
    assert [one.exception(10) for one in both] == [None, None]


def test_what_a_call_came_to_is_told_where_no_thread_can_be_had_to_wait_for_the_others(monkeypatch):
    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def value() -> int:
        return 7

    def called() -> Program[Any]:
        return (yield Invoke(value))

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert drive(called()) == 7


def test_an_error_is_its_own_and_what_was_cancelled_before_it_began_does_not_run():
    threads = DaemonThreads(1)
    begun, gate = threading.Event(), threading.Event()
    ran: list[int] = []

    def first() -> None:
        begun.set()
        gate.wait(10)
        raise SystemExit(3)

    failed: Future[Any] = threads.submit(first)
    dropped = threads.submit(ran.append, 1)
    assert begun.wait(10)
    assert dropped.cancel()
    gate.set()
    assert isinstance(failed.exception(10), SystemExit)
    assert threads.submit(int, "7").result(10) == 7
    threads.shutdown()
    assert ran == []
    with pytest.raises(RuntimeError, match="shut down"):
        threads.submit(int, "7")


def test_a_process_ends_while_one_of_them_is_in_a_call():
    done = python(
        """
        import threading, time
        from journal.event_loop import DaemonThreads

        begun = threading.Event()
        DaemonThreads().submit(lambda: (begun.set(), time.sleep(600)))
        begun.wait()
        print("left")
        """
    )
    assert (done.returncode, done.stdout) == (0, "left\n")


async def where() -> str:
    return await asyncio.to_thread(lambda: threading.current_thread().name)


def calls_where() -> Program[Any]:
    """What recovery does with an async `status=`."""
    return (yield Invoke(where))


def test_every_loop_that_the_runtime_makes_has_them(path):
    async def in_a_loop() -> Any:
        return drive(calls_where())

    tell = tool(effect="read_only")(where)
    with Journal(path, agent="a", tools=[tell]) as journal, journal.task("t") as task:
        found = task.act(lambda: Reply("", calls=[{"name": "where", "arguments": {}}]))
    names = [*found, drive(calls_where()), asyncio.run(in_a_loop())]
    assert [name.split()[0] for name in names] == ["loop"] * 3
