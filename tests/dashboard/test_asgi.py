"""The web server's side: no client that is slow, endless or odd keeps others from being answered."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.running_dashboard import CHECKOUT, MARK, a_data_folder, clean_environment, free_port, get, soon

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("asgi")]

# The dashboard's own application, with less patience than in operation so that the test need not wait for it.
_SERVED = """
from dashboard.asgi import Application, application
served = Application(application._wsgi, read_seconds=0.5)
"""
_FORM = "POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"


@pytest.fixture(scope="module")
def port(tmp_path_factory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("web")
    (folder / "served.py").write_text(_SERVED)
    port = free_port()
    argv = ["-m", "granian", "--interface", "asginl", "--host", "127.0.0.1", "--port", str(port), "--http", "1"]
    env = clean_environment() | {
        MARK: str(a_data_folder(folder / "data")),
        "PORT": str(port),
        "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(folder)]),
    }
    argv += ["--no-ws", "--log-level", "error", "served:served"]
    with subprocess.Popen([sys.executable, *argv], env=env, cwd=CHECKOUT) as server:
        try:

            def answers() -> bool:
                with contextlib.suppress(OSError):
                    return get(port, "/healthz")[0] == 503
                return False

            soon(answers, within=45)
            yield port
        finally:
            server.terminate()


def connected(port: int, text: str) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=20)
    client.sendall(text.encode())
    return client


def status_of(answer: bytes) -> int:
    return int(answer.split()[1])


def test_half_bodies_that_wait_keep_nobody_from_being_answered_and_are_refused(port):
    waiting = [connected(port, f"{_FORM}Content-Length: 99999\r\n\r\na=") for _ in range(40)]
    assert get(port, "/healthz")[0] == 503, "watch and worker do not run here; the web process answers"
    assert get(port, "/sign-in/")[0] == 200
    answers = [client.recv(4096) for client in waiting]
    assert {status_of(answer) for answer in answers} == {408}
    assert b"Nothing was changed." in answers[0]
    for client in waiting:
        client.close()


def test_a_body_that_is_announced_short_and_never_ends_is_refused(port):
    with connected(port, f"{_FORM}Transfer-Encoding: chunked\r\n\r\n") as client:
        chunk = b"100000\r\n" + b"a" * 0x100000 + b"\r\n"
        with contextlib.suppress(OSError):
            for _ in range(64):
                client.sendall(chunk)
        assert status_of(client.recv(4096)) in {408, 413}
    assert get(port, "/sign-in/")[0] == 200


def test_a_form_that_comes_in_chunks_is_read_like_any_other(port):
    web = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    web.request("POST", "/sign-in/", body=iter([b"username=", b"ada"]), headers=headers, encode_chunked=True)
    answer = web.getresponse()
    assert (answer.status, b"CSRF" in answer.read()) == (403, True)
    web.close()


def test_a_head_request_has_the_headers_and_no_body(port):
    web = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    web.request("HEAD", "/sign-in/")
    answer = web.getresponse()
    assert (answer.status, answer.read()) == (200, b"")
    assert "Content-Security-Policy" in answer.headers
    web.close()


def test_bytes_of_a_path_that_are_no_utf8_are_answered_and_not_a_fault(port):
    assert get(port, "/tasks/1/%ff%2Fa/")[0] in {200, 302, 404}


def test_a_header_with_an_underscore_is_not_taken_for_the_one_with_a_dash(port):
    with connected(port, "GET /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX_Forwarded_Proto: https\r\n\r\n") as client:
        assert b"; Secure" not in client.recv(8192)
