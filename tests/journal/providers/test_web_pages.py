"""A web page where an answer was wanted: a portal's or a proxy's word proves nothing about an effect."""

from __future__ import annotations

import pytest

from journal import Journal, OutcomeUnknown, Request, http_tool
from tests.journal.agent import rows, steps_of
from tests.journal.raw_server import answer, serving

PROVIDERS = {
    "keyed": {
        "key": {"placement": "header", "name": "Idempotency-Key"},
        "retention": {"for": "24h", "kind": "at_least"},
    }
}
PORTAL = answer(200, b"<html><title>Hotel Wi-Fi</title></html>", Content_Type="text/html")


@pytest.mark.parametrize("provider", ["generic_none", "keyed"])
def test_a_portals_page_commits_no_effect(path, provider):
    with serving(PORTAL) as server:

        @http_tool(effect="mutating", provider=provider)
        def order(number: int) -> Request:
            return Request("POST", f"{server.url}/orders", json={"number": number})

        with (
            Journal(path, agent="a", tools=[order], providers=PROVIDERS) as journal,
            pytest.raises(OutcomeUnknown, match="HTTP 200: a web page: <html><title>Hotel Wi-Fi"),
            journal.task("t") as task,
        ):
            task.run(order, 1)
    (step,) = steps_of(path, "t")
    assert (step["status"], step["hold_reason"]) == ("pending", "other_outcome")
    (attempt,) = rows(path, "SELECT verdict, kind FROM agent_step_attempt")
    assert attempt == {"verdict": "unknown", "kind": "other"}


def test_a_word_that_is_only_labelled_as_a_page_is_an_answer(path):
    with serving(answer(200, b"ok", Content_Type="text/html; charset=utf-8")) as server:

        @http_tool(effect="mutating")
        def notify(text: str) -> Request:
            return Request("POST", server.url, json={"text": text})

        with Journal(path, agent="a", tools=[notify]) as journal, journal.task("t") as task:
            assert task.run(notify, "hello") == "ok"


def test_a_page_that_is_only_read_is_the_output(path):
    with serving(PORTAL) as server:

        @http_tool(effect="read_only")
        def fetch() -> Request:
            return Request("GET", f"{server.url}/page")

        with Journal(path, agent="a", tools=[fetch]) as journal, journal.task("t") as task:
            assert task.run(fetch) == "<html><title>Hotel Wi-Fi</title></html>"
