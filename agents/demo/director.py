"""The demo's director: starts the world and the three agents, kills at telling moments, then keeps them busy.

No Django here: `python -m agents.demo.director FOLDER` runs the same as `manage.py demo`.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from agents.demo import facts
from agents.demo.paths import AGENTS, Paths
from agents.demo.scenes import SCENES, Scene, submit
from agents.demo.world import World
from agents.processes.supervisor import STOP_SIGNALS, Part, Supervisor

CHECKOUT = Path(__file__).resolve().parent.parent.parent
# One report every ten seconds, so one per agent every thirty; after some minutes half as many.
REPORT_SECONDS = 10.0
LIVELY_REPORTS = 36
# Of the five seconds that `up` gives the demo to stop; the rest is for what needs SIGKILL.
_GRACE_SECONDS = 2.5


class Director:
    """One run of the demo in `folder`. What an earlier run has shown is not shown again."""

    def __init__(self, folder: Path, *, say: Callable[[str], None]) -> None:
        self._paths = Paths(folder.absolute())
        self._say = say

    def run(self) -> None:
        """Run until SIGTERM, SIGINT or SIGHUP; nothing it started is left when this returns. Main thread only."""
        # Before the servers' threads begin, so that only the supervisor's own wait sees these signals.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        with World(self._paths) as world:
            agents = [Part(agent, self._command(agent, world), self._environment(agent, world)) for agent in AGENTS]
            supervisor = Supervisor(agents, cwd=CHECKOUT, beats=dict, say=self._say, grace=_GRACE_SECONDS)
            story = itertools.chain(self._tell(world), self._keep_busy(world))
            supervisor.run(each_turn=lambda: next(story))

    def _command(self, agent: str, world: World) -> list[str]:
        journal = str(self._paths.journal(agent))
        supervise = [sys.executable, "-m", "journal", "supervise", "--quiet", "--journal", journal, "--"]
        return [*supervise, sys.executable, "-m", AGENTS[agent], *world.arguments(agent)]

    def _environment(self, agent: str, world: World) -> dict[str, str]:
        return {**os.environ, **world.environment(agent)}

    def _tell(self, world: World) -> Iterator[None]:
        """The four kills, in steps that never wait: the supervisor takes one step a turn."""
        done = facts.read(self._paths.story)
        scenes = [scene(self._paths, world) for scene in SCENES if scene.kind not in done]
        together = [scene for scene in scenes if scene.kind != facts.AFTER_504]
        for scene in together:
            scene.prepare()
        for scene in together:
            yield from self._strike(scene)
        for scene in scenes:
            if scene not in together:
                scene.prepare()
                yield from self._strike(scene)

    def _strike(self, scene: Scene) -> Iterator[None]:
        if (yield from scene.strike()):
            self._say(f"demo: killed the agent '{scene.agent}' ({scene.kind.replace('_', ' ')})")
        else:
            self._say(f"demo: the moment to kill '{scene.agent}' did not come; its journal says why")

    def _keep_busy(self, world: World) -> Iterator[None]:
        told = False
        for number, agent in enumerate(itertools.cycle(AGENTS)):
            yield from _rest(REPORT_SECONDS * (1 if number < LIVELY_REPORTS else 2))
            if not self._paths.is_full():
                submit(self._paths, agent, world.next_report())
            elif not told:
                told = True
                self._say(
                    f"demo: {self._paths.folder} is full, so no further report comes. Begin anew: make demo-reset"
                )


def _rest(seconds: float) -> Iterator[None]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield


def say(sentence: str) -> None:
    """One line on standard output, at once."""
    print(sentence, flush=True)


if __name__ == "__main__":
    Director(Path(sys.argv[1]), say=say).run()
