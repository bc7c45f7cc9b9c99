"""Kill between the intent and the request, and between the effect and its answer: one effect, same key, same bytes."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.crash.looking import attempts, hold_reason, is_in_flight, rows, step, task_status, until
from tests.crash.moments import killed_with_a_pull_in_flight
from tests.crash.scene import SECRET

pytestmark = [pytest.mark.crash, pytest.mark.accept]

KEYED = ["pull", "keyed_pull"]
LATE = timedelta(minutes=16)  # past the in-flight horizon: only then does "absent" prove anything


def provider(scene, tool):
    return (scene.forge, scene.forge_gate) if "pull" in tool else (scene.hook, scene.hook_gate)


def kill_before_the_request_leaves(scene, tool):
    """The intent is on disk; its connection stands in a full backlog, so no byte of it has left the process."""
    server, gate = provider(scene, tool)
    gate.stall()
    scene.submit("once", "t", tool=tool)
    agent = scene.start()
    until(lambda: is_in_flight(scene.journal, "t", 1), "the intent")
    agent.kill()
    gate.open()
    assert server.requests() == []


def kill_after_the_effect(scene, tool):
    """The provider has applied the request and not answered it."""
    server, _ = provider(scene, tool)
    server.next(hold_after_apply=True)
    scene.submit("once", "t", tool=tool)
    agent = scene.start()
    assert server.script.wait_held()
    agent.kill()
    server.script.release()
    assert len(server.effects()) == 1


def assert_it_is_what_the_journal_holds(scene, received):
    """The request as it stands in the journal: its key, its arguments, and for an HTTP tool every byte and header."""
    stored = step(scene.journal, "t", 1)
    assert stored["status"] == "committed"
    assert received.key == stored["idempotency_key"]
    arguments = json.loads(stored["arguments_json"])
    assert json.loads(received.body) == {"title": arguments["title"], "head": arguments["branch"]}
    for frozen in rows(scene.journal, "SELECT * FROM agent_request WHERE task_id = 't'"):
        assert received.body == frozen["body"]
        for name, value in json.loads(frozen["headers_json"]):
            text = value.replace("${FORGE_TOKEN}", "<secret>")
            assert f"{name}: {text}\r\n".encode() in received.raw


@pytest.mark.parametrize("tool", KEYED)
def test_a_keyed_tool_killed_before_its_request_left_has_its_effect_once(scene, tool):
    kill_before_the_request_leaves(scene, tool)
    scene.start()
    scene.completed("t")
    [received] = scene.forge.requests()
    assert_it_is_what_the_journal_holds(scene, received)
    assert len(scene.forge.effects()) == 1
    assert len(scene.model.calls()) == 2


@pytest.mark.parametrize("tool", KEYED)
def test_a_keyed_tool_killed_after_its_effect_sends_the_same_bytes_and_has_it_once(scene, tool):
    kill_after_the_effect(scene, tool)
    scene.start()
    scene.completed("t")
    first, again = scene.forge.requests()
    assert first.raw == again.raw
    assert_it_is_what_the_journal_holds(scene, again)
    assert len(scene.forge.effects()) == 1
    assert json.loads(step(scene.journal, "t", 1)["output_json"])["number"] == 1
    assert len(scene.model.calls()) == 2


def test_a_request_that_left_and_never_arrived_goes_out_again_byte_for_byte(scene):
    lost = killed_with_a_pull_in_flight(scene)
    scene.start()
    scene.completed("t")
    [received] = scene.forge.requests()
    assert received.raw == lost.replace(SECRET.encode(), b"<secret>")
    assert_it_is_what_the_journal_holds(scene, received)
    assert len(scene.forge.effects()) == 1


@pytest.mark.parametrize(
    ("tool", "kill", "sent"),
    [
        ("message", kill_before_the_request_leaves, 0),
        ("message", kill_after_the_effect, 1),
        ("plain_message", kill_after_the_effect, 1),
    ],
)
def test_a_tool_with_neither_key_nor_status_is_held_and_nothing_is_sent_again(scene, tool, kill, sent):
    kill(scene, tool)
    for _ in range(2):
        agent = scene.start()
        until(lambda: hold_reason(scene.journal, "t", 1) and task_status(scene.journal, "t") == "waiting", "the hold")
        # Longer than any back-off: time alone never makes it send.
        scene.move_clock(timedelta(hours=1))
        scene.submit("once", f"later-{scene.clock.read_text()}", tool="pull")
        scene.completed(f"later-{scene.clock.read_text()}")
        assert agent.stop() == 0
    assert hold_reason(scene.journal, "t", 1) == "no_key_no_status"
    assert step(scene.journal, "t", 1)["status"] == "pending"
    assert len(scene.hook.requests()) == sent
    assert len(attempts(scene.journal, "t", 1)) == 1
    assert len(scene.model.calls()) == 5


def test_a_tool_that_can_be_asked_sends_again_only_when_absence_is_proven(scene):
    kill_before_the_request_leaves(scene, "findable_message")
    agent = scene.start()
    until(lambda: task_status(scene.journal, "t") == "waiting", "the wait for the horizon")
    assert scene.hook.requests() == []
    scene.move_clock(LATE)
    scene.completed("t")
    assert agent.stop() == 0
    [received] = scene.hook.requests()
    assert json.loads(received.body)["key"] == step(scene.journal, "t", 1)["idempotency_key"]
    assert len(scene.hook.effects()) == 1
    assert len(scene.model.calls()) == 2


def test_a_tool_that_can_be_asked_adopts_the_effect_it_finds(scene):
    kill_after_the_effect(scene, "findable_message")
    scene.start()
    scene.completed("t")
    [received] = scene.hook.requests()
    assert json.loads(received.body)["key"] == step(scene.journal, "t", 1)["idempotency_key"]
    assert json.loads(step(scene.journal, "t", 1)["output_json"]) == {"message": 1}
    assert len(scene.model.calls()) == 2
