"""The moments at which agents die or wait, by name; each waits for its condition and leaves the scene there."""

from __future__ import annotations

from tests.crash.looking import is_in_flight, task_status, until
from tests.crash.scene import AgentProcess, Scene


def killed_with_a_pull_in_flight(scene: Scene) -> bytes:
    """The request left the agent, never arrived at the forge, and the agent is dead. Returns its bytes."""
    scene.forge_gate.swallow()
    scene.submit("once", "t", tool="pull")
    agent = scene.start()
    [lost] = until(lambda: scene.forge_gate.swallowed, "the request")
    agent.kill()
    scene.forge_gate.open()
    return lost


def held_by_a_living_agent(scene: Scene) -> AgentProcess:
    """An agent died with a message's intent on disk and nothing sent; the next one is alive and holds it."""
    scene.hook_gate.stall()
    scene.submit("once", "t", tool="message")
    agent = scene.start()
    until(lambda: is_in_flight(scene.journal, "t", 1), "the intent")
    agent.kill()
    scene.hook_gate.open()
    agent = scene.start()
    until(lambda: task_status(scene.journal, "t") == "waiting", "the hold")
    return agent


def held_by_nobody(scene: Scene) -> None:
    """As above, and that agent is stopped too."""
    assert held_by_a_living_agent(scene).stop() == 0
