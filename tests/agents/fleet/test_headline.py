"""The fleet's state in one sentence, worst first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agents.fleet.agent_status import agent_line
from agents.fleet.headline import overview_sentence
from agents.index.intents import _plain
from agents.models import JournalFile

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("states", "held", "minutes", "bad", "sentence"),
    [
        ({}, 0, None, 0, "No agent is running."),
        ({"working": 3}, 1, 14, 0, "1 intent waits for you since 14 min, 3 agents working."),
        ({"crashed": 1, "working": 1}, 0, None, 0, "1 agent crashed, 1 agent working."),
        ({"idle": 2}, 0, None, 1, "2 agents with nothing to do, 1 journal cannot be read."),
        ({"hung": 2}, 1200, 150, 0, "2 agents hung, 1,200 intents wait for you since 2 h 30 min."),
    ],
)
def test_the_state_is_said_in_one_sentence(states, held, minutes, bad, sentence):
    since = NOW - timedelta(minutes=minutes) if minutes is not None else None
    assert overview_sentence(states, held=held, since=since, bad=bad, known=3, now=NOW) == sentence


def test_without_a_journal_it_says_so():
    assert overview_sentence({}, held=0, since=None, bad=0, known=0, now=NOW) == "No journal was found yet."


@pytest.mark.parametrize(
    ("pid", "counts", "held", "state"),
    [
        (7, {"running": 1}, 0, "working"),
        (7, {}, 0, "idle"),
        (7, {"waiting": 1}, 1, "waiting"),
        (7, {"hung": 1}, 0, "hung"),
        (None, {"crashed": 1}, 0, "crashed"),
        (None, {"queued": 1}, 0, "stopped"),
        (None, {}, 2, "waiting"),
    ],
)
def test_an_agent_is_in_one_state(pid, counts, held, state):
    journal = JournalFile(pk=1, agent="triage", writer_pid=pid, writer_role="agent" if pid else "")
    line = agent_line(journal, counts, held=held)
    assert line.state == state
    assert line.sentence.endswith(".")


@pytest.mark.parametrize(
    ("why", "plain"),
    [
        ("Row 49: an outcome is unknown.", "An outcome is unknown."),
        ("Rows 2, 8, 40: the outcome is unknown.", "The outcome is unknown."),
        ("Rows 44 to 47: it is there.", "It is there."),
        ("Status: nothing was asked.", "Nothing was asked."),
        ("Nothing to strip.", "Nothing to strip."),
        ("", ""),
    ],
)
def test_a_persons_reason_names_no_rows_of_a_table(why, plain):
    assert _plain(why) == plain
