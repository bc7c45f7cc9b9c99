"""Each state and each sentence is true of the facts it is made from, in every combination of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import get_args

import pytest

from agents.states import (
    AGENT_STATES,
    AgentFacts,
    AgentState,
    PendingFacts,
    derive_agent_state,
    derive_task_state,
    describe_agent,
    describe_fleet,
    describe_length,
    describe_outlook,
    describe_pending_hold,
    sum_up_sent,
)
from journal.hold_reasons import HOLD_REASONS, Sent

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
LONG_AGO, LATER = NOW - timedelta(minutes=7), NOW + timedelta(minutes=7)
SENT: tuple[Sent, ...] = get_args(Sent)
HOLDS = ("", *HOLD_REASONS, "reason_of_a_newer_version")
DUE = (None, LONG_AGO, LATER)
# A crashed or stopped agent has no process; one that waits for a person may have one.
AGENTS: tuple[tuple[AgentState, bool], ...] = tuple(
    (state, runs)
    for state in AGENT_STATES
    for runs in (True, False)
    if (state in ("crashed", "stopped", "unread") and not runs)
    or state == "waiting"
    or (state in ("hung", "slow", "working", "idle") and runs)
)


def combinations() -> list[tuple[PendingFacts, datetime | None]]:
    found = []
    for (agent, runs), sent, hold, due, flies, approved in product(AGENTS, SENT, HOLDS, DUE, (0, 1), (0, 1)):
        if flies and not runs:
            continue
        facts = PendingFacts(
            agent,
            runs,
            sent,
            hold=hold,
            due_at=due,
            is_in_flight=bool(flies),
            is_approved=bool(approved),
            next_sentence="The same bytes are sent again.",
        )
        found.append((facts, due))
    return found


def test_nothing_is_said_to_be_unsent_unless_nothing_of_the_whole_intent_may_have_left():
    for facts, _ in combinations():
        hold = describe_pending_hold(facts)
        if hold is None:
            continue
        said = hold.sentence.lower()
        assert ("nothing was sent" in said) == (facts.sent in ("none", "not_sent")), facts
        assert ("may have arrived" in said) == (facts.sent == "unknown"), facts
        assert ("took effect" in said) == (facts.sent == "applied"), facts
        assert ("had no effect" in said) == (facts.sent == "no_effect"), facts


def test_a_hold_of_a_step_that_changes_nothing_says_nothing_of_sending():
    for reason in HOLD_REASONS:
        hold = describe_pending_hold(PendingFacts("idle", True, "none", hold=reason, changes=False))
        assert hold is not None
        assert "nothing was sent" not in hold.sentence.lower()
        assert "may have arrived" not in hold.sentence


def test_a_dead_agent_is_never_said_to_act_and_a_living_one_never_to_be_gone():
    for facts, _ in combinations():
        said = describe_outlook(facts, NOW)
        if facts.agent_runs:
            assert "not running" not in said, facts
        else:
            assert "takes it next" not in said, facts
            assert "carries it out" not in said, facts
            assert not said.startswith(facts.next_sentence), facts


def test_a_time_that_is_past_is_never_said_to_come_and_one_that_comes_never_to_be_past():
    for facts, due in combinations():
        said = describe_outlook(facts, NOW)
        if due == LONG_AGO:
            assert "tried again in" not in said, facts
        elif due == LATER:
            assert "was due" not in said, facts
            assert "due now" not in said, facts
    assert "was due 7 min ago" in describe_outlook(PendingFacts("stopped", False, "not_sent", due_at=LONG_AGO), NOW)
    assert "tried again in 7 min" in describe_outlook(PendingFacts("idle", True, "not_sent", due_at=LATER), NOW)
    assert "due now" in describe_outlook(PendingFacts("idle", True, "not_sent", due_at=LONG_AGO), NOW)


def test_a_held_step_goes_on_without_a_person_only_where_its_cause_may_pass():
    for facts, _ in combinations():
        if facts.hold and not facts.is_approved and not facts.is_in_flight and facts.agent != "unread":
            said = describe_outlook(facts, NOW)
            assert said.startswith("It is decided again" if facts.hold == "clock_suspect" else "Nothing"), facts


def test_of_a_journal_that_is_not_read_nothing_is_claimed():
    for facts, _ in combinations():
        if facts.agent == "unread":
            assert describe_outlook(facts, NOW) == "Not known: its journal is not read yet."


def test_a_tool_that_raised_is_named_by_what_it_raised_and_its_outcome_is_not_said_to_be_missing():
    hold = describe_pending_hold(
        PendingFacts("stopped", False, "unknown", hold="unknown_outcome", raised="TimeoutError")
    )
    assert hold is not None
    assert hold.sentence.startswith("The tool raised TimeoutError")
    assert "on record" not in hold.sentence


@pytest.mark.parametrize(
    ("verdicts", "sent"),
    [
        ((), "none"),
        (("not_sent", "not_sent"), "not_sent"),
        ((None,), "unknown"),
        ((None, "not_sent"), "unknown"),
        (("unknown", "no_effect"), "unknown"),
        (("no_effect", "not_sent"), "no_effect"),
        (("in_progress", "no_effect"), "in_progress"),
        (("applied", None), "applied"),
        (("a verdict of a newer version",), "unknown"),
    ],
)
def test_an_intent_was_sent_as_far_as_any_of_its_attempts_may_have_got(verdicts, sent):
    assert sum_up_sent(verdicts) == sent


@pytest.mark.parametrize("status", ["queued", "waiting", "completed", "failed", "cancelled"])
def test_only_a_running_task_has_a_state_its_journal_does_not_say(status):
    for living, opened in product((True, False), (True, False)):
        state = derive_task_state(
            status, is_of_living_boot=living, has_open_step=opened, changed_at=LONG_AGO - timedelta(days=1), now=NOW
        )
        assert state == status


@pytest.mark.parametrize(
    ("living", "opened", "changed", "state"),
    [
        (False, True, NOW, "crashed"),
        (False, False, NOW - timedelta(days=1), "crashed"),
        (True, True, NOW, "running"),
        (True, False, NOW - timedelta(minutes=10), "running"),
        (True, True, NOW - timedelta(minutes=11), "slow"),
        (True, False, NOW - timedelta(minutes=11), "hung"),
        (True, False, None, "running"),
    ],
)
def test_a_running_task_is_crashed_slow_or_hung_by_its_process_its_step_and_its_last_change(
    living, opened, changed, state
):
    found = derive_task_state("running", is_of_living_boot=living, has_open_step=opened, changed_at=changed, now=NOW)
    assert found == state


@pytest.mark.parametrize(
    ("facts", "state", "said"),
    [
        (AgentFacts(False, None, {}), "unread", "Its journal is not read yet."),
        (AgentFacts(False, 7, {"running": 1}, held=2), "unread", "Its journal is not read yet."),
        (AgentFacts(True, None, {}), "stopped", "Not running; nothing is unfinished."),
        (AgentFacts(True, None, {"queued": 1, "waiting": 1}), "stopped", "Not running; 2 tasks unfinished."),
        (
            AgentFacts(True, None, {"waiting": 1}, due_at=LONG_AGO),
            "stopped",
            "Not running; 1 task unfinished. A step was due 7 min ago: it waits for the agent to be started.",
        ),
        (
            AgentFacts(True, None, {"waiting": 1}, held=1),
            "waiting",
            "Not running; 1 task unfinished. 1 step needs your decision.",
        ),
        (
            AgentFacts(True, None, {"crashed": 2}, held=1),
            "crashed",
            "Crashed in the middle of 2 tasks; nothing has restarted it yet. 1 step needs your decision.",
        ),
        (AgentFacts(True, 7, {}), "idle", "Runs as pid 7."),
        (AgentFacts(True, 7, {"waiting": 1}, due_at=LATER), "idle", "Runs as pid 7. A step is tried again in 7 min."),
        (AgentFacts(True, 7, {"waiting": 1}, due_at=LONG_AGO), "idle", "Runs as pid 7. A step is due now."),
        (AgentFacts(True, 7, {"running": 3}), "working", "Works on 3 tasks as pid 7."),
        (AgentFacts(True, 7, {"crashed": 1}), "working", "Works on 1 task as pid 7."),
        (AgentFacts(True, 7, {"waiting": 2}, held=2), "waiting", "Runs as pid 7. 2 steps need your decision."),
        (
            AgentFacts(True, 7, {"slow": 1}),
            "slow",
            "Runs as pid 7. 1 task has been in one call for over 10 minutes.",
        ),
        (
            AgentFacts(True, 7, {"hung": 1, "running": 1}),
            "hung",
            "Works on 1 task as pid 7. 1 task made no progress for over 10 minutes, and no step of it runs.",
        ),
    ],
)
def test_an_agent_has_one_word_and_sentences_that_are_each_a_fact(facts, state, said):
    assert derive_agent_state(facts) == state
    assert describe_agent(facts, NOW) == said


def test_every_agent_state_is_told_apart_from_every_other():
    said = {
        derive_agent_state(facts): describe_agent(facts, NOW)
        for facts in (
            AgentFacts(False, None, {}),
            AgentFacts(True, None, {"running": 1}),
            AgentFacts(True, 7, {"hung": 1}),
            AgentFacts(True, 7, {"slow": 1}),
            AgentFacts(True, 7, {"waiting": 1}, held=1),
            AgentFacts(True, 7, {"running": 1}),
            AgentFacts(True, 7, {}),
            AgentFacts(True, None, {}),
        )
    }
    assert set(said) == set(AGENT_STATES)
    assert len(set(said.values())) == len(AGENT_STATES)


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0 s"), (59, "59 s"), (76, "1 min"), (3600, "1 h 0 min"), (200_000, "2 days")]
)
def test_a_length_of_time_has_no_seconds_past_a_minute(seconds, said):
    assert describe_length(timedelta(seconds=seconds)) == said


@pytest.mark.parametrize(
    ("agents", "held", "minutes", "bad", "said"),
    [
        ({}, 0, None, 0, "No agent is running."),
        ({"stopped": 2}, 0, None, 0, "No agent is running."),
        ({"idle": 2}, 1, 1, 0, "1 intent needs your decision (waiting 1 min). 2 agents are idle."),
        ({"crashed": 1, "working": 1}, 0, None, 0, "1 agent crashed. 1 agent is working."),
        (
            {"idle": 1, "unread": 2},
            0,
            None,
            1,
            "1 agent is idle. 2 journals are not read yet. 1 journal cannot be read.",
        ),
        ({"slow": 1}, 0, None, 0, "1 agent is slow in a call."),
        ({"hung": 2}, 1200, 150, 0, "2 agents are hung. 1,200 intents need your decision (waiting 2 h 30 min)."),
    ],
)
def test_the_fleet_is_told_in_sentences_worst_first(agents, held, minutes, bad, said):
    since = NOW - timedelta(minutes=minutes) if minutes is not None else None
    assert describe_fleet(agents, held=held, since=since, bad=bad, known=3, now=NOW) == said


def test_without_a_journal_the_fleet_says_so():
    assert describe_fleet({}, held=0, since=None, bad=0, known=0, now=NOW) == "No journal was found yet."
