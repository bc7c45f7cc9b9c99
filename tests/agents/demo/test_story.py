"""The demo end to end: real daemons, four real kills, and what the first page says of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

from agents.demo import daemon, facts, repository, story
from agents.demo.director import CHECKOUT
from agents.demo.ledger import read_effects, read_requests
from agents.demo.paths import AGENTS, COMMITS, PULLS, Paths
from journal.errors import JournalUnreadable
from journal.reader import Reader

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.xdist_group("demo")]


def until(condition, *, seconds=90.0):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)
    return found


def direct(folder):
    """The director on this folder; what it prints stands beside the folder."""
    with said_by(folder).open("w") as said:
        argv = [sys.executable, "-m", "agents.demo.director", str(folder)]
        return subprocess.Popen(argv, cwd=CHECKOUT, stdout=said)


def said_by(folder):
    return folder.with_suffix(".said")


def tree(process):
    return psutil.Process(process.pid).children(recursive=True)


def all_gone(processes):
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


def step_of(paths, kind):
    kill = facts.read(paths.story)[kind]
    return Reader(paths.journal(kill.agent)).step(kill.task_id, kill.step_index)


def is_told(paths):
    if set(facts.read(paths.story)) != set(facts.KINDS):
        return False
    try:
        steps = {kind: step_of(paths, kind) for kind in facts.KINDS}
    except JournalUnreadable:
        return False
    held = steps.pop(facts.UNANSWERABLE)
    return held.hold_reason is not None and all(step.status != "pending" for step in steps.values())


def done(paths, agent):
    """The tasks of an agent that are over."""
    try:
        return Reader(paths.journal(agent)).tasks(status="completed").items
    except JournalUnreadable:
        return ()


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The folder of a running demo whose four kills have happened and been recovered from."""
    paths = Paths(tmp_path_factory.mktemp("demo"))
    process = direct(paths.folder)
    try:
        until(lambda: "The kills begin when you open the first page" in said_by(paths.folder).read_text())
        until(lambda: all(done(paths, agent) for agent in AGENTS))
        assert facts.read(paths.story) == {}, "nobody has seen the first page yet"
        story.note_visitor(paths)
        until(lambda: is_told(paths))
        yield paths
    finally:
        below = tree(process)
        process.terminate()
        process.wait(10)
        assert all_gone(below)


def test_the_killed_request_went_out_again_byte_for_byte_and_is_one_pull_request(told):
    step = step_of(told, facts.MID_REQUEST)
    came = [item for item in read_requests(told.forge_ledger) if item.key == step.idempotency_key]
    assert step.status == "committed"
    assert len(came) == 2
    assert came[0].raw == came[1].raw
    assert len(read_effects(told.forge_ledger, step.idempotency_key)) == 1


def test_after_a_504_the_forge_was_asked_and_nothing_was_sent_again(told):
    step = step_of(told, facts.AFTER_504)
    key = step.idempotency_key
    assert step.status == "committed"
    assert [item.key for item in read_requests(told.forge_ledger)].count(key) == 1
    asked = [item for item in read_requests(told.forge_ledger, method="GET") if item.path == f"/operations/{key}"]
    assert len(asked) >= 2  # once by the daemon that was killed, once by the next
    assert len(read_effects(told.forge_ledger, key)) == 1


def test_the_commit_that_was_not_recorded_is_not_made_twice(told):
    step = step_of(told, facts.UNRECORDED)
    assert step.status == "committed"
    assert len(repository.commits_of(told.repository, step.idempotency_key)) == 1


def test_the_webhook_message_is_held_and_not_sent_again(told):
    step = step_of(told, facts.UNANSWERABLE)
    kill = facts.read(told.story)[facts.UNANSWERABLE]
    request = Reader(told.journal(kill.agent)).request(kill.task_id, kill.step_index)
    assert request is not None
    assert (step.status, step.hold_reason) == ("pending", "no_key_no_status")
    assert [item.body for item in read_requests(told.hook_ledger)].count(request.body) == 1


def test_each_killed_boot_says_how_it_ended(told):
    pids = [kill.pid for kill in facts.read(told.story).values()]
    boots = [boot for agent in AGENTS for boot in Reader(told.journal(agent)).boots()]
    assert [boot.ended for boot in boots if boot.pid in pids and boot.role == "agent"] == ["SIGKILL"] * 4
    assert sum(boot.recovery_model_calls for boot in boots) == 0


