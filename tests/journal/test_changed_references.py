"""A replay is byte-identical: a variable that changed in the address or the body stops the machine, not the person."""

from __future__ import annotations

from typing import Any

import pytest

from journal import Journal, StepWaiting, env, http_tool
from journal.effects import drive
from journal.http.frozen_request import MissingReference
from journal.models import WaitReason
from journal.request import Request
from journal.settle.context import load_intent
from journal.settle.dispatch import dispatch
from journal.settle.visit import reconcile_file
from journal.store.sql import attempts
from tests.journal.agent import rows, steps_of, wait_of
from tests.journal.operator import decide
from tests.journal.raw_server import serving as listening

KEYED = {"key": {"placement": "header", "name": "K"}, "retention": {"for": "24h", "kind": "at_least"}}
ASKED = {"status": {"request": "GET /o/{key}", "interpret": [{"status": 200, "is": "exists"}]}}
PROVIDERS = {"p": KEYED, "asked": ASKED}
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@http_tool(effect="mutating", provider="p")
def post(number: int) -> Request:
    """Post to an account."""
    headers = {"Authorization": f"Bearer {env('TOKEN')}"}
    return Request("POST", f"{env('BASE')}/pay", headers=headers, json={"number": number, "account": env("ACCOUNT")})


@http_tool(effect="mutating", provider="asked")
def tell(number: int) -> Request:
    """Post where the outcome can be asked for."""
    return Request("POST", f"{env('BASE')}/tell", json={"number": number})


@pytest.fixture
def server(monkeypatch):
    """It swallows the first request of each test."""
    silent = [True]

    def answer(connection: Any, _: bytes) -> None:
        if silent:
            silent.clear()
        else:
            connection.sendall(ANSWER)

    with listening(answer) as server:
        monkeypatch.setenv("BASE", server.url)
        monkeypatch.setenv("ACCOUNT", "account-one")
        monkeypatch.setenv("TOKEN", "token-one")
        yield server


def an_agent(path: Any) -> Journal:
    return Journal(path, agent="a", tools=[post, tell], providers=PROVIDERS, max_wait=0)


@pytest.fixture
def unknown(path, server, tmp_path, monkeypatch):
    """A journal whose only request was sent a while ago and never answered."""
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    with an_agent(path) as journal, pytest.raises(StepWaiting), journal.task("t") as task:
        task.run(post, 1)
    assert len(server.received) == 1
    moved.write_text("600")
    return path


def test_a_changed_account_is_not_paid_by_a_machine(unknown, server, monkeypatch):
    monkeypatch.setenv("ACCOUNT", "account-two")
    with an_agent(unknown) as journal:
        journal.recover()
    step = steps_of(unknown, "t")[0]
    assert step["hold_reason"] == "reference_changed"
    assert "ACCOUNT" in step["hold_detail"]
    assert "account-" not in step["hold_detail"]
    assert len(server.received) == 1


def test_the_earlier_value_lets_it_go_on(unknown, server, monkeypatch):
    monkeypatch.setenv("ACCOUNT", "account-two")
    with an_agent(unknown) as journal:
        journal.recover()
    monkeypatch.setenv("ACCOUNT", "account-one")
    with an_agent(unknown) as journal:
        journal.recover()
    assert steps_of(unknown, "t")[0]["status"] == "committed"
    assert len(set(server.received)) == 1


def test_a_person_may_approve_the_new_value(unknown, server, monkeypatch):
    monkeypatch.setenv("ACCOUNT", "account-two")
    with an_agent(unknown) as journal:
        journal.recover()
        decide(unknown, "replay")
        journal.recover()
    assert steps_of(unknown, "t")[0]["status"] == "committed"
    assert b"account-two" in server.received[1]


def test_a_new_credential_in_a_header_changes_nothing_that_was_asked_for(unknown, server, monkeypatch):
    monkeypatch.setenv("TOKEN", "token-two")
    with an_agent(unknown) as journal:
        journal.recover()
    assert steps_of(unknown, "t")[0]["status"] == "committed"
    assert server.received[1] == server.received[0].replace(b"token-one", b"token-two")


def test_another_place_is_not_asked_and_a_person_may_send_there(path, tmp_path, monkeypatch):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    with listening(lambda connection, _: None) as silent, listening(lambda one, _: one.sendall(ANSWER)) as other:
        monkeypatch.setenv("BASE", silent.url)
        with an_agent(path) as journal, pytest.raises(StepWaiting), journal.task("t") as task:
            task.run(tell, 1)
        asked = len(silent.received)
        assert [request[:4] for request in silent.received] == [b"POST", b"GET "]
        moved.write_text("600")
        monkeypatch.setenv("BASE", other.url)
        with an_agent(path) as journal:
            report = journal.recover()
            assert report.held == 1
            assert steps_of(path, "t")[0]["hold_reason"] == "reference_changed"
            assert (len(silent.received), other.received) == (asked, [])
            decide(path, "replay")
            journal.recover()
        assert steps_of(path, "t")[0]["status"] == "committed"
        assert [request[:4] for request in other.received] == [b"POST"]


def test_a_visitor_with_another_value_leaves_the_question_to_the_agent(path, tmp_path, monkeypatch):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    with listening(lambda connection, _: None) as silent:
        monkeypatch.setenv("BASE", silent.url)
        with an_agent(path) as journal, pytest.raises(StepWaiting), journal.task("t") as task:
            task.run(tell, 1)
        asked = len(silent.received)
        moved.write_text("600")
        monkeypatch.setenv("BASE", "http://127.0.0.1:1")
        report = reconcile_file(path, role="cli")
        assert (report.left, len(silent.received)) == (1, asked)
    assert steps_of(path, "t")[0]["hold_reason"] is None


def test_a_credential_that_does_not_fit_begins_no_step(path, server, monkeypatch):
    monkeypatch.setenv("TOKEN", "token-one\n")
    with an_agent(path) as journal, pytest.raises(MissingReference, match="does not fit"), journal.task("t") as task:
        task.run(post, 1)
    assert (steps_of(path, "t"), wait_of(path, "t")) == ([], WaitReason("unset", detail="BASE, TOKEN, ACCOUNT"))
    assert server.received == []


def test_a_credential_that_does_not_fit_holds_its_step_and_costs_no_attempt(unknown, server, monkeypatch):
    monkeypatch.setenv("TOKEN", "token-one\n")
    with an_agent(unknown) as journal:
        assert journal.recover().held == 1
    step = steps_of(unknown, "t")[0]
    assert (step["status"], step["hold_reason"]) == ("pending", "missing_reference")
    assert "token-one" not in step["hold_detail"]
    assert len(rows(unknown, "SELECT 1 FROM agent_step_attempt WHERE task_id = 't'")) == 1
    monkeypatch.setenv("TOKEN", "token-one")
    with an_agent(unknown) as journal:
        assert journal.recover().settled == 1
    assert len(server.received) == 2


def test_what_stops_to_fit_between_the_look_and_the_send_was_not_sent(unknown, server, monkeypatch):
    with an_agent(unknown) as journal:
        seen = journal.store.read(lambda tx: load_intent(tx, "t", 0))
        mark = journal.store.write(lambda tx: attempts.mark_dispatch(tx, "t", 0, generation=0), sync=False)
        monkeypatch.delenv("TOKEN")
        drive(dispatch(journal.store, journal.context.settle_context("task").secrets, None, seen.intent, mark))
    verdicts = rows(unknown, "SELECT verdict FROM agent_step_attempt ORDER BY attempt")
    assert [row["verdict"] for row in verdicts] == ["unknown", "not_sent"]
    assert len(server.received) == 1
