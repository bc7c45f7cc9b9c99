"""The four kills of the demo. Each waits for its moment, which a server or git holds open meanwhile."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from typing import ClassVar

from agents.demo import daemon, facts, repository
from agents.demo.facts import Kill
from agents.demo.paths import AGENTS, COMMITS, MESSAGES, PULLS, Paths
from agents.demo.server import DemoServer
from agents.demo.world import World
from journal import clock, post_submit

# Yields until the moment has come (True) or has not come in time (False): nobody waits in here.
Moment = Generator[None, None, bool]
HANDLERS = {PULLS: "fix", COMMITS: "note", MESSAGES: "announce"}
# The mutating step of each of the three handlers: report, plan, act, summary.
ACTING_STEP = 2
# Patience for a daemon that starts, or starts again after deaths that were not ours.
_MOMENT_SECONDS = 60.0


def submit(paths: Paths, agent: str, number: int) -> str:
    """Leave report `number` for an agent; returns the task's id."""
    task_id = f"report-{number}"
    post_submit(paths.journal(agent), HANDLERS[agent], task_id=task_id, number=number)
    return task_id


class Scene(ABC):
    """One kill. `prepare` gives the agent a report and sets the trap; `strike` waits for the moment and kills."""

    kind: ClassVar[str]
    where: ClassVar[str] = "in mid-request"

    def __init__(self, paths: Paths, world: World) -> None:
        self.paths = paths
        self.world = world
        self.agent = facts.KINDS[self.kind]
        self.mark = ""
        self.task_id = ""

    def prepare(self) -> None:
        """Set the trap before the task exists."""
        number = self.world.next_report()
        # Every effect names its report by number, so the trap snaps for this task's request only.
        self.mark = f"#{number} "
        self.set_trap()
        self.task_id = submit(self.paths, self.agent, number)

    def strike(self) -> Generator[None, None, Kill | None]:
        """Kill at the moment and write down that it was done; None where the moment never came."""
        try:
            if not (yield from self.moment()):
                return None
            killed_at = clock.wall()
            pid = daemon.kill(self.paths.journal(self.agent))
            if pid is None:
                return None
            kill = Kill(self.kind, self.agent, self.task_id, ACTING_STEP, pid, killed_at)
            facts.add(self.paths.story, kill)
            return kill
        finally:
            self.open_trap()

    @abstractmethod
    def set_trap(self) -> None: ...

    @abstractmethod
    def moment(self) -> Moment: ...

    @abstractmethod
    def open_trap(self) -> None: ...


class _AppliedAndUnanswered(Scene):
    """The server has applied the request and has not answered it."""

    @property
    @abstractmethod
    def server(self) -> DemoServer: ...

    def set_trap(self) -> None:
        self.server.next(hold_after_apply=True, match=self.mark)

    def moment(self) -> Moment:
        return (yield from wait_until(lambda: self.server.script.held > 0))

    def open_trap(self) -> None:
        self.server.script.release()


class MidRequest(_AppliedAndUnanswered):
    """The forge dedupes by key: the same bytes go out again."""

    kind = facts.MID_REQUEST

    @property
    def server(self) -> DemoServer:
        return self.world.forge


class Unanswerable(_AppliedAndUnanswered):
    """The webhook has no idempotency keys and no status check: nothing is sent again, and a person decides."""

    kind = facts.UNANSWERABLE

    @property
    def server(self) -> DemoServer:
        return self.world.hook


class After504(Scene):
    """The forge applied, answered 504, and is being asked what became of the key."""

    kind = facts.AFTER_504
    where = "after a 504"

    def set_trap(self) -> None:
        self.world.forge.next(hold_after_apply=True, status_after_apply=504, match=self.mark)

    def moment(self) -> Moment:
        forge = self.world.forge
        if not (yield from wait_until(lambda: forge.script.held > 0)):
            return False
        key = next(effect.key for effect in reversed(forge.effects()) if self.mark.encode() in effect.body)
        forge.next(on="status", match=str(key), hold_before_apply=True)
        forge.script.release()
        return (yield from wait_until(lambda: forge.script.held > 0))

    def open_trap(self) -> None:
        self.world.forge.script.release()


class Unrecorded(Scene):
    """The commit is made; git has not yet returned to the tool that made it."""

    kind = facts.UNRECORDED
    where = "between its commit and the note of it"

    def set_trap(self) -> None:
        self.paths.commit_gate.touch()

    def moment(self) -> Moment:
        return (yield from wait_until(lambda: self.mark in repository.newest_message(self.paths.repository)))

    def open_trap(self) -> None:
        self.paths.commit_gate.unlink(missing_ok=True)


# All but the last begin together; the last is the forge agent's second, after its first is over.
SCENES: tuple[type[Scene], ...] = (MidRequest, Unrecorded, Unanswerable, After504)


def wait_until(condition: Callable[[], bool], *, seconds: float = _MOMENT_SECONDS) -> Moment:
    """Yield until a condition holds (True) or did not hold in time (False)."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        yield
    return True


__all__ = ["AGENTS", "HANDLERS", "SCENES", "Scene", "submit"]
