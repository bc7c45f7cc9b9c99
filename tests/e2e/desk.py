"""A desk to work at: a running dashboard over one folder of journals, agents that write them, people who sign in."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Self

from agents.demo.ledger import Effect
from journal import post_submit
from tests.crash import looking
from tests.crash.scene import ROOT, AgentProcess, Scene
from tests.running_dashboard import Up, a_data_folder, clean_environment, free_port, get

# The step of `errand` that changes something outside.
ERRAND = 1
# The agents of the desk, and what became of them.
ALIVE, SUPERVISED, STOPPED, KILLED = "alive", "supervised", "stopped", "killed"


class Desk:
    """The providers of a `Scene`, a dashboard that finds `<folder>/*.db`, and who is signed in to it.

    The dashboard's worker knows POST_URL and FORGE_TOKEN, never HOOK_URL. Its clock is the scene's.
    """

    def __init__(self, folder: Path) -> None:
        self.journals = folder / "journals"
        self.journals.mkdir()
        (folder / "scene").mkdir()
        self.scene = Scene(folder / "scene")
        self._data = a_data_folder(folder / "data")
        self._stack = ExitStack()
        self._cookies: dict[str, list[dict[str, object]]] = {}

    def __enter__(self) -> Self:
        self._stack.enter_context(self.scene)
        self._environment = {
            "STEPKEEPER_JOURNALS": f"{self.journals}/*.db",
            "STEPKEEPER_TEST_CLOCK": str(self.scene.clock),
            "POST_URL": self.scene.environment["HOOK_URL"],
            "FORGE_TOKEN": self.scene.environment["FORGE_TOKEN"],
        }
        return self

    def open(self, port: int | None = None) -> None:
        """Start the dashboard; journals that are there now are found at once, later ones within ten seconds."""
        self.up = Up(self._data, port or free_port(), env=self._environment)
        self._stack.callback(self.up.stop)
        self.up.link()

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.up.port}"

    def journal(self, name: str) -> Path:
        return self.journals / f"{name}.db"

    def agent(self, name: str, *arguments: str, supervised: bool = False) -> AgentProcess:
        """Run the errands agent on a journal of its own."""
        script = [sys.executable, "-m", "tests.e2e.agents.errands", *arguments]
        supervise = [sys.executable, "-m", "journal", "supervise", "--journal", str(self.journal(name)), "--"]
        return self.scene.run(
            [*supervise, *script] if supervised else script,
            JOURNAL=str(self.journal(name)),
            AGENT=f"agent {name}",
            POST_URL=self.scene.environment["HOOK_URL"],
        )

    def submit(self, name: str, task_id: str, *, tool: str = "letter", text: str = "") -> None:
        """Leave an errand for the agent; its text names the task, so that its effects can be told apart."""
        post_submit(self.journal(name), "errand", task_id=task_id, tool=tool, text=text or sentence(task_id))

    def hold(self, task_id: str, *, name: str = ALIVE, tool: str = "letter") -> None:
        """An errand whose request was lost on the way: its step is held, and nothing arrived."""
        self.scene.hook.next(drop_before_apply=True, match=sentence(task_id))
        self.submit(name, task_id, tool=tool)
        self.wait_held(task_id, name=name)

    def wait_held(self, task_id: str, *, name: str = ALIVE) -> None:
        """Wait until the errand is held and its task waits."""
        path = self.journal(name)
        looking.until(lambda: looking.hold_reason(path, task_id, ERRAND), f"the hold of {task_id}")
        looking.until(lambda: looking.task_status(path, task_id) == "waiting", f"the wait of {task_id}")

    def wait_status(self, task_id: str, status: str = "completed", *, name: str = ALIVE) -> None:
        """Wait until the journal says this of the task."""
        looking.until(
            lambda: looking.task_status(self.journal(name), task_id) == status,
            f"{status} {task_id}, which is {looking.task_status(self.journal(name), task_id)}",
        )

    def pass_time(self, **span: float) -> None:
        """Move the clock of agents and dashboard on, and wait until watch has shown a sign of life since."""
        self.scene.move_clock(timedelta(**span))
        looking.until(lambda: b"ok watch" in get(self.up.port, "/healthz")[1], "a beat of watch")

    def effects(self, task_id: str) -> list[Effect]:
        """Each time the errand really arrived, as its receivers' ledgers say."""
        wanted = sentence(task_id).encode()
        everywhere = [*self.scene.hook.effects(), *self.scene.forge.effects()]
        return [effect for effect in everywhere if wanted in effect.body]

    def link(self, person: str, role: str) -> str:
        """A one-time sign-in link, made at the shell as an admin does."""
        command = [sys.executable, str(ROOT / "manage.py"), "login-link", "--user", person, "--role", role]
        own = {"STEPKEEPER_DATA": str(self._data), "PORT": str(self.up.port), **self._environment}
        return subprocess.run(
            command, env={**clean_environment(), **own}, check=True, capture_output=True, text=True
        ).stdout.strip()


def sentence(task_id: str) -> str:
    """The text an errand sends."""
    return f"On behalf of {task_id}."
