"""The demo's director: starts the world and the three agents, kills at telling moments, then keeps them busy.

No Django here: `python -m agents.demo.director FOLDER` runs the same as `manage.py demo`.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agents.demo import daemon, facts
from agents.demo.facts import Kill
from agents.demo.paths import AGENTS, Paths
from agents.demo.scenes import SCENES, Scene, submit, wait_until
from agents.demo.world import World
from agents.processes.supervisor import STOP_SIGNALS, Part, Supervisor
from journal import clock
from journal.errors import JournalUnreadable
from journal.reader import Reader

CHECKOUT = Path(__file__).resolve().parent.parent.parent
# One report every ten seconds, so one per agent every thirty; after some minutes half as many.
REPORT_SECONDS = 10.0
LIVELY_REPORTS = 36
# Of the five seconds that `up` gives the demo to stop; the rest is for what needs SIGKILL.
_GRACE_SECONDS = 2.5
# The kills wait for the first page to be seen, but not for ever.
_VISITOR_SECONDS = 60.0
_END = object()


class Director:
    """One run of the demo in `folder`. Each run tells its story anew, in the journals and ledgers that are there."""

    def __init__(self, folder: Path, *, say: Callable[[str], None]) -> None:
        self._paths = Paths(folder.absolute())
        self._say = say

    def run(self) -> None:
        """Run until SIGTERM, SIGINT or SIGHUP; nothing it started is left when this returns. Main thread only."""
        # Before the servers' threads begin, so that only the supervisor's own wait sees these signals.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        facts.forget(self._paths)
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
        for agent in AGENTS:
            submit(self._paths, agent, world.next_report())
        self._say("demo: the agents work. The kills begin when you open the first page, or in a minute.")
        yield from wait_until(self._paths.seen.exists, seconds=_VISITOR_SECONDS)
        scenes = [scene(self._paths, world) for scene in SCENES]
        # The last scene is the forge agent's second: it begins after its first is over.
        for together in (scenes[:-1], scenes[-1:]):
            for scene in together:
                scene.prepare()
            yield from _side_by_side([self._strike(scene) for scene in together])

    def _strike(self, scene: Scene) -> Iterator[None]:
        kill = yield from scene.strike()
        if kill is None:
            self._say(f"demo: the moment to kill {scene.agent} did not come; its journal says why")
            return
        self._say(f"demo: killed {kill.agent} (pid {kill.pid}, SIGKILL) {scene.where}")
        journal = self._paths.journal(kill.agent)
        if (yield from wait_until(lambda: bool(_describe_end(journal, kill)))):
            took = (clock.wall() - kill.killed_at).total_seconds()
            self._say(f"demo: resumed {kill.agent} after {took:.1f} s: {_describe_end(journal, kill)}")

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


def _describe_end(journal: Path, kill: Kill) -> str:
    """What became of the killed step; empty while its agent is not back, or is still at it."""
    pid = daemon.pid_of(journal)
    if pid is None or pid == kill.pid:
        return ""
    try:
        step = Reader(journal).step(kill.task_id, kill.step_index)
    except JournalUnreadable:
        return ""
    if step is None or (step.status == "pending" and step.hold_reason is None):
        return ""
    return f"it runs as pid {pid}; the step " + ("waits for you" if step.hold_reason else f"is {step.status}")


def _side_by_side(stories: Sequence[Iterator[None]]) -> Iterator[None]:
    """One step of each story a turn, until all are told."""
    left = list(stories)
    while left:
        left = [story for story in left if next(story, _END) is not _END]
        yield


def say(sentence: str) -> None:
    """One line on standard output, at once."""
    print(sentence, flush=True)


if __name__ == "__main__":
    Director(Path(sys.argv[1]), say=say).run()
