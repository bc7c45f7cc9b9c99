"""One writer at a time, known by its lock alone; and readers that it does not feel."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.crash.looking import is_in_flight, rows, until

pytestmark = pytest.mark.crash

BUSY = 4
MIB = 1024 * 1024


def in_flight(scene):
    """An agent in the middle of a step."""
    scene.forge.next(hold_after_apply=True)
    scene.submit("once", "t", tool="pull")
    agent = scene.start()
    assert scene.forge.script.wait_held()
    return agent


@pytest.mark.accept
def test_a_second_process_is_refused_with_the_first_ones_pid(scene):
    agent = in_flight(scene)
    second = scene.start()
    assert second.wait() == BUSY
    assert f"held by pid {agent.pid} (agent)" in scene.log.read_text()
    assert is_in_flight(scene.journal, "t", 1)
    assert len(scene.forge.requests()) == 1
    scene.forge.script.release()
    scene.completed("t")
    assert len(scene.forge.requests()) == 1


@pytest.mark.accept
def test_a_killed_agents_journal_is_free_at_once(scene):
    agent = in_flight(scene)
    agent.kill()
    scene.forge.script.release()
    scene.start()
    scene.completed("t")
    assert len(scene.forge.effects()) == 1
    boots = rows(scene.journal, "SELECT ended FROM agent_boot ORDER BY boot")
    assert [boot["ended"] for boot in boots] == ["vanished", None]


@pytest.mark.accept
def test_a_stopped_agents_journal_is_not_free(scene):
    agent = in_flight(scene)
    agent.signal(signal.SIGSTOP)
    second = scene.start()
    assert second.wait() == BUSY
    assert f"held by pid {agent.pid} (agent)" in scene.log.read_text()
    scene.forge.script.release()
    agent.signal(signal.SIGCONT)
    scene.completed("t")
    assert len(scene.forge.requests()) == 1


def watched_writer(scene, seconds):
    """A steady writer under three readers: (steps done, steps a second, the log's largest size, each reader's words)."""
    log = scene.journal.with_name("agent.db-wal")
    writer = scene.start("steady", RATE="200", SECONDS=str(seconds))
    readers = [scene.start("watching", str(number)) for number in range(3)]
    largest = 0

    def finished():
        nonlocal largest
        if log.exists():
            largest = max(largest, log.stat().st_size)
        return not writer.is_alive

    for _ in range(1 + seconds // 20):
        if writer.is_alive:
            until(lambda: finished() or rows_of(scene) > 200 * seconds, "the writer's end", seconds=seconds + 30)
    assert writer.wait() == 0, scene.log.read_text()
    for reader in readers:
        assert reader.stop() == 0
    words = [Path(scene.folder, f"watching-{number}").read_text().split() for number in range(3)]
    steps, rate = Path(scene.folder, "steady").read_text().split()
    return int(steps), int(rate), largest, [(int(polls), int(busy), int(seen)) for polls, busy, seen in words]
