"""Somebody who is not the agent visits its journal: for moments, and for one step where one is named."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from journal.ownership import Lock, holder
from journal.recovery import reconcile_file
from tests.journal.agent import soon, start, steps_of
from tests.journal.raw_server import RawServer, json_answer
from tests.journal.raw_server import serving as listening

AGENT = """
    import sys
    from journal import Journal, Request, http_tool

    KEYED = {"p": {"key": {"placement": "header", "name": "Idempotency-Key"}, "retention": {"for": "24h"}}}

    @http_tool(effect="mutating", provider="p")
    def post(number: int) -> Request:
        return Request("POST", f"{sys.argv[2]}/{number}", json={"number": number})

    def work(task, number):
        return task.run(post, number)

    with Journal(sys.argv[1], agent="a", tools=[post], handlers={"work": work}, providers=KEYED) as journal:
        for number in range(3):
            journal.submit("work", task_id=f"t{number}", number=number)
        journal.serve()
"""


class Slow:
    """A provider that answers each request when told to."""

    def __init__(self) -> None:
        self.gates: list[threading.Event] = []
        self.open = False

    def __call__(self, connection: Any, request: bytes) -> None:
        gate = threading.Event()
        self.gates.append(gate)
        if not self.open:
            gate.wait(20)
        json_answer(200, b'{"id": 1}')(connection, request)

    def answer_all(self) -> None:
        self.open = True
        for gate in list(self.gates):
            gate.set()


@pytest.fixture
def slow():
    return Slow()


@pytest.fixture
def server(slow):
    with listening(slow) as listening_server:
        yield listening_server
        slow.answer_all()


@pytest.fixture
def killed(path, server: RawServer, slow):
    """A journal with three keyed intents in flight when its agent was killed; the provider is slow."""
    with start(AGENT, path, server.url) as agent:
        soon(lambda: len(slow.gates) == 3)
        os.kill(agent.pid, signal.SIGKILL)
    slow.answer_all()
    slow.open = False
    slow.gates.clear()
    server.received.clear()
    return path


def test_a_visit_gives_the_lock_back_between_two_slow_providers(killed, server, slow, monkeypatch):
    monkeypatch.setattr("journal.recovery._VISIT_SECONDS", 0.2)  # every request of this test is slow
    visit = threading.Thread(target=reconcile_file, args=(killed,), kwargs={"role": "worker"}, daemon=True)
    visit.start()
    soon(lambda: len(slow.gates) == 1)
    seen = holder(killed)
    assert seen is not None
    assert seen.role == "worker"
    taken = threading.Event()

    def take() -> None:
        lock = Lock(killed, role="cli")
        lock.acquire()
        taken.set()
        lock.release()

    other = threading.Thread(target=take, daemon=True)
    other.start()
    assert not taken.wait(0.3)
    slow.gates[0].set()
    assert taken.wait(10)
    # Taken while two steps were still to be settled: the visit had not come to the next.
    assert len(server.received) < 3
    slow.answer_all()
    visit.join(20)
    assert not visit.is_alive()
    assert [steps_of(killed, f"t{number}")[0]["status"] for number in range(3)] == ["committed"] * 3
    assert len(server.received) == 3


def test_a_visit_for_one_step_settles_that_one_and_no_other(killed, server, slow):
    slow.open = True
    assert reconcile_file(killed, role="worker", only=("t1", 0)).settled == 1
    assert [steps_of(killed, f"t{number}")[0]["status"] for number in range(3)] == ["pending", "committed", "pending"]
    assert [b"/1 " in request for request in server.received] == [True]
