"""A signal ends `serve`: the step in hand finishes, and a handler that is stuck holds nothing up."""

from __future__ import annotations

import os
import signal

import pytest

from journal.runtime.serve import Server
from tests.journal.agent import opened, start, steps_of, task_row

DAEMON = """
    import asyncio, sys, time
    from journal import Journal, tool

    @tool(effect="read_only")
    def look(seconds):
        print("in the step", flush=True)
        time.sleep(seconds)
        return seconds

    def work(task, seconds):
        task.run(look, seconds)
        task.run(look, 0.0)

    async def wait(task, seconds):
        await asyncio.to_thread(look.function, seconds)

    with Journal(sys.argv[1], agent="a", tools=[look], handlers={"work": work, "wait": wait}) as journal:
        journal.submit(sys.argv[3], task_id="t", seconds=float(sys.argv[2]))
        journal.serve()
    print("left", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_step_in_hand_finish_and_ends_the_process(path, number):
    with start(DAEMON, path, 0.3, "work") as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(number)
        said, _ = child.communicate(timeout=5)
    assert (child.returncode, said) == (0, "left\n")
    assert steps_of(path, "t")[0]["status"] == "committed"
    row = task_row(path, "t")
    assert (row["status"], row["wait_kind"]) == ("waiting", "interrupted")


@pytest.mark.slow
@pytest.mark.parametrize("handler", ["work", "wait"])
def test_a_handler_stuck_in_a_call_does_not_keep_a_stopped_process_alive(path, handler):
    with start(DAEMON, path, 600, handler) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=8)
    assert child.returncode == 0
    assert [step["status"] for step in steps_of(path, "t")] == (["pending"] if handler == "work" else [])


def test_a_signal_that_comes_in_the_middle_of_a_wait_waits_for_no_lock_of_its_own_thread(path, world):
    with opened(path, world) as journal:
        server = Server(journal.context, 1)
        previous = server._catch_signals()
        try:
            assert previous  # else the signal would end this very process
            # As the main thread holds it for a moment at the beginning and the end of each wait.
            with server._wake._cond:  # type: ignore[attr-defined]
                os.kill(os.getpid(), signal.SIGTERM)
            assert server._stopped
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
