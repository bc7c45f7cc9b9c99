"""One writer at a time, known by its lock alone; and readers that it does not feel."""

from __future__ import annotations

import signal

import pytest

from tests.crash.looking import is_in_flight, rows, until

pytestmark = pytest.mark.crash

BUSY = 4
RATE = 200
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


def watched_writer(scene, seconds, least_polls):
    """A steady writer under three readers, who each look so often at least: (steps, steps a second, the log's largest
    size, what each reader saw)."""
    log = scene.journal.with_name("agent.db-wal")
    writer = scene.start("steady", RATE=str(RATE), SECONDS=str(seconds))
    until(lambda: rows(scene.journal, "SELECT 1 FROM agent_step_journal LIMIT 1"), "the first step")
    readers = [scene.start("watching", str(number)) for number in range(3)]
    told = [scene.folder / f"watching-{number}" for number in range(3)]
    until(lambda: all(path.exists() for path in told), "a look of each reader", seconds=60)
    (scene.folder / "watched").touch()
    sizes = [0]

    def ended():
        if log.exists():
            sizes.append(log.stat().st_size)
        if all(int(path.read_text().split()[0]) >= least_polls for path in told):
            (scene.folder / "enough").touch()
        return not writer.is_alive

    until(ended, "the writer's end", seconds=120 + 6 * seconds)
    assert writer.wait() == 0, scene.log.read_text()
    assert [reader.stop() for reader in readers] == [0, 0, 0]
    steps, rate = (scene.folder / "steady").read_text().split()
    seen = [path.read_text().split() for path in told]
    return int(steps), int(rate), max(sizes), [(int(polls), int(busy), int(last)) for polls, busy, last in seen]


@pytest.mark.parametrize(
    ("seconds", "least_polls"),
    [
        pytest.param(3, 3, marks=pytest.mark.accept, id="three seconds"),
        pytest.param(60, 60, marks=[pytest.mark.soak, pytest.mark.slow], id="sixty seconds"),
    ],
)
def test_three_polling_readers_neither_lock_an_agent_nor_let_its_log_grow(scene, capsys, seconds, least_polls):
    steps, rate, largest, readers = watched_writer(scene, seconds, least_polls)
    with capsys.disabled():
        print(
            f"\n{steps} steps, {rate} a second, under 3 readers; largest log {largest / MIB:.1f} MiB; polls {readers}"
        )
    # The writer catches up with its clock, and goes on until each has looked often enough: a machine with no time for
    # them only makes this last longer.
    assert steps > seconds * RATE
    # No lock error: the writer ended with 0, and every step it began is committed.
    stored = rows(scene.journal, "SELECT status, count(*) AS n FROM agent_step_journal GROUP BY status")
    assert [(row["status"], row["n"]) for row in stored] == [("committed", steps)]
    assert 0 < largest < 8 * MIB
    assert all(polls >= least_polls and last > 0 for polls, _, last in readers)
