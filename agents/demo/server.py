"""The common part of the demo's three servers: HTTP on 127.0.0.1, a request log, a ledger, a script of faults."""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Self

from agents.demo.ledger import Effect, Ledger, Received
from agents.demo.script import Fault, Script
from agents.demo.wire import Answer, Listener


class DemoServer:
    """A server on 127.0.0.1 that runs in threads of this process between `start` and `stop`.

    `data` is the ledger's file (None: memory); `port` 0 takes a free one; `secret` is what a caller must know.
    A server started again with the same data and port goes on where it stopped.
    """

    secret_variable: ClassVar[str] = ""
    guarded: ClassVar[bool] = True  # whether a caller without the secret gets 401

    def __init__(self, *, port: int = 0, data: Path | None = None, secret: str = "demo-secret") -> None:
        self.script = Script()
        self.secret = secret
        self._http = Listener(("127.0.0.1", port), self)
        self.ledger = Ledger(data)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        """The server's address without a closing slash."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Take no further connection, let held requests go, close the ledger."""
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        self.script.close()
        self._http.finish_requests()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def next(self, **fault: object) -> None:
        """Queue one fault, by its field names: `next(drop_after_apply=True)`."""
        self.script.next(Fault.from_dict(fault))

    def effects(self, key: str | None = None) -> list[Effect]:
        """The effects of this server, of one key or of all."""
        return self.ledger.effects(key)

    def requests(self, method: str | None = "POST") -> list[Received]:
        """The requests that arrived; without `method=None` only those that could change something."""
        return [received for received in self.ledger.requests(method) if received.path != "/control"]

    def answer(self, received: Received) -> Answer | None:
        """The answer to one request; None drops the connection without a byte."""
        raise NotImplementedError

    def faulty(
        self, on: str, received: Received, apply: Callable[[], Answer], *, begin: Callable[[], None] | None = None
    ) -> Answer | None:
        """Apply one request as the script says; `begin` runs before a hold that comes before applying."""
        fault = self.script.take(on, received.raw)
        headers = {"Retry-After": fault.retry_after} if fault.retry_after is not None else {}
        if fault.drop_before_apply:
            return None
        if fault.status_without_apply is not None:
            return Answer(fault.status_without_apply, {"error": "scripted, nothing was applied"}, headers)
        if fault.hold_before_apply:
            if begin is not None:
                begin()
            self.script.hold()
        answer = apply()
        if fault.hold_after_apply:
            self.script.hold()
        time.sleep(fault.delay)
        if fault.drop_after_apply:
            return None
        if fault.status_after_apply is not None:
            return Answer(fault.status_after_apply, {"error": "scripted, it was applied"}, headers)
        return answer

    def control(self, received: Received) -> Answer:
        """POST /control `{"next": [fault, …]}` queues faults, `{"release": true}` lets held requests go."""
        try:
            message = json.loads(received.body)
            self.script.next(*(Fault.from_dict(table) for table in message.get("next", [])))
        except (ValueError, TypeError, AttributeError) as error:
            return Answer(400, {"error": str(error)})
        if message.get("release"):
            self.script.release()
        return Answer(200, {"held": self.script.held})

    def book(self) -> Answer:
        """GET /ledger: every effect, and how many requests came in."""
        effects = [
            {
                "id": effect.id,
                "key": effect.key,
                "body": effect.body.decode(errors="replace"),
                "received_at": effect.received_at.isoformat(),
                "applied_at": effect.applied_at.isoformat(),
            }
            for effect in self.effects()
        ]
        return Answer(200, {"effects": effects, "requests": len(self.requests()), "held": self.script.held})


def run(kind: type[DemoServer]) -> None:
    """Serve as a process of its own until SIGTERM; prints the address as its first line.

    The secret comes from the environment variable the server names; `--data` is the ledger's file.
    """
    parser = argparse.ArgumentParser(description=kind.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--data", type=Path, default=None)
    options = parser.parse_args()
    secret = os.environ.get(kind.secret_variable, "") or "demo-secret"
    stops = {signal.SIGTERM, signal.SIGINT}
    # Blocked before any thread begins, so that the wait below is the one to see them.
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    with kind(port=options.port, data=options.data, secret=secret) as server:
        print(server.url, flush=True)
        signal.sigwait(stops)
