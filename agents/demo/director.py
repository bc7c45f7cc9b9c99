"""The demo's director: starts the world and the three agents, kills at telling moments, then keeps them busy.

No Django here: `python -m agents.demo.director FOLDER` runs the same as `manage.py demo`.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

from agents.demo import facts
from agents.demo.paths import AGENTS, Paths
from agents.demo.scenes import SCENES, Scene, submit
from agents.demo.world import World
from agents.processes.tree import adopt_orphans, end_descendants, reap_children, start_process

CHECKOUT = Path(__file__).resolve().parent.parent.parent
# One report every ten seconds, so one per agent every thirty; after some minutes half as many.
REPORT_SECONDS = 10.0
LIVELY_REPORTS = 36
# Of the four seconds a stop may take; the rest is for what needs SIGKILL.
_GRACE_SECONDS = 2.5
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asked the director to end."""


class Director:
    """One run of the demo in `folder`. What an earlier run has shown is not shown again."""

    def __init__(self, folder: Path, *, say: Callable[[str], None]) -> None:
        self._paths = Paths(folder.absolute())
        self._say = say
        self._running: dict[int, str] = {}

    def run(self) -> None:
        """Run until SIGTERM, SIGINT or SIGHUP; nothing it started is left when this returns. Main thread only."""
        before = {number: signal.signal(number, _stop) for number in _STOPS}
        adopt_orphans()
        try:
            with World(self._paths) as world:
                try:
                    for agent in AGENTS:
                        self._start(agent, world)
                    self._tell(world)
                    self._keep_busy(world)
                finally:
                    for number in _STOPS:
                        signal.signal(number, signal.SIG_IGN)
                    self._end()
        except Stopped:
            pass
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start(self, agent: str, world: World) -> None:
        command = [
            sys.executable,
            "-m",
            "journal",
            "supervise",
            "--quiet",
            "--journal",
            str(self._paths.journal(agent)),
        ]
        command += ["--", sys.executable, "-m", AGENTS[agent], *world.arguments(agent)]
        pid = start_process(command, env={**os.environ, **world.environment(agent)}, cwd=CHECKOUT)
        self._running[pid] = agent

    def _tell(self, world: World) -> None:
        done = facts.read(self._paths.story)
        scenes = [scene(self._paths, world) for scene in SCENES if scene.kind not in done]
        together = [scene for scene in scenes if scene.kind != facts.AFTER_504]
        for scene in together:
            scene.prepare()
        for scene in together:
            self._strike(scene)
        for scene in scenes:
            if scene not in together:
                scene.prepare()
                self._strike(scene)

    def _strike(self, scene: Scene) -> None:
        if scene.strike():
            self._say(f"demo: killed the agent '{scene.agent}' ({scene.kind.replace('_', ' ')})")
        else:
            self._say(f"demo: the moment to kill '{scene.agent}' did not come; its journal says why")

    def _keep_busy(self, world: World) -> None:
        told = False
        for number, agent in enumerate(itertools.cycle(AGENTS)):
            self._rest(REPORT_SECONDS * (1 if number < LIVELY_REPORTS else 2), world)
            if not self._paths.is_full():
                submit(self._paths, agent, world.next_report())
            elif not told:
                told = True
                self._say(
                    f"demo: {self._paths.folder} is full, so no further report comes. Begin anew: make demo-reset"
                )

    def _rest(self, seconds: float, world: World) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for pid, _ in reap_children():
                if (agent := self._running.pop(pid, None)) is not None:
                    self._start(agent, world)
            time.sleep(0.5)

    def _end(self) -> None:
        """End the supervisors, which end their daemons; whatever is left after the grace is killed."""
        deadline = time.monotonic() + _GRACE_SECONDS
        for pid in self._running:
            os.kill(pid, signal.SIGTERM)
        while self._running and time.monotonic() < deadline:
            for pid, _ in reap_children():
                self._running.pop(pid, None)
            time.sleep(0.02)
        end_descendants(grace=0.0)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    # One stop is enough: a second must not cut the ending short.
    for each in _STOPS:
        signal.signal(each, signal.SIG_IGN)
    raise Stopped


def say(sentence: str) -> None:
    """One line on standard output, at once."""
    print(sentence, flush=True)


if __name__ == "__main__":
    Director(Path(sys.argv[1]), say=say).run()
