"""A local forge: it opens one pull request per idempotency key and answers status checks by key."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from agents.demo.ledger import Operation, Received
from agents.demo.server import DemoServer, run
from agents.demo.wire import Answer
from journal import clock

# Longer than any demo runs; a provider forgets its keys some day, and so does this one.
KEEPS_KEYS = timedelta(hours=24)


class Forge(DemoServer):
    """POST /pulls honours `Idempotency-Key`; GET /operations/<key> answers 200 done, 202 in progress, 404 unknown."""

    secret_variable = "FORGE_TOKEN"

    def __init__(
        self,
        *,
        port: int = 0,
        data: Path | None = None,
        secret: str = "demo-secret",
        keeps_keys: timedelta = KEEPS_KEYS,
    ) -> None:
        super().__init__(port=port, data=data, secret=secret)
        self.keeps_keys = keeps_keys

    def answer(self, received: Received) -> Answer | None:
        match received.method, received.path.split("/")[1:]:
            case "POST", ["pulls"]:
                return self.faulty(
                    "effect", received, lambda: self._open(received), begin=lambda: self._begin(received)
                )
            case "GET", ["operations", key]:
                return self.faulty("status", received, lambda: self._state(key))
            case "GET", ["ledger"]:
                return self.book()
            case "POST", ["control"]:
                return self.control(received)
        return Answer(404, {"error": "no such page"})

    def _open(self, received: Received) -> Answer:
        fingerprint = hashlib.sha256(received.body).hexdigest()
        with self.ledger.transaction():
            known = self._known(received.key)
            if known is not None and known.fingerprint != fingerprint:
                return Answer(422, {"error": "this key was used with another payload"})
            if known is not None and known.state == "done":
                return Answer(known.status or 201, json.loads(known.response or "{}"), {"Idempotent-Replayed": "true"})
            if known is not None and known.request != received.n:
                return Answer(409, {"error": "a request with this key is in progress"})
            try:
                wanted = json.loads(received.body)
                title, head = wanted["title"], wanted["head"]
            except (ValueError, KeyError, TypeError):
                return Answer(400, {"error": "a pull request needs title and head"})
            # The effect and the answer kept under its key are one change: no kill leaves one without the other.
            number = self.ledger.apply(received).id
            pull = {"number": number, "title": title, "head": head, "state": "open"}
            if received.key is not None:
                begun = self._operation(received)
                self.ledger.remember(replace(begun, state="done", status=201, response=json.dumps(pull)))
            return Answer(201, pull)

    def _begin(self, received: Received) -> None:
        with self.ledger.transaction():
            if received.key is not None and self._known(received.key) is None:
                self.ledger.remember(self._operation(received))

    def _operation(self, received: Received) -> Operation:
        fingerprint = hashlib.sha256(received.body).hexdigest()
        return Operation(received.key or "", received.n, fingerprint, "in_progress", None, None, received.at)

    def _known(self, key: str | None) -> Operation | None:
        known = self.ledger.operation(key) if key is not None else None
        if known is not None and clock.wall() - known.created_at > self.keeps_keys:
            self.ledger.forget(known.key)
            return None
        return known

    def _state(self, key: str) -> Answer:
        known = self._known(key)
        if known is None:
            return Answer(404, {"state": "unknown"})
        if known.state == "in_progress":
            return Answer(202, {"state": "in_progress"})
        return Answer(200, {"state": "done", "response": json.loads(known.response or "{}")})


if __name__ == "__main__":
    run(Forge)
