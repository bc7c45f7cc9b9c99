"""A read-only request whose provider is out of reach: fetched again, each time a bit later, never before its time."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from journal import Request, StepAbandoned, StepWaiting, clock, http_tool
from journal.inbox import mailbox
from journal.reconcile import replay_window
from tests.journal.agent import opened, soon, steps_of, wait_of
from tests.journal.operator import decide
from tests.journal.raw_server import RawServer, answer, serving


def fetching(url: str) -> Any:
    @http_tool(effect="read_only")
    def fetch() -> Request:
        return Request("GET", f"{url}/x")

    return fetch


def test_the_pause_grows_over_the_runs_of_a_task(path, world, moved):
    with serving(answer(503)) as server:
        fetch = fetching(server.url)
        for n in range(5):
            # Every message, boot or due time makes a run of its own.
            with opened(path, world, max_wait=0) as journal:
                before = clock.wall()
                with pytest.raises(StepWaiting) as caught, journal.task("t") as task:
                    task.run(fetch)
                after = clock.wall()
            (step,) = steps_of(path, "t")
            pause = replay_window.compute_backoff(step["idempotency_key"], n)
            assert before + pause <= caught.value.until <= after + pause
            assert (step["starts"], step["next_attempt_at"]) == (n + 1, clock.text(caught.value.until))
            with opened(path, world, max_wait=0) as journal, journal.task("t") as task, pytest.raises(StepWaiting):
                task.run(fetch)
            moved.write_text(str(600 * (n + 1)))
    assert len(server.received) == 5, "what looks at it before it is due fetches nothing"


def limited_once(retry_after: str) -> RawServer:
    def script(connection: Any, request: bytes) -> None:
        first = len(server.received) == 1
        (answer(429, Retry_After=retry_after) if first else answer(200))(connection, request)

    server = RawServer(script)
    return server


def test_a_message_about_another_task_fetches_nothing_before_it_is_due(path, world, moved):
    server = limited_once("600")
    seen: list[int] = []
    try:
        with opened(path, world, max_wait=3600) as journal:
            fetch = fetching(server.url)
            with journal.task("t") as task:

                def message_then_due() -> None:
                    soon(lambda: server.received)
                    mailbox.post_message(path, {"kind": "cancel", "task_id": "other", "actor": "ann", "reason": "no"})
                    journal.context.take_messages()
                    # Longer than a sleep goes without looking whether a message woke it.
                    time.sleep(0.8)
                    seen.append(len(server.received))
                    moved.write_text("601")

                beside = threading.Thread(target=message_then_due)
                beside.start()
                task.run(fetch)
                beside.join()
    finally:
        server.close()
    assert (seen, len(server.received)) == ([1], 2)


def test_a_fetch_that_is_abandoned_while_it_waits_ends_at_once(path, world):
    server = limited_once("600")
    try:
        with opened(path, world, max_wait=3600) as journal, journal.task("t") as task:

            def abandon() -> None:
                soon(lambda: server.received)
                decide(path, "abandon", dispatches=0)
                journal.context.take_messages()

            beside = threading.Thread(target=abandon)
            beside.start()
            with pytest.raises(StepAbandoned):
                task.run(fetching(server.url))
            beside.join()
    finally:
        server.close()
    assert len(server.received) == 1


def test_a_fetch_that_is_abandoned_while_it_is_sent_is_put_off_by_no_pause(path, world):
    def script(connection: Any, request: bytes) -> None:
        decide(path, "abandon", dispatches=0)
        journal.context.take_messages()
        answer(429, Retry_After="600")(connection, request)

    journal = opened(path, world, max_wait=0)
    with serving(script) as server, journal, journal.task("t") as task, pytest.raises(StepAbandoned):
        task.run(fetching(server.url))
    assert wait_of(path, "t") is None
