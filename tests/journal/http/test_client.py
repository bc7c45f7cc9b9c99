"""Real sockets: what each way of failing proves about the attempt, and what goes over the wire."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from datetime import timedelta

import pytest

from journal.http import client
from journal.http.frozen_request import MissingReference, freeze_request
from journal.http.secrets import Secrets
from journal.models import FrozenRequest
from journal.providers.load import load_profiles
from journal.providers.profile import Profile
from journal.request import Request, env
from tests.journal.raw_server import answer, json_answer, reset, serving

KEY = "ab" * 32
KEYED = {"key": {"placement": "header", "name": "Idempotency-Key"}}


def a_profile(**fields: object) -> Profile:
    return load_profiles({"forge": {**KEYED, **fields}})["forge"]


def quick(**fields: object) -> Profile:
    return a_profile(transport={"timeout": "0.3s"}, **fields)


def a_request(url: str, *, profile: Profile | None = None, path: str = "/pulls", **options: object) -> FrozenRequest:
    request = Request("POST", f"{url}{path}", json={"title": "é"}, **options)  # type: ignore[arg-type]
    return freeze_request(request, profile=profile or a_profile(), key=KEY, environ=os.environ)


def send(frozen, *, profile=None, redispatch=False, guard=lambda: None, environ=None):
    return client.send_request(
        frozen, profile=profile or a_profile(), redispatch=redispatch, guard=guard, secrets=Secrets(environ or {})
    )


def outcome_of(script, *, profile=None, read=True, redispatch=False):
    with serving(script, read=read) as server:
        return send(a_request(server.url), profile=profile, redispatch=redispatch)


def test_row_3_a_name_that_does_not_resolve_is_not_sent():
    outcome = send(a_request("http://nonexistent.invalid"))
    assert (outcome.verdict, outcome.kind) == ("not_sent", "dns")


def test_row_4_a_refused_port_is_not_sent():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    outcome = send(a_request(f"http://127.0.0.1:{port}"))
    assert (outcome.verdict, outcome.kind) == ("not_sent", "not_connected")


def test_row_4_a_black_hole_is_not_sent():
    with ExitStack() as stack:
        hole = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # fill the backlog: further connection attempts get no answer at all
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(hole.getsockname())
        outcome = send(a_request(f"http://127.0.0.1:{hole.getsockname()[1]}"), profile=quick())
    assert (outcome.verdict, outcome.kind) == ("not_sent", "not_connected")


def test_row_5_a_plain_socket_behind_https_is_not_sent():
    with serving(answer(200), read=False) as server:
        outcome = send(a_request(server.url.replace("http:", "https:")))
    assert (outcome.verdict, outcome.kind) == ("not_sent", "tls")


def test_row_5_a_certificate_nobody_signed_is_not_sent(tmp_path):
    import ssl

    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    options = ["-newkey", "rsa:2048", "-nodes", "-x509", "-subj", "/CN=127.0.0.1", "-days", "2"]
    made = subprocess.run(
        ["openssl", "req", *options, "-keyout", key, "-out", certificate], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("no openssl to make a certificate with")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    seen: list[bytes] = []

    def script(connection: socket.socket, _: bytes) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            seen.append(secure.recv(1000))

    with serving(script, read=False) as server:
        outcome = send(a_request(server.url.replace("http:", "https:")))
    assert (outcome.verdict, outcome.kind, seen) == ("not_sent", "tls", [])


@pytest.mark.parametrize("end", [lambda connection: None, reset], ids=["closed", "reset"])
def test_rows_7_and_8_a_connection_lost_after_the_request_is_unknown(end):
    outcome = outcome_of(lambda connection, _: end(connection))
    assert (outcome.verdict, outcome.kind) == ("unknown", "lost_answer")


def test_row_8_a_connection_closed_before_the_request_was_read_is_unknown():
    outcome = outcome_of(lambda *_: None, read=False)
    assert (outcome.verdict, outcome.kind) == ("unknown", "lost_answer")


def test_a_connection_reset_before_the_request_was_read_is_unknown_unless_nothing_was_written():
    outcome = outcome_of(lambda connection, _: reset(connection), read=False)
    # The reset may be seen while still connecting: then surely no byte was written.
    assert (outcome.verdict, outcome.kind) in {("unknown", "lost_answer"), ("not_sent", "not_connected")}


def test_rows_10_and_11_half_a_body_is_unknown():
    def half(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    outcome = outcome_of(half)
    assert (outcome.verdict, outcome.kind) == ("unknown", "lost_answer")


def test_row_8_silence_ends_at_the_total_timeout():
    release = threading.Event()

    def silence(*_: object) -> None:
        release.wait(5)

    with serving(silence) as server:
        outcome = send(a_request(server.url), profile=quick())
        release.set()
    assert (outcome.verdict, outcome.kind) == ("unknown", "lost_answer")
    assert "0.3 s" in outcome.detail


@pytest.mark.parametrize("first", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"])
def test_a_drip_ends_at_the_total_timeout(first):
    release = threading.Event()

    def drip(connection: socket.socket, _: bytes) -> None:
        connection.sendall(first)
        while not release.wait(0.05):
            connection.sendall(b"x")

    with serving(drip) as server:
        outcome = send(a_request(server.url), profile=quick())
        release.set()
    assert (outcome.verdict, outcome.kind) == ("unknown", "lost_answer")


def test_row_12_a_page_where_json_was_promised_is_unknown():
    page = answer(200, b"<html>sign in</html>", Content_Type="text/html")
    assert outcome_of(page, profile=a_profile(adopt="id")).kind == "other"
    assert outcome_of(json_answer(200, b"{half")).kind == "other"


def test_row_13_an_accepted_answer_brings_the_output():
    outcome = outcome_of(json_answer(201, b'{"id": 7}'))
    assert (outcome.verdict, outcome.kind, outcome.output, outcome.has_output) == (
        "applied",
        "accepted",
        {"id": 7},
        True,
    )


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_row_20_a_redirect_is_never_followed(status):
    with serving(answer(200)) as trap:
        outcome = outcome_of(answer(status, Location=trap.url))
    assert (outcome.verdict, outcome.kind, trap.received) == ("unknown", "other", [])


def test_an_answer_past_the_cap_is_applied_without_its_output(monkeypatch):
    monkeypatch.setattr(client, "MAX_BODY", 1000)
    outcome = outcome_of(json_answer(200, b'"' + b"x" * 5000 + b'"'))
    assert (outcome.verdict, outcome.has_output) == ("applied", False)


def test_the_guard_stops_a_dispatch_before_its_first_byte():
    with serving(answer(200)) as server:
        outcome = send(a_request(server.url), guard=lambda: "another boot owns the journal")
    assert (outcome.verdict, outcome.kind) == ("not_sent", "stale")
    assert "another boot" in outcome.detail
    assert all(request == b"" for request in server.received)


def test_an_error_of_the_guard_leaves_the_request_unsent():
    def guard() -> str:
        raise RuntimeError("lock lost")

    with serving(answer(200)) as server:
        outcome = send(a_request(server.url), guard=guard)
    assert (outcome.verdict, outcome.kind) == ("not_sent", "other")


def test_two_attempts_are_byte_identical():
    with serving(json_answer(200, b"{}")) as server:
        frozen = a_request(server.url, path="/pulls?q=%7e&x=a+b", headers={"X-Odd": "\xe9  b"})
        send(frozen)
        send(frozen, redispatch=True)
        first, second = server.received
    assert first == second
    assert first.startswith(b"POST /pulls?q=%7e&x=a+b HTTP/1.1\r\n")
    assert f"Idempotency-Key: {KEY}".encode() in first
    assert first.endswith('{"title":"é"}'.encode())


def test_credentials_are_put_in_at_send_and_taken_out_of_what_comes_back():
    def echo(connection: socket.socket, request: bytes) -> None:
        json_answer(200, b'{"auth": "Bearer s3cr3t-value", "list": ["s3cr3t-value"]}')(connection, request)

    with serving(echo) as server:
        request = Request("POST", f"{server.url}/{env('HOOK')}", headers={"Authorization": f"Bearer {env('TOKEN')}"})
        frozen = freeze_request(request, profile=a_profile(), key=KEY, environ=os.environ)
        secrets = Secrets({"HOOK": "T0/B0", "TOKEN": "s3cr3t-value"})
        outcome = client.send_request(
            frozen, profile=a_profile(), redispatch=False, guard=lambda: None, secrets=secrets
        )
        (received,) = server.received
    assert b"POST /T0/B0 " in received
    assert b"Authorization: Bearer s3cr3t-value" in received
    # What was put in is known from then on, and nothing is stored or returned but by `stored`.
    assert secrets.stored(outcome.output) == ('{"auth": "Bearer ${TOKEN}", "list": ["${TOKEN}"]}', True)


def test_an_answer_too_deep_to_walk_is_an_outcome_all_the_same():
    deep = b"[" * 900 + b"]" * 900
    outcome = outcome_of(json_answer(200, deep))
    assert (outcome.verdict, outcome.kind) == ("applied", "accepted")
    text, complete = Secrets({}).stored(outcome.output)
    assert not complete
    assert len(text) < 2000


def test_a_missing_credential_stops_before_anything_is_opened():
    with serving(answer(200)) as server:
        request = Request("POST", server.url, headers={"Authorization": env("TOKEN")})
        with pytest.raises(MissingReference, match="TOKEN") as caught:
            send(freeze_request(request, profile=a_profile(), key=KEY, environ=os.environ))
    assert (caught.value.names, server.received) == (("TOKEN",), [])


def test_a_proxy_of_the_environment_is_ignored(monkeypatch):
    with serving(answer(200)) as trap, serving(json_answer(200, b"{}")) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, trap.url)
        assert send(a_request(server.url)).verdict == "applied"
    assert trap.received == []


def test_importing_the_module_loads_no_network_library():
    code = "import sys, journal.http; print([m for m in ('httpx2', 'httpcore2', 'ssl') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=os.getcwd())
    assert ran.stdout.strip() == "[]"


def test_the_default_timeout_is_thirty_seconds():
    assert a_profile().timeout == timedelta(seconds=30)
