"""Time that jumps: a clock set back sends nothing, a sender that was asleep sends nothing, a closed window is held."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest

from tests.crash.looking import attempts, hold_reason, is_in_flight, task_status, until
from tests.crash.moments import killed_with_a_pull_in_flight

pytestmark = [pytest.mark.crash, pytest.mark.accept]


def test_a_clock_set_back_behind_the_journal_sends_nothing_until_it_is_right_again(scene):
    killed_with_a_pull_in_flight(scene)
    scene.move_clock(-timedelta(hours=1))
    agent = scene.start()
    until(lambda: hold_reason(scene.journal, "t", 1) == "clock_suspect", "the hold")
    until(lambda: task_status(scene.journal, "t") == "waiting", "the wait")
    assert scene.forge.requests() == []
    agent.stop()
    scene.move_clock(timedelta(hours=1))
    scene.start()
    scene.completed("t")
    assert len(scene.forge.requests()) == 1
    assert len(scene.model.calls()) == 2


def test_a_key_past_its_window_is_not_sent_again(scene):
    killed_with_a_pull_in_flight(scene)
    scene.move_clock(timedelta(hours=25))
    scene.start()
    until(lambda: hold_reason(scene.journal, "t", 1) == "key_window_closed", "the hold")
    assert scene.forge.requests() == []
    assert len(scene.forge.requests("GET")) == 1
    assert len(attempts(scene.journal, "t", 1)) == 1


@pytest.mark.parametrize(("tool", "server"), [("pull", "forge"), ("message", "hook")])
def test_a_sender_that_slept_between_the_mark_and_the_first_byte_sends_under_a_new_mark(scene, tool, server):
    gate, provider = getattr(scene, f"{server}_gate"), getattr(scene, server)
    gate.stall()
    scene.submit("once", "t", tool=tool)
    agent = scene.start()
    until(lambda: is_in_flight(scene.journal, "t", 1), "the intent")
    agent.signal(signal.SIGSTOP)
    scene.move_clock(timedelta(seconds=10))
    gate.open()
    agent.signal(signal.SIGCONT)
    scene.completed("t")
    slept, sent = attempts(scene.journal, "t", 1)
    assert (slept["verdict"], slept["kind"]) == ("not_sent", "stale")
    assert (sent["verdict"], sent["kind"]) == ("applied", "accepted")
    assert len(provider.requests()) == 1
    assert len(provider.effects()) == 1
