"""Messages of senders that do not know which of their words are credentials."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from journal import Journal, OutcomeUnknown, Request, clock, env, http_tool, post_submit
from journal.inbox import mailbox
from journal.settle.visit import reconcile_file
from tests.journal.agent import World, all_bytes, rows, steps_of
from tests.journal.operator import decide, outcome
from tests.journal.raw_server import json_answer, serving

SECRET = "s3cr3t/value+1"


@http_tool(effect="mutating")
def post(where: str) -> Request:
    return Request("POST", where, headers={"Authorization": env("FORGE_TOKEN")}, json={})


@pytest.fixture
def held(path, monkeypatch):
    """A journal that knows the credential, with one step that waits for a person."""
    monkeypatch.setenv("FORGE_TOKEN", SECRET)
    with serving(json_answer(500, b"")) as server, journal_at(path) as journal:
        task = journal.task("t")
        with pytest.raises(OutcomeUnknown, match="held"):
            task.run(post, f"{server.url}/")
        task.leave(None)
    return path


def journal_at(path):
    return Journal(path, agent="triage", tools=[post, *World().tools()], handlers={"echo": lambda task, text: text})


def kept(path) -> bytes:
    left = b"".join(file.read_bytes() for file in mailbox.inbox_path(path).iterdir())
    return left + all_bytes(path)


@pytest.mark.parametrize("word", [SECRET, f"see {SECRET}!", {"deep": [SECRET]}])
def test_a_posted_task_that_holds_a_credential_is_refused(held, caplog, word):
    post_submit(held, "echo", task_id="posted", text=word)
    with journal_at(held) as journal:
        assert journal.recover().lines[0] == "submit: refused: the task holds the value of FORGE_TOKEN"
    assert rows(held, "SELECT * FROM agent_task WHERE task_id = 'posted'") == []
    assert SECRET.encode() not in kept(held)
    assert "FORGE_TOKEN" in caplog.text
    assert SECRET not in caplog.text


def test_whoever_visits_the_journal_refuses_it_too(held):
    post_submit(held, "echo", task_id=f"posted {SECRET}", text="plain")
    assert "refused" in reconcile_file(held, role="cli").lines[0]
    assert SECRET.encode() not in kept(held)


def test_the_output_and_the_words_of_a_decision_are_hidden(held):
    said = decide(held, "mark_committed", output={SECRET: [SECRET, 1]}, reason=f"saw {SECRET}", reference=SECRET)
    with journal_at(held) as journal:
        journal.recover()
    assert outcome(held, said) == "applied"
    assert json.loads(steps_of(held, "t")[0]["output_json"]) == {"${FORGE_TOKEN}": ["${FORGE_TOKEN}", 1]}
    assert SECRET.encode() not in kept(held)


def test_what_a_provider_said_to_another_process_is_hidden(held):
    moment = clock.moment()
    mailbox.post_message(
        held,
        {
            "kind": "evidence",
            "task_id": "t",
            "step_index": 0,
            "attempt": 1,
            "asked_at": clock.text(moment.wall - timedelta(seconds=1)),
            "asked_boottime": moment.boot,
            "os_boot_id": moment.os_boot_id,
            "answer": "exists",
            "detail": f"token {SECRET}",
            "output_json": json.dumps({"token": SECRET}),
        },
    )
    with journal_at(held) as journal:
        journal.recover()
    (found,) = rows(held, "SELECT * FROM agent_evidence")
    assert (found["detail"], json.loads(found["output_json"])) == ("token ${FORGE_TOKEN}", {"token": "${FORGE_TOKEN}"})
    assert SECRET.encode() not in kept(held)
