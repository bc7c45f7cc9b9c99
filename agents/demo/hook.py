"""A local webhook receiver. It takes every message and has no idempotency keys and no status check."""

from __future__ import annotations

from agents.demo.ledger import Received
from agents.demo.server import DemoServer, run
from agents.demo.wire import Answer


class Hook(DemoServer):
    """POST to `hook_url`: each request is one more message delivered. The address itself is the secret."""

    secret_variable = "HOOK_SECRET"

    @property
    def hook_url(self) -> str:
        """The secret address messages go to."""
        return f"{self.url}/hooks/{self.secret}"

    def answer(self, received: Received) -> Answer | None:
        match received.method, received.path.split("/")[1:]:
            case "POST", ["hooks", _]:
                return self.faulty("effect", received, lambda: self._deliver(received))
            case "GET", ["ledger"]:
                return self.book()
            case "POST", ["control"]:
                return self.control(received)
        return Answer(404, {"error": "no such page"})

    def _deliver(self, received: Received) -> Answer:
        self.ledger.apply(received)
        return Answer(200, {"ok": True})


if __name__ == "__main__":
    run(Hook)
