"""A worker or a command line visits the journal of an agent that is gone: it asks, replays, and may be killed too."""

from __future__ import annotations

import json
import sys

import pytest

from journal.errors import JournalBusy
from journal.settle.visit import reconcile_file
from tests.crash.looking import attempts, hold_reason, rows, step, task_status, until
from tests.crash.moments import killed_with_a_pull_in_flight

pytestmark = [pytest.mark.crash, pytest.mark.accept]

BUSY = 4


@pytest.fixture(autouse=True)
def credentials(scene, monkeypatch):
    """What the worker's environment knows."""
    for name in ("FORGE_TOKEN", "HOOK_URL"):
        monkeypatch.setenv(name, scene.environment[name])


def held_by_an_error_page(scene, *, applied):
    """The forge answered 500, which says nothing; the agent is stopped."""
    scene.forge.next(**{"status_after_apply" if applied else "status_without_apply": 500})
    scene.submit("once", "t", tool="pull")
    agent = scene.start()
    until(lambda: task_status(scene.journal, "t") == "waiting", "the hold")
    assert agent.stop() == 0
    assert hold_reason(scene.journal, "t", 1) == "other_outcome"


def recover_by_command(scene):
    return scene.run([sys.executable, "-m", "journal", "recover", str(scene.journal)])


@pytest.mark.parametrize("role", ["worker", "cli"])
def test_a_visit_replays_what_a_killed_agent_left_and_the_agent_goes_on_from_it(scene, role):
    killed_with_a_pull_in_flight(scene)
    if role == "worker":
        assert reconcile_file(scene.journal, role=role).settled == 1
    else:
        assert recover_by_command(scene).wait() == 0
        assert "1 settled, 0 held, 0 waiting, 0 left to the agent." in scene.log.read_text()
    assert step(scene.journal, "t", 1)["status"] == "committed"
    assert len(scene.model.calls()) == 1
    scene.start()
    scene.completed("t")
    assert len(scene.forge.requests()) == 1
    assert len(scene.forge.effects()) == 1
    roles = [boot["role"] for boot in rows(scene.journal, "SELECT role FROM agent_boot ORDER BY boot")]
    assert roles == ["agent", role, "agent"]


def test_a_visit_killed_in_the_middle_of_its_replay_is_recovered_like_any_other(scene):
    killed_with_a_pull_in_flight(scene)
    scene.forge.next(hold_after_apply=True)
    visit = recover_by_command(scene)
    assert scene.forge.script.wait_held()
    visit.kill()
    scene.forge.script.release()
    scene.start()
    scene.completed("t")
    replay, again = scene.forge.requests()
    assert replay.raw == again.raw
    assert len(scene.forge.effects()) == 1
    assert [one["verdict"] for one in attempts(scene.journal, "t", 1)] == [None, None, "applied"]


def test_a_visit_to_a_living_agents_journal_is_refused_and_changes_nothing(scene):
    scene.forge.next(hold_after_apply=True)
    scene.submit("once", "t", tool="pull")
    agent = scene.start()
    assert scene.forge.script.wait_held()
    with pytest.raises(JournalBusy) as busy:
        reconcile_file(scene.journal, role="worker")
    assert busy.value.pid == agent.pid
    assert recover_by_command(scene).wait() == BUSY
    scene.forge.script.release()
    scene.completed("t")
    assert len(scene.forge.requests()) == 1
    assert len(rows(scene.journal, "SELECT 1 FROM agent_boot")) == 1


@pytest.mark.parametrize(("applied", "requests"), [(True, 1), (False, 2)])
@pytest.mark.parametrize("by", ["worker", "agent"])
def test_an_approved_replay_asks_first_and_adopts_what_is_there(scene, applied, requests, by):
    held_by_an_error_page(scene, applied=applied)
    message_id = scene.decide("replay", "t", 1)
    if by == "worker":
        assert reconcile_file(scene.journal, role="worker").settled == 1
    scene.start()
    scene.completed("t")
    assert len(scene.forge.requests("GET")) == 1
    assert len(scene.forge.requests()) == requests
    assert len({received.raw for received in scene.forge.requests()}) == 1
    assert len(scene.forge.effects()) == 1
    assert json.loads(step(scene.journal, "t", 1)["output_json"])["number"] == 1
    [decision] = rows(scene.journal, "SELECT * FROM agent_decision")
    assert (decision["message_id"], decision["outcome"]) == (message_id, "applied")
    assert decision["consumed_attempt"] == (None if applied else 2)
