"""Somebody who is not the agent visits its journal: for moments, and for one step where one is named."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from journal.settle.visit import reconcile_file
from journal.writer_lock import Lock, find_holder
from tests.journal.agent import soon, start, steps_of
from tests.journal.raw_server import RawServer, json_answer
from tests.journal.raw_server import serving as listening

AGENT = """
    import json, sys
    from journal import Journal, Request, http_tool

    @http_tool(effect="mutating", provider="p")
    def post(number: int) -> Request:
        return Request("POST", f"{sys.argv[2]}/{number}", json={"number": number})

    def work(task, number):
        return task.run(post, number)

    providers = json.loads(sys.argv[3])
    with Journal(sys.argv[1], agent="a", tools=[post], handlers={"work": work}, providers=providers) as journal:
        for number in range(3):
            journal.submit("work", task_id=f"t{number}", number=number)
        journal.serve()
"""

KEYED = {"key": {"placement": "header", "name": "Idempotency-Key"}, "retention": {"for": "24h"}}
ASKED = {
    "status": {
        "request": "GET /orders/{key}",
        "absence": "never",
        "interpret": [{"status": 200, "is": "exists"}, {"status": 404, "is": "absent"}],
    }
}


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

    def arrived(self, count: int) -> None:
        """Wait until that many requests are there."""
        soon(lambda: len(self.gates) == count)

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


def killed_agent(path: Path, server: RawServer, slow: Slow, provider: dict[str, Any]) -> Path:
    """A journal with three intents in flight when its agent was killed; the provider is slow."""
    with start(AGENT, path, server.url, json.dumps({"p": provider})) as agent:
        slow.arrived(3)
        os.kill(agent.pid, signal.SIGKILL)
    slow.answer_all()
    slow.open = False
    slow.gates.clear()
    server.received.clear()
    return path


@pytest.fixture
def killed(path, server, slow):
    """Such a journal whose provider takes keys."""
    return killed_agent(path, server, slow, KEYED)


def visiting(path: Path) -> threading.Thread:
    """A worker's visit that has begun."""
    visit = threading.Thread(target=reconcile_file, args=(path,), kwargs={"role": "worker"}, daemon=True)
    visit.start()
    return visit


def test_a_visit_gives_the_lock_back_between_two_slow_providers(killed, server, slow, monkeypatch):
    monkeypatch.setattr("journal.settle.visit._VISIT_SECONDS", 0.2)  # every request of this test is slow
    visit = visiting(killed)
    slow.arrived(1)
    seen = find_holder(killed)
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


def test_nobody_holds_the_journal_while_a_visit_asks_for_a_status(path, server, slow):
    killed_agent(path, server, slow, ASKED)
    visit = visiting(path)
    for number in range(3):
        slow.arrived(number + 1)
        assert find_holder(path) is None
        slow.gates[number].set()
    visit.join(20)
    assert not visit.is_alive()
    assert [request.partition(b" ")[0] for request in server.received] == [b"GET"] * 3
    assert [steps_of(path, f"t{number}")[0]["status"] for number in range(3)] == ["committed"] * 3
