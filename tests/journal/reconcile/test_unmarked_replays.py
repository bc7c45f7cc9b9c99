"""A replay without the marker its provider promised is adopted, and says that the effect may exist twice."""

from __future__ import annotations

import pytest

from journal import Journal, StepWaiting, http_tool
from journal.cli import main
from journal.request import Request
from tests.journal.agent import steps_of
from tests.journal.raw_server import json_answer
from tests.journal.raw_server import serving as listening

PROMISED = {
    "key": {"placement": "header", "name": "K"},
    "retention": {"for": "24h", "kind": "at_least"},
    "replay": {"marker": {"Idempotent-Replayed": "true"}, "promised": True},
}


@pytest.fixture
def headers():
    """What the server answers with."""
    return {}


@pytest.fixture
def post(headers):
    """A tool whose server swallows the first request and answers each later one."""
    silent = [True]

    def answer(connection, request):
        if silent:
            silent.clear()
        else:
            json_answer(200, b'{"id": 7}', **headers)(connection, request)

    with listening(answer) as server:

        @http_tool(effect="mutating", provider="p")
        def post(number: int) -> Request:
            return Request("POST", server.url, json={"number": number})

        yield post


def replayed(path, post):
    """The step of a task whose first request got no answer, after its replay; and what the task got."""

    def an_agent(**options):
        return Journal(path, agent="a", tools=[post], providers={"p": PROMISED}, **options)

    with an_agent(max_wait=0) as journal, pytest.raises(StepWaiting), journal.task("t") as task:
        task.run(post, 1)
    with an_agent() as journal, journal.task("t") as task:
        assert task.run(post, 1) == {"id": 7}
    return steps_of(path, "t")[0]


def test_a_missing_marker_is_stored_and_shown_as_an_alarm(path, post, capsys):
    step = replayed(path, post)
    assert step["status"] == "committed"
    assert "may exist twice" in step["alarm"]
    assert main(["show", str(path), "t"]) == 0
    assert "ALARM: The provider did not mark this answer as a replay" in capsys.readouterr().out


def test_the_marker_raises_no_alarm(path, post, headers):
    headers["Idempotent_Replayed"] = "true"
    assert replayed(path, post)["alarm"] is None