def test_the_sentences_say_what_was_counted(told, settings):
    settings.STEPKEEPER_DEMO_FOLDER = told.folder
    texts = [re.sub(r"\d\d:\d\d:\d\d", "14:02:07", sentence.text) for sentence in story.sentences()]
    body = next(
        item.body
        for item in read_requests(told.forge_ledger)
        if item.key == step_of(told, facts.MID_REQUEST).idempotency_key
    )
    assert texts == [
        (
            f"Killed 14:02:07 in mid-request; the same {len(body)} bytes went out again under the same key; "
            "the forge has 1 pull request."
        ),
        (
            "Killed 14:02:07 after a 504; the forge was asked with the original key and knew it; "
            "nothing was sent again; the forge has 1 pull request."
        ),
        (
            "Killed 14:02:07 between its commit and the note of it; git was asked with the original key and knew it; "
            "the repository has 1 commit with this key."
        ),
        (
            "Killed 14:02:07 in mid-request; the webhook cannot be asked, so nothing went out again: it waits for you. "
            "Whoever looks finds that the webhook has 1 message of these bytes."
        ),
    ]
    assert [sentence.waits for sentence in story.sentences()] == [False, False, False, True]


def test_the_ledger_shows_each_pull_request_and_how_often_it_was_asked_for(told, settings):
    settings.STEPKEEPER_DEMO_FOLDER = told.folder
    by_key = {line.key: line for line in story.ledger()}
    replayed, asked = (by_key[step_of(told, kind).idempotency_key] for kind in (facts.MID_REQUEST, facts.AFTER_504))
    assert (replayed.requests, replayed.effects) == (2, 1)
    assert (asked.requests, asked.effects) == (1, 1)


def test_each_kill_and_what_became_of_it_is_printed_as_it_happens(told):
    until(lambda: said_by(told.folder).read_text().count("demo: resumed") == 4)
    said = said_by(told.folder).read_text()
    killed = re.findall(r"demo: killed (\S+) \(pid \d+, SIGKILL\) (.+)", said)
    assert sorted(killed) == [
        ("commits", "between its commit and the note of it"),
        ("messages", "in mid-request"),
        ("pull-requests", "after a 504"),
        ("pull-requests", "in mid-request"),
    ]
    resumed = re.findall(r"demo: resumed (\S+) after [\d.]+ s: it runs as pid \d+; the step (.+)", said)
    assert sorted(resumed) == [
        ("commits", "is committed"),
        ("messages", "waits for you"),
        *[("pull-requests", "is committed")] * 2,
    ]


def test_the_kill_button_kills_the_daemon_and_its_supervisor_starts_another(told):
    before = until(lambda: daemon.pid_of(told.journal(COMMITS)))
    killed = story.kill(COMMITS, told)
    assert killed is not None
    assert (killed.pid, killed.task_id) == (before, None)
    assert "while it was idle, so nothing was in flight" in killed.text
    assert "its next report comes within a minute" in killed.text
    # A killed process holds its lock until its last thread has ended.
    until(lambda: daemon.pid_of(told.journal(COMMITS)) not in (None, before))


def test_nothing_has_been_killed_before_the_demo_began(tmp_path):
    told = story.sentences(Paths(tmp_path))
    assert [sentence.text.startswith("Not killed yet") for sentence in told] == [True] * 4
    assert story.ledger(Paths(tmp_path)) == []
    assert story.kill(PULLS, Paths(tmp_path)) is None


def test_a_second_start_tells_the_story_anew(tmp_path):
    paths = Paths(tmp_path / "demo")
    tasks = []
    for _ in range(2):
        process = direct(paths.folder)
        try:
            until(lambda: "The kills begin when" in said_by(paths.folder).read_text())
            assert facts.read(paths.story) == {}
            story.note_visitor(paths)
            until(lambda: is_told(paths))
            tasks.append({kill.task_id for kill in facts.read(paths.story).values()})
        finally:
            process.terminate()
            process.wait(10)
    assert [len(each) for each in tasks] == [4, 4]
    assert tasks[0].isdisjoint(tasks[1])


def test_killing_the_director_leaves_no_process(tmp_path):
    paths = Paths(tmp_path)
    process = direct(tmp_path)
    try:
        until(lambda: all(daemon.pid_of(paths.journal(agent)) for agent in AGENTS))
        below = tree(process)
        assert len(below) >= 2 * len(AGENTS)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    until(lambda: all_gone(below), seconds=15)
