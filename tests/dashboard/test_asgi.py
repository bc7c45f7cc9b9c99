"""The web server's side: slow, endless and odd clients, and a real proxy that speaks HTTPS before it."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import queue
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.running_dashboard import CHECKOUT, MARK, a_data_folder, clean_environment, free_port, get, soon

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("asgi")]

# The dashboard's own application, with less patience than in operation so that the test need not wait for it.
_SERVED = """
from dashboard.asgi import Application, application
served = Application(application._wsgi, read_seconds=0.5)
"""
_ADA = """
from django.contrib.auth.models import User
from agents.access.roles import give_role
give_role(User.objects.create_user("ada", password="correct horse battery"), "operator")
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
        "STEPKEEPER_HOSTS": "127.0.0.1,desk.example.org",
        "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(folder)]),
    }
    made = [sys.executable, "manage.py", "shell", "--verbosity", "0", "-c", _ADA]
    subprocess.run(made, env=env, cwd=CHECKOUT, check=True)
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


# --- behind an HTTPS proxy ---


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()


def _proxy(certificate: Path, to: int, ready: queue.Queue[tuple[asyncio.AbstractEventLoop, int]]) -> None:
    """A proxy that ends TLS, hands the Host through and says that the request came by HTTPS."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        inside, outside = await asyncio.open_connection("127.0.0.1", to)
        outside.write(head[:-2] + b"X-Forwarded-Proto: https\r\n\r\n")
        await asyncio.gather(_relay(reader, outside), _relay(inside, writer))

    loop = asyncio.new_event_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0, ssl=context))
    ready.put((loop, server.sockets[0].getsockname()[1]))
    loop.run_forever()
    server.close()
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


@pytest.fixture(scope="module")
def https(port, tmp_path_factory) -> Iterator[Callable[..., http.client.HTTPResponse]]:
    """Requests to desk.example.org by HTTPS, as a browser sends them; the certificate is made now."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    certificate = tmp_path_factory.mktemp("tls") / "desk.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=desk.example.org"]
    made += [
        "-addext",
        "subjectAltName=DNS:desk.example.org",
        "-keyout",
        str(certificate),
        "-out",
        f"{certificate}.crt",
    ]
    subprocess.run(made, check=True, capture_output=True)
    certificate.write_text(certificate.read_text() + Path(f"{certificate}.crt").read_text())
    ready: queue.Queue[tuple[asyncio.AbstractEventLoop, int]] = queue.Queue()
    thread = threading.Thread(target=_proxy, args=(certificate, port, ready))
    thread.start()
    loop, outside = ready.get(timeout=20)
    trusted = ssl.create_default_context(cafile=f"{certificate}.crt")

    def ask(method: str, path: str, form: dict[str, str] | None = None, **headers: str) -> http.client.HTTPResponse:
        raw = socket.create_connection(("127.0.0.1", outside), timeout=20)
        web = http.client.HTTPSConnection("desk.example.org", timeout=20)
        web.sock = trusted.wrap_socket(raw, server_hostname="desk.example.org")
        body = urllib.parse.urlencode(form) if form is not None else None
        typed = {"Content-Type": "application/x-www-form-urlencoded"} if form is not None else {}
        web.request(method, path, body=body, headers={"Connection": "close", **typed, **headers})
        return web.getresponse()

    yield ask
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def cookies_of(answer: http.client.HTTPResponse) -> tuple[str, list[str]]:
    """What a browser sends back, and each cookie as it was set."""
    told = answer.headers.get_all("Set-Cookie") or []
    return "; ".join(one.partition(";")[0] for one in told), told


def test_people_sign_in_through_a_proxy_that_speaks_https_and_get_secure_cookies(https):
    first = https("GET", "/sign-in/")
    sent, told = cookies_of(first)
    assert told
    assert all("; Secure" in one for one in told)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', first.read().decode())
    assert token
    form = {"csrfmiddlewaretoken": token[1], "username": "ada", "password": "correct horse battery"}
    origin = {"Cookie": sent, "Origin": "https://desk.example.org"}
    answer = https("POST", "/sign-in/", form, **origin)
    session, told = cookies_of(answer)
    assert (answer.status, answer.headers["Location"]) == (302, "/")
    assert all("; Secure" in one for one in told)
    assert https("GET", "/", Cookie=session).status == 200


def test_a_foreign_origin_is_refused_through_the_proxy_too(https):
    first = https("GET", "/sign-in/")
    sent, _ = cookies_of(first)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', first.read().decode())
    assert token
    form = {"csrfmiddlewaretoken": token[1], "username": "ada", "password": "correct horse battery"}
    for origin in ("https://evil.example", "http://desk.example.org"):
        assert https("POST", "/sign-in/", form, Cookie=sent, Origin=origin).status == 403


def test_without_the_proxy_cookies_are_sent_in_the_clear_as_before(port):
    web = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    web.request("GET", "/sign-in/")
    assert "Secure" not in (web.getresponse().headers["Set-Cookie"] or "")
    web.close()
