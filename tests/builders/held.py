"""A step that waits for a person, made by a real agent whose request got no answer."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

from journal import Journal, Request, http_tool
from journal.errors import StepHeld
from tests.journal.raw_server import RawServer, Script, answer

TASK = "hook-1"


def lost_then(then: Script) -> Script:
    """A script that takes the first request and says nothing, and does `then` to all later ones."""
    seen: list[bytes] = []

    def script(connection: socket.socket, request: bytes) -> None:
        seen.append(request)
        if len(seen) > 1:
            then(connection, request)

    return script


def hook() -> RawServer:
    """A webhook that knows neither keys nor status: its first answer is lost, later ones are 200."""
    return RawServer(lost_then(answer(200, b'{"ok": true}', content_type="application/json")))


def a_held_step(path: Path, url: object, *, task_id: str = TASK, agent: str = "hook") -> None:
    """Run an agent up to a request whose answer is lost: neither key nor status, so the step is held."""

    @http_tool(effect="mutating")
    def send(text: str) -> Request:
        return Request("POST", f"{url}/hook", json={"text": text})

    with (
        Journal(path, agent=agent, tools=[send]) as journal,
        contextlib.suppress(StepHeld),
        journal.task(task_id) as task,
    ):
        task.run(send, text="hello")
