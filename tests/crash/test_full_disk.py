"""An intent that cannot be written is not sent; an outcome that cannot be written is not forgotten."""

from __future__ import annotations

import contextlib
import resource
import subprocess

import pytest

from tests.crash.looking import rows, steps, until

pytestmark = [pytest.mark.crash, pytest.mark.accept]

UNLIMITED = resource.RLIM_INFINITY
# Less than the log and the file hold already, and enough for what the agent says on its standard error.
SMALL = 32 * 1024


@contextlib.contextmanager
def no_file_may_grow(scene, agent):
    """Every write past a file's first pages fails with an I/O error."""
    resource.prlimit(agent.pid, resource.RLIMIT_FSIZE, (SMALL, UNLIMITED))
    try:
        yield
    finally:
        if agent.is_alive:
            resource.prlimit(agent.pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))


@contextlib.contextmanager
def full_volume(scene, agent):
    """Every byte of the volume is taken, the journal's own reserve included."""
    filler = scene.journal.with_name("filler")
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
    try:
        yield
    finally:
        filler.unlink()


@pytest.fixture
def small_volume(scene):
    """The scene's journal on a volume of 4 MiB; skipped where this user may not mount one."""
    folder = scene.folder / "volume"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True)
    if done.returncode:
        pytest.skip("this user may not mount a volume")
    scene.journal = folder / "agent.db"
    scene.environment["JOURNAL"] = str(scene.journal)
    yield
    subprocess.run(["umount", "--lazy", folder], check=True)


def intent_on_a_full_disk(scene, full):
    scene.submit("patient", "t", tool="message")
    agent = scene.start("patient")
    until((scene.folder / "ready").exists, "the first step")
    until(lambda: [one["status"] for one in steps(scene.journal, "t")] == ["committed"], "its commit")
    with full(scene, agent):
        (scene.folder / "go").touch()
        until(lambda: is_refused(scene), "the refusal")
        assert scene.hook.requests() == []
        assert len(steps(scene.journal, "t")) == 1
    return agent


def is_refused(scene):
    text = scene.log.read_text()
    return "disk I/O error" in text or "database or disk is full" in text


def assert_it_goes_on(scene, agent):
    scene.completed("t")
    assert agent.is_alive
    assert len(scene.hook.requests()) == 1
    assert len(scene.hook.effects()) == 1
    assert len(scene.model.calls()) == 1


def test_an_intent_that_cannot_be_written_is_not_sent_and_is_once_it_can(scene):
    assert_it_goes_on(scene, intent_on_a_full_disk(scene, no_file_may_grow))


@pytest.mark.usefixtures("small_volume")
def test_an_intent_on_a_full_volume_is_not_sent_and_is_once_there_is_room(scene):
    assert_it_goes_on(scene, intent_on_a_full_disk(scene, full_volume))


def test_an_outcome_that_cannot_be_written_at_once_is_kept_until_it_can(scene):
    scene.hook.next(hold_after_apply=True)
    scene.submit("patient", "t", tool="message")
    (scene.folder / "go").touch()
    agent = scene.start("patient")
    assert scene.hook.script.wait_held()
    with no_file_may_grow(scene, agent):
        scene.hook.script.release()
        reserve = scene.journal.with_name("agent.db.reserve")
        until(lambda: not reserve.exists(), "the first failed write of the outcome")
        assert steps(scene.journal, "t")[1]["status"] == "pending"
    scene.completed("t")
    assert agent.is_alive
    assert len(scene.hook.requests()) == 1
    assert [one["verdict"] for one in rows(scene.journal, "SELECT verdict FROM agent_step_attempt")] == ["applied"]


def test_killed_with_an_unwritten_outcome_the_step_is_unknown_and_held(scene):
    scene.hook.next(hold_after_apply=True)
    scene.submit("patient", "t", tool="message")
    (scene.folder / "go").touch()
    agent = scene.start("patient")
    assert scene.hook.script.wait_held()
    with no_file_may_grow(scene, agent):
        scene.hook.script.release()
        reserve = scene.journal.with_name("agent.db.reserve")
        until(lambda: not reserve.exists(), "the first failed write of the outcome")
        agent.kill()
    scene.start("patient")
    until(lambda: steps(scene.journal, "t")[1]["hold_reason"] == "no_key_no_status", "the hold")
    assert len(scene.hook.requests()) == 1
