"""A replay is byte-identical: a variable that changed in the address or the body stops the machine, not the person."""

from __future__ import annotations

from typing import Any

import pytest

from journal import Journal, StepWaiting, env, http_tool
from journal.request import Request
from tests.journal.agent import steps_of
from tests.journal.operator import decide
from tests.journal.raw_server import serving as listening

PROVIDERS = {"p": {"key": {"placement": "header", "name": "K"}, "retention": {"for": "24h", "kind": "at_least"}}}
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@http_tool(effect="mutating", provider="p")
def post(number: int) -> Request:
    """Post to an account."""
    headers = {"Authorization": f"Bearer {env('TOKEN')}"}
    return Request("POST", f"{env('BASE')}/pay", headers=headers, json={"number": number, "account": env("ACCOUNT")})


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
    return Journal(path, agent="a", tools=[post], providers=PROVIDERS, max_wait=0)


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
