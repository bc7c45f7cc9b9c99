"""Two threads that recover the same journal send each intent once."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter

from journal import Journal, StepWaiting, http_tool
from journal.request import Request
from tests.journal.raw_server import serving as listening

INTENTS = 80
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


def test_no_intent_is_sent_by_both(path, tmp_path, monkeypatch):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        port = nobody_listens.getsockname()[1]

        @http_tool(effect="mutating")
        def post(number: int) -> Request:
            return Request("POST", f"http://127.0.0.1:{port}/{number}", json={"number": number})

        with Journal(path, agent="a", tools=[post], max_wait=0) as journal:
            for number in range(INTENTS):
                with contextlib.suppress(StepWaiting), journal.task(f"t{number}") as task:
                    task.run(post, number)
    moved.write_text("600")  # past every back-off
    with (
        listening(lambda connection, _: connection.sendall(ANSWER), port=port) as server,
        Journal(path, agent="a", tools=[post]) as journal,
    ):
        threads = [threading.Thread(target=journal.recover) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    sent = Counter(request.split(b" ")[1] for request in server.received)
    assert sent == {b"/%d" % number: 1 for number in range(INTENTS)}
