"""The scene of every crash test: a provider with keys, one without, a model, and one agent's journal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from agents.demo.forge import Forge
from agents.demo.hook import Hook
from agents.demo.model_server import ModelServer
from journal import clock, post_submit
from journal.inbox import mailbox
from tests.crash import looking
from tests.crash.gate import Gate
from tests.running_dashboard import clean_environment

ROOT = Path(__file__).resolve().parents[2]
SECRET = "demo-secret"

_PROVIDERS = """[forge]
duplicate_cost = "visible"
key = { placement = "header", name = "Idempotency-Key" }
retention = { for = "24h", kind = "at_least" }
replay = { marker = { "Idempotent-Replayed" = "true" } }

[forge.status]
request = "GET /operations/{key}"
headers = { Authorization = { env = "FORGE_TOKEN", prefix = "Bearer " } }
absence = "authoritative"
interpret = [
    { status = 200, path = "state", equals = "done", is = "exists" },
    { status = 202, is = "in_progress" },
    { status = 404, is = "absent" },
]
output = "response"
"""


class AgentProcess:
    """One run of an agent's script."""

    def __init__(self, command: list[str], environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self._process.wait(10)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """Its exit code."""
        return self._process.wait(120)

    def stop(self) -> int:
        """SIGTERM, as a service manager does; its exit code."""
        if self.is_alive:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
        try:
            return self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


class Scene:
    """Servers in this process, agents in their own. Use it with `with`: it ends every process it started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = folder / "agent.db"
        self.clock = folder / "clock"
        self.log = folder / "agent.log"
        self._agents: list[AgentProcess] = []
        self._stack = ExitStack()
        self._moved = 0.0

    def __enter__(self) -> Self:
        enter = self._stack.enter_context
        self.forge = enter(Forge(secret=SECRET))
        self.hook = enter(Hook(secret=SECRET))
        self.model = enter(ModelServer(secret="no-secret-of-this-name"))
        self.forge_gate = enter(Gate(self.forge.port))
        self.hook_gate = enter(Gate(self.hook.port))
        (self.folder / "providers.toml").write_text(_PROVIDERS)
        self.environment = {
            "STEPKEEPER_TEST_CLOCK": str(self.clock),
            "JOURNAL": str(self.journal),
            "PROVIDERS": str(self.folder / "providers.toml"),
            "FOLDER": str(self.folder),
            "FORGE_URL": f"http://127.0.0.1:{self.forge_gate.port}",
            "FORGE_TOKEN": SECRET,
            "HOOK_URL": f"http://127.0.0.1:{self.hook_gate.port}/hooks/{SECRET}",
            "DEMO_MODEL_URL": self.model.url,
        }
        return self

    def __exit__(self, *_: object) -> None:
        for agent in self._agents:
            if agent.is_alive:
                agent.kill()
        for server in (self.forge, self.hook):
            # A request that is still held, after a test that failed, would keep its gate from closing.
            server.script.close()
        self._stack.close()

    def start(self, script: str = "serving", *arguments: str, **environment: str) -> AgentProcess:
        """Run an agent's script from `tests/crash/agents`."""
        return self.run([sys.executable, "-m", f"tests.crash.agents.{script}", *arguments], **environment)

    def run(self, command: list[str], **environment: str) -> AgentProcess:
        """Run any command in the agent's environment."""
        own = {**clean_environment(), **self.environment, "PYTHONPATH": str(ROOT), **environment}
        agent = AgentProcess(command, own, self.log)
        self._agents.append(agent)
        return agent

    def submit(self, handler: str, task_id: str, **input: Any) -> None:
        """Leave a submission for the agent, alive or not."""
        post_submit(self.journal, handler, task_id=task_id, **input)

    def move_clock(self, span: timedelta) -> None:
        """Move the clock of every process of this scene, and of this one, on by `span`."""
        self._moved += span.total_seconds()
        temporary = self.clock.with_suffix(".new")
        temporary.write_text(str(self._moved))
        os.replace(temporary, self.clock)

    def decide(self, kind: str, task_id: str, index: int, **other: object) -> str:
        """Post an operator's decision, bound to what the journal shows now unless `other` says otherwise."""
        return mailbox.post_message(self.journal, self.decision(kind, task_id, index, **other))

    def decision(self, kind: str, task_id: str, index: int, **other: object) -> dict[str, object]:
        """The message of `decide`."""
        step = looking.step(self.journal, task_id, index)
        sent = [one for one in looking.attempts(self.journal, task_id, index) if one["verdict"] != "not_sent"]
        return {
            "kind": "decision",
            "decision": kind,
            "task_id": task_id,
            "step_index": index,
            "key": step["idempotency_key"],
            "payload_sha256": step["payload_sha256"],
            "dispatches": len(sent),
            "actor": "ada",
            "reason": "the receiver says it got nothing",
            "expires_at": clock.text(clock.wall() + timedelta(minutes=15)),
            **other,
        }

    def completed(self, task_id: str) -> None:
        """Wait until the task is completed."""
        looking.until(lambda: looking.task_status(self.journal, task_id) == "completed", f"completion of {task_id}")
