"""The exact host and the headers of every answer."""

from __future__ import annotations

import re

import pytest

from dashboard.middleware import CONTENT_SECURITY_POLICY, parse_host

pytestmark = pytest.mark.django_db

STATIC = "/static/django_htmx/htmx-2.min.js"
ADDRESSES = ["/", "/healthz", "/sign-in/", "/no-such-page", STATIC]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "evil.example:8000",
        "localhost, evil.example",
        "localhost/evil",
        "localhost:0",
        "localhost:port",
        "[::1]",
        "0.0.0.0",
        "",
    ],
)
def test_a_foreign_host_is_refused_on_every_address(client, address, host):
    response = client.get(address, headers={"host": host})
    assert response.status_code == 400
    assert "sessionid" not in response.cookies


@pytest.mark.parametrize("address", ["/healthz", STATIC])
def test_a_missing_host_is_refused(rf, address):
    from django.core.handlers.wsgi import WSGIHandler

    environ = rf.get(address).environ
    environ.pop("HTTP_HOST", None)
    started = []

    def start_response(status, headers, exc_info=None, /):
        started.append(status)
        return started.append

    WSGIHandler()(environ, start_response)
    assert started == ["400 Bad Request"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:1", "LOCALHOST"])
def test_the_configured_hosts_are_answered_on_any_port(client, host):
    assert client.get("/sign-in/", headers={"host": host}).status_code == 200


def test_the_host_of_a_header_is_read_without_its_port():
    assert parse_host("[::1]:8000") == "[::1]"
    assert parse_host("Desk.Example.org:443") == "desk.example.org"
    assert parse_host("a:b:c") == ""
    assert parse_host("localhost:99999") == ""


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_answer_is_confined_by_the_content_security_policy(client, address):
    response = client.get(address)
    response.close()
    assert response.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_pages_are_not_stored_and_static_files_may_be(client):
    assert client.get("/sign-in/").headers["Cache-Control"] == "no-store"
    static = client.get(STATIC)
    static.close()
    assert static.status_code == 200
    assert "no-store" not in static.headers["Cache-Control"]
    assert "Access-Control-Allow-Origin" not in static.headers


def test_healthz_names_the_part_that_does_not_work(client):
    from agents import health

    response = client.get("/healthz")
    assert response.status_code == 503
    assert b"worker" in response.content
    health.record_beat("worker")
    response = client.get("/healthz")
    assert response.status_code == 503
    assert b"FAILS watch" in response.content
    health.record_beat("watch")
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(("seconds", "failing"), [(29, []), (31, ["watch"]), (91, ["watch", "worker"])])
def test_healthz_fails_when_a_sign_of_life_is_old(client, tmp_path, monkeypatch, seconds, failing):
    from agents import health

    health.record_beat("worker")
    health.record_beat("watch")
    moved = tmp_path / "clock"
    moved.write_text(str(seconds))
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    response = client.get("/healthz")
    assert response.status_code == (503 if failing else 200)
    assert re.findall(r"FAILS (\w+)", response.content.decode()) == failing


def test_a_sign_of_life_of_an_earlier_run_says_nothing_about_this_one(client):
    from agents import health

    health.record_beat("worker")
    health.record_beat("watch")
    health.forget_beats()
    response = client.get("/healthz")
    assert response.status_code == 503
    assert b"watch has not shown a sign of life yet" in response.content
