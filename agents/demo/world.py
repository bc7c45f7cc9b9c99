"""The demo's servers, and what survives a run of them: their ports, secrets and the number of the last report."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import Self, TypeVar

from agents.demo import repository
from agents.demo.forge import Forge
from agents.demo.hook import Hook
from agents.demo.model_server import ModelServer
from agents.demo.paths import COMMITS, MESSAGES, PULLS, Paths
from agents.demo.server import DemoServer

S = TypeVar("S", bound=DemoServer)

# What the demo's forge promises, in the words of docs/guides/providers.md. A pull request twice is seen, not paid.
_PROVIDERS = """[forge]
duplicate_cost = "visible"
key = {{ placement = "header", name = "Idempotency-Key" }}
retention = {{ for = "24h", kind = "at_least" }}
replay = {{ marker = {{ "Idempotent-Replayed" = "true" }} }}

[forge.status]
request = "GET {url}/operations/{{key}}"
headers = {{ Authorization = {{ env = "FORGE_TOKEN", prefix = "Bearer " }} }}
absence = "authoritative"
interpret = [
    {{ status = 200, path = "state", equals = "done", is = "exists" }},
    {{ status = 202, is = "in_progress" }},
    {{ status = 404, is = "absent" }},
]
output = "response"
"""
# Long enough to see a step run, short enough not to bore.
_THINK_SECONDS = 0.7


class World:
    """Forge, webhook and model, started with their old ports and secrets; the git repository beside them."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._stack = ExitStack()
        self._kept = _read(paths.world)

    def __enter__(self) -> Self:
        paths = self._paths
        for folder in (paths.folder, paths.journals):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("forge", "hook", "model"):
            self._kept.setdefault(f"{name}_secret", secrets.token_hex(16))
        self.forge = self._start("forge", Forge, paths.forge_ledger)
        self.hook = self._start("hook", Hook, paths.hook_ledger)
        self.model = self._start("model", ModelServer, paths.model_ledger)
        self.model.think_seconds = _THINK_SECONDS
        self._keep()
        paths.providers.write_text(_PROVIDERS.format(url=self.forge.url), encoding="utf-8")
        repository.make(paths.repository, gate=paths.commit_gate)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def environment(self, agent: str) -> dict[str, str]:
        """The environment of this agent's daemon. A secret goes only to the agent that uses it."""
        own = {
            PULLS: {"DEMO_FORGE_URL": self.forge.url, "FORGE_TOKEN": self.forge.secret},
            COMMITS: repository.ENVIRONMENT,
            MESSAGES: {"DEMO_HOOK_URL": self.hook.hook_url},
        }
        return {"DEMO_MODEL_URL": self.model.url, **own[agent]}

    def arguments(self, agent: str) -> list[str]:
        """The command line of this agent's daemon, after its module."""
        journal = str(self._paths.journal(agent))
        more = {PULLS: [str(self._paths.providers)], COMMITS: [str(self._paths.repository)], MESSAGES: []}
        return [journal, *more[agent]]

    def next_report(self) -> int:
        """A number no report had before, in this run or an earlier one."""
        self._kept["report"] = int(self._kept.get("report", 100)) + 1
        self._keep()
        return int(self._kept["report"])

    def _start(self, name: str, kind: type[S], data: Path) -> S:
        secret = str(self._kept[f"{name}_secret"])
        try:
            # The old port: a pending request's address is frozen with it.
            server = kind(port=int(self._kept.get(f"{name}_port", 0)), data=data, secret=secret)
        except OSError:
            server = kind(data=data, secret=secret)
        self._kept[f"{name}_port"] = server.port
        self._stack.enter_context(server)
        return server

    def _keep(self) -> None:
        temporary = self._paths.world.with_suffix(".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(self._kept, file)
        os.replace(temporary, self._paths.world)


def _read(path: Path) -> dict[str, str | int]:
    try:
        kept: dict[str, str | int] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return kept
