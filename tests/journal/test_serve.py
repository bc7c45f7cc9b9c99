"""`serve` runs every unfinished task that can run, and nothing stops it but a signal or a broken disk."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from journal import StepWaiting, clock, post_submit, tool
from journal.inbox import mailbox
from journal.models import WaitReason
from tests.journal.agent import DAY, opened, rows, serving, soon, status, steps_of, task_row, wait_of


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
        assert wait_of(path, "t") == WaitReason("no_handler", detail="gone")
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
            mailbox.post_message(
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
    assert (row["status"], wait_of(path, "t")) == ("waiting", WaitReason("due", "t", 0))


def test_a_concurrency_below_one_is_refused(path, world):
    with opened(path, world) as journal, pytest.raises(ValueError, match="concurrency=0"):
        journal.serve(concurrency=0)
