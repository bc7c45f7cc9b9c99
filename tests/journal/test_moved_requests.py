"""A request that may have arrived at one place is sent to no other by a machine, in whatever order the places came."""

from __future__ import annotations

import os
from typing import Any

import pytest

from journal import Journal, StepWaiting, env, http_tool
from journal.http.frozen_request import ChangedReference, as_sent, digest_request, resolve_origin
from journal.reader import Reader
from journal.request import Request
from tests.journal.agent import rows, steps_of
from tests.journal.operator import decide
from tests.journal.raw_server import serving as listening

KEYED = {"key": {"placement": "header", "name": "K"}, "retention": {"for": "24h", "kind": "at_least"}}


@http_tool(effect="mutating", provider="p")
def post(number: int) -> Request:
    """Post to wherever the environment says."""
    return Request("POST", f"{env('BASE')}/pay", json={"number": number})


def an_agent(path: Any) -> Journal:
    return Journal(path, agent="a", tools=[post], providers={"p": KEYED}, max_wait=0)


@pytest.fixture
def later(tmp_path, monkeypatch):
    """A function that lets ten minutes go by, which is past every back-off."""
    file = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(file))

    def go_by() -> None:
        file.write_text(str(int(file.read_text()) + 600 if file.exists() else 600))

    return go_by


def _swallow(connection: Any, request: bytes) -> None:
    """Close the connection without a word: the effect may have happened."""


def first_run(path: Any) -> None:
    with an_agent(path) as journal, pytest.raises(StepWaiting), journal.task("t") as task:
        task.run(post, 1)


def recovered(path: Any) -> Any:
    """What holds the step after the agent started again."""
    with an_agent(path) as journal:
        journal.recover()
    return steps_of(path, "t")[0]["hold_reason"]


@pytest.fixture
def moved(path, later, monkeypatch):
    """A journal whose request was refused where it was made to go, and lost at the second place, which is returned."""
    with listening(_swallow) as closed:
        monkeypatch.setenv("BASE", closed.url)
    first_run(path)
    later()
    with listening(_swallow) as second:
        monkeypatch.setenv("BASE", second.url)
        assert recovered(path) is None
        assert len(second.received) == 1
        later()
        yield closed, second


def test_what_was_lost_at_the_second_place_is_not_sent_to_the_first_by_a_machine(path, moved, monkeypatch):
    first, _ = moved
    with listening(_swallow, port=first.port) as back:
        monkeypatch.setenv("BASE", back.url)
        assert recovered(path) == "reference_changed"
        assert back.received == []


def test_a_corrected_address_is_the_one_that_replays_go_to(path, moved):
    _, second = moved
    assert recovered(path) is None
    assert len(second.received) == 2


def test_the_place_a_person_approved_is_the_one_that_replays_go_to(path, moved, later, monkeypatch):
    _, second = moved
    with listening(_swallow) as third:
        monkeypatch.setenv("BASE", third.url)
        with an_agent(path) as journal:
            journal.recover()
            decide(path, "replay")
            journal.recover()
        assert len(third.received) == 1
        later()
        monkeypatch.setenv("BASE", second.url)
        assert recovered(path) == "reference_changed"
        monkeypatch.setenv("BASE", third.url)
        assert recovered(path) is None
        assert (len(second.received), len(third.received)) == (1, 2)


def test_the_frozen_request_and_its_hash_stay_what_they_are(path, moved):
    before = rows(path, "SELECT refs_json, sha256 FROM agent_request")
    recovered(path)
    assert rows(path, "SELECT refs_json, sha256 FROM agent_request") == before
    request = Reader(path).request("t", 0)
    assert request is not None
    assert digest_request(request.method, request.url, request.headers, request.body, request.refs) == request.sha256


def test_whoever_asks_beside_the_agent_asks_where_the_request_was_sent_last(path, moved):
    _, second = moved
    reader = Reader(path)
    assert (reader.sent_with("t", 0, 1), list(reader.sent_with("t", 0, 2))) == ({}, ["BASE"])
    request = reader.request("t", 0)
    assert request is not None
    with pytest.raises(ChangedReference):
        resolve_origin(request, os.environ)
    assert resolve_origin(as_sent(request, reader.sent_with("t", 0, 2)), os.environ)[0] == second.url
