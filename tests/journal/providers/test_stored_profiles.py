"""The profile stored with an intent is the one it is settled under, also where this version refuses it."""

from __future__ import annotations

import pytest

from journal import Journal, StepHeld, StepWaiting, http_tool
from journal.request import Request
from tests.journal.agent import rows, steps_of
from tests.journal.operator import decide, outcome
from tests.journal.raw_server import json_answer
from tests.journal.raw_server import serving as listening

KEYED = {"key": {"placement": "header", "name": "K"}, "retention": {"for": "24h", "kind": "at_least"}}
REFUSED = ['{"a_word_of_a_newer_version": 1}', '{"key": {"placement": "header"}}', "not JSON", "[]"]


@pytest.fixture
def post():
    """A tool whose server swallows the first two requests and answers each later one."""
    silent = [True, True]

    def answer(connection, request):
        if silent:
            silent.pop()
        else:
            json_answer(200, b'{"id": 7}')(connection, request)

    with listening(answer) as server:

        @http_tool(effect="mutating", provider="p")
        def post(number: int) -> Request:
            return Request("POST", server.url, json={"number": number})

        yield post


@pytest.fixture
def unknown(path, post, tmp_path, monkeypatch):
    """A journal with two tasks whose requests were never answered, ten minutes later; how an agent opens it."""
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))

    def agent() -> Journal:
        return Journal(path, agent="a", tools=[post], providers={"p": KEYED}, max_wait=0)

    with agent() as journal:
        for name in ("t", "u"):
            with pytest.raises(StepWaiting), journal.task(name) as task:
                task.run(post, 1)
    moved.write_text("600")
    return agent


@pytest.mark.parametrize("stored", REFUSED)
def test_a_refused_profile_holds_its_own_step_and_no_other(path, post, unknown, stored):
    with unknown() as journal:
        change = "UPDATE agent_step_journal SET profile_json = ? WHERE task_id = 't'"
        journal.store.write(lambda tx: tx.execute(change, (stored,)), sync=False)
        report = journal.recover()
        assert (report.held, report.settled) == (1, 1)
        with pytest.raises(StepHeld) as held, journal.task("t") as task:
            task.run(post, 1)
        assert held.value.reason == "profile_missing"
        assert steps_of(path, "t")[0]["hold_detail"]
        message = decide(path, "abandon")
        journal.context.apply_inbox()
    assert (outcome(path, message), steps_of(path, "t")[0]["status"]) == ("applied", "abandoned")
    assert len(rows(path, "SELECT 1 FROM agent_step_attempt WHERE task_id = 't'")) == 1
