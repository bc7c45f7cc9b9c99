"""`serve` runs every unfinished task that can run, and nothing stops it but a signal or a broken disk."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from journal import StepWaiting, clock, inbox, post_submit, tool
from journal.serve import Server
from tests.journal.agent import DAY, World, opened, rows, start, steps_of, task_row


@pytest.fixture
def path(tmp_path):
    return tmp_path / "j.db"


@pytest.fixture
def world():
    return World()


@contextlib.contextmanager
def serving(journal: Any, concurrency: int = 4) -> Iterator[Server]:
    server = Server(journal, concurrency)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(10)
        assert not thread.is_alive()


def soon(look: Callable[[], object]) -> None:
    """Wait until `look` is true; what it looks at changes by itself."""
    deadline = time.monotonic() + 20
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def status(path, task_id: str) -> str:
    found = rows(path, "SELECT status FROM agent_task WHERE task_id = ?", task_id)
    return str(found[0]["status"]) if found else "none"


def test_queued_tasks_run_to_their_end_with_their_output_stored(path, world):
    def triage(task: Any, number: int) -> dict[str, Any]:
        return {"seen": task.run(world.read, number)["number"], "odd": (1, 2)}

    with opened(path, world, handlers={"triage": triage}) as journal:
        for number in range(5):
            journal.submit("triage", task_id=f"t{number}", number=number)
        with serving(journal):
            soon(lambda: all(status(path, f"t{number}") == "completed" for number in range(5)))
            post_submit(path, "triage", task_id="late", number=9)
            soon(lambda: status(path, "late") == "completed")
    assert task_row(path, "t3")["output_json"] == '{"odd": [1, 2], "seen": 3}'
    assert [task_row(path, "late")["boot"]] == [1]


def test_async_handlers_are_served_too(path, world):
    @tool(effect="mutating", keyed=DAY)
    async def put(name: str) -> str:
        world.calls.append(("put", name))
        return name

    async def triage(task: Any, name: str) -> Any:
        return await task.run(put, name)

    with opened(path, world, handlers={"triage": triage}) as journal:
        journal.submit("triage", task_id="t", name="a")
        with serving(journal):
            soon(lambda: status(path, "t") == "completed")
    assert task_row(path, "t")["output_json"] == '"a"'


def test_a_poison_handler_fails_alone(path, world):
    def poison(task: Any) -> None:
        raise RuntimeError("poison")

    def misfit(task: Any, gone: int) -> None:
        raise AssertionError

    def good(task: Any, number: int) -> int:
        return int(task.run(world.read, number)["number"])

    handlers = {"poison": poison, "good": good, "misfit": misfit}
    with opened(path, world, handlers=handlers) as journal:
        journal.submit("poison", task_id="bad")
        journal.submit("misfit", task_id="old", gone=1)
        for number in range(30):
            journal.submit("good", task_id=f"t{number}", number=number)

    def misfit_now(task: Any) -> None:
        raise AssertionError

    handlers["misfit"] = misfit_now
    with opened(path, world, handlers=handlers) as journal, serving(journal, concurrency=2):
        soon(lambda: all(status(path, f"t{number}") == "completed" for number in range(30)))
        soon(lambda: status(path, "bad") == status(path, "old") == "failed")
    assert "poison" in task_row(path, "bad")["error_json"]
    assert "gone" in task_row(path, "old")["error_json"]
    assert rows(path, "SELECT count(*) AS n FROM agent_task_run WHERE task_id = 'bad'")[0]["n"] == 1


def test_a_task_whose_handler_is_missing_is_parked_until_a_boot_that_has_it(path, world):
    def gone(task: Any) -> str:
        return "done"

    with opened(path, world, handlers={"gone": gone}) as journal:
        journal.submit("gone", task_id="t")
    with opened(path, world, handlers={"good": gone}) as journal:
        journal.submit("good", task_id="u")
        with serving(journal):
            soon(lambda: status(path, "u") == "completed" and status(path, "t") == "waiting")
            revision = task_row(path, "t")["revision"]
            journal.submit("good", task_id="v")
            soon(lambda: status(path, "v") == "completed")
        assert "missing: handler 'gone'" in task_row(path, "t")["wait_reason"]
        assert task_row(path, "t")["revision"] == revision  # parked once, not again and again
    with opened(path, world, handlers={"gone": gone}) as journal, serving(journal):
        soon(lambda: status(path, "t") == "completed")


def test_a_task_that_is_due_later_runs_when_the_moved_clock_says_so(path, world, tmp_path, monkeypatch):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    until = clock.wall() + timedelta(hours=2)

    def triage(task: Any) -> str:
        world.calls.append(("triage", None))
        if clock.wall() < until:
            raise StepWaiting("later", task_id="t", step_index=0, until=until)
        return "done"

    with opened(path, world, handlers={"triage": triage}) as journal:
        journal.submit("triage", task_id="t")
        with serving(journal):
            soon(lambda: status(path, "t") == "waiting")
            assert task_row(path, "t")["next_attempt_at"] == clock.text(until)
            moved.write_text("7201")
            soon(lambda: status(path, "t") == "completed")
    assert len(world.calls) == 2


def test_a_decision_wakes_the_task_it_is_about(path, world):
    def triage(task: Any) -> Any:
        return task.run(world.blind, "x")

    world.fail = TimeoutError("lost")
    with opened(path, world, handlers={"triage": triage}) as journal:
        journal.submit("triage", task_id="t")
        with serving(journal):
            soon(lambda: status(path, "t") == "waiting")
            world.fail = None
            step = steps_of(path, "t")[0]
            inbox.post(
                path,
                {
                    "kind": "decision",
                    "decision": "replay",
                    "task_id": "t",
                    "step_index": 0,
                    "key": step["idempotency_key"],
                    "payload_sha256": step["payload_sha256"],
                    "dispatches": 1,
                    "actor": "ann",
                    "reason": "ok",
                    "expires_at": clock.text(clock.wall() + timedelta(minutes=15)),
                },
            )
            soon(lambda: status(path, "t") == "completed")
    assert world.names() == ["blind", "blind"]


def test_twenty_threads_submit_one_task_and_it_runs_once(path, world):
    def triage(task: Any, number: int) -> None:
        world.calls.append(("triage", number))
        task.run(world.write, "p")

    with opened(path, world, handlers={"triage": triage}) as journal, serving(journal):
        threads = [threading.Thread(target=lambda: journal.submit("triage", task_id="t", number=1)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        soon(lambda: status(path, "t") == "completed")
    assert world.names() == ["triage", "write"]


def test_four_processes_submit_one_task_and_it_runs_once(path, world):
    def triage(task: Any, number: int) -> None:
        world.calls.append(("triage", number))
        task.run(world.write, "p")

    code = "import sys; from journal import post_submit; post_submit(sys.argv[1], 'triage', task_id='t', number=1)"
    with opened(path, world, handlers={"triage": triage}) as journal, serving(journal):
        children = [start(code, path) for _ in range(4)]
        for child in children:
            child.communicate()
            assert child.returncode == 0
        soon(lambda: status(path, "t") == "completed" and not inbox.pending(path))
    assert world.names() == ["triage", "write"]
    assert task_row(path, "t")["conflict"] is None


def test_a_task_of_a_killed_process_runs_again_and_a_running_one_is_left_alone(path, world):
    leave = threading.Event()

    def slow(task: Any) -> str:
        world.calls.append(("slow", None))
        leave.wait(10)
        return "done"

    with opened(path, world, handlers={"slow": slow}) as journal:
        journal.submit("slow", task_id="t")
        journal.store.write(lambda tx: tx.execute("UPDATE agent_task SET status = 'running', boot = 0"), sync=False)
        with serving(journal):
            soon(lambda: world.calls)
            report = journal.recover()
            assert report.settled == 0
            journal.submit("slow", task_id="u")
            soon(lambda: len(world.calls) == 2)
            leave.set()
            soon(lambda: status(path, "t") == status(path, "u") == "completed")
    assert len(world.calls) == 2


def test_a_sleeping_task_is_put_aside_when_the_server_stops(path, world):
    asked = threading.Event()

    def down(call: Any) -> Any:
        asked.set()
        raise ConnectionError("down")

    @tool(effect="mutating", status=down)
    def send(name: str) -> str:
        raise TimeoutError("lost")

    def triage(task: Any) -> None:
        task.run(send, "x")

    with opened(path, world, handlers={"triage": triage}) as journal:
        journal.submit("triage", task_id="t")
        with serving(journal):
            asked.wait(10)
            soon(lambda: steps_of(path, "t")[0]["next_attempt_at"])
    row = task_row(path, "t")
    assert (row["status"], row["wait_reason"]) == ("waiting", "due: step 0")


DAEMON = """
    import sys, time
    from journal import Journal, tool

    @tool(effect="read_only")
    def look(seconds):
        print("in the step", flush=True)
        time.sleep(seconds)
        return seconds

    def work(task, seconds):
        task.run(look, seconds)
        task.run(look, 0.0)

    with Journal(sys.argv[1], agent="a", tools=[look], handlers={"work": work}) as journal:
        journal.submit("work", task_id="t", seconds=float(sys.argv[2]))
        journal.serve()
    print("left", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_step_in_hand_finish_and_ends_the_process(path, number):
    with start(DAEMON, path, 0.3) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(number)
        said, _ = child.communicate(timeout=5)
    assert (child.returncode, said) == (0, "left\n")
    assert steps_of(path, "t")[0]["status"] == "committed"
    row = task_row(path, "t")
    assert (row["status"], row["wait_reason"].partition(":")[0]) == ("waiting", "interrupted")


@pytest.mark.slow
def test_a_handler_stuck_in_a_call_does_not_keep_a_stopped_process_alive(path):
    with start(DAEMON, path, 600) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=8)
    assert child.returncode == 0
    assert steps_of(path, "t")[0]["status"] == "pending"


def test_a_concurrency_below_one_is_refused(path, world):
    with opened(path, world) as journal, pytest.raises(ValueError, match="concurrency=0"):
        journal.serve(concurrency=0)
