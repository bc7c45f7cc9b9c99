"""Asking a real server about a key."""

from __future__ import annotations

import socket
from urllib.parse import urlparse

import pytest

from journal.http import client
from journal.http.frozen_request import MissingReference, freeze_request
from journal.http.secrets import Secrets
from journal.providers.load import load_profiles
from journal.request import Request, env
from tests.journal.raw_server import answer, json_answer, serving

KEY = "ab" * 32
STATUS = {
    "request": "GET /operations/{key}",
    "absence": "authoritative",
    "interpret": [{"status": 200, "is": "exists"}, {"status": 404, "is": "absent"}],
    "headers": {"Authorization": {"env": "TOKEN", "prefix": "Bearer "}},
    "output": "result",
}


def ask(url: str | object, status=STATUS, environ=None, **fields: object):
    key = {"placement": "header", "name": "Idempotency-Key"}
    profile = load_profiles({"forge": {"key": key, "status": status, **fields}})["forge"]
    frozen = freeze_request(Request("POST", url), profile=profile, key=KEY, environ=environ or {})  # type: ignore[arg-type]
    return client.ask_status(
        frozen, profile=profile, key=KEY, secrets=Secrets({"TOKEN": "s3cr3t-value", **(environ or {})})
    )


def test_the_status_is_asked_at_the_intents_own_origin_with_the_key():
    with serving(json_answer(200, b'{"result": {"number": 7}}')) as server:
        answered = ask(f"{server.url}/pulls?x=1")
        (received,) = server.received
    assert (answered.answer, answered.output, answered.has_output) == ("exists", {"number": 7}, True)
    assert received.startswith(f"GET /operations/{KEY} HTTP/1.1".encode())
    assert b"Authorization: Bearer s3cr3t-value" in received


def test_the_origin_may_stand_in_a_reference():
    with serving(json_answer(404, b"{}")) as server:
        answered = ask(env("HOOK"), environ={"HOOK": f"{server.url}/secret/path"})
        assert urlparse(server.url).netloc.encode() in server.received[0]
    assert answered.answer == "absent"


def test_no_answer_to_a_status_query_is_unknown():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert ask(f"http://127.0.0.1:{port}/").answer == "unknown"


def test_a_proxys_404_page_is_no_absence():
    with serving(answer(404, b"<!doctype html><h1>404 Not Found</h1>", Content_Type="text/html")) as server:
        answered = ask(server.url)
    assert (answered.answer, answered.http_status) == ("unknown", 404)


def test_absent_is_believed_only_while_the_canary_is_visible():
    def hidden(connection: socket.socket, request: bytes) -> None:
        json_answer(403 if b"/canary" in request else 404, b"{}")(connection, request)

    with serving(hidden) as server:
        answered = ask(server.url, status={**STATUS, "visible": "GET /canary"})
        assert len(server.received) == 2
    assert answered.answer == "unknown"
    with serving(lambda c, r: json_answer(200 if b"/canary" in r else 404, b"{}")(c, r)) as server:
        assert ask(server.url, status={**STATUS, "visible": "GET /canary"}).answer == "absent"


def test_a_status_query_lacking_a_credential_is_not_asked():
    with serving(answer(200)) as server, pytest.raises(MissingReference, match="TOKEN"):
        ask(server.url, environ={"TOKEN": ""})
    assert server.received == []
