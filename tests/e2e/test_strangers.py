"""What a running dashboard answers to people who are not signed in, and to names that are not its own."""

from __future__ import annotations

import http.client
import re

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("pages")]


def ask(desk, method: str, path: str, **headers: str) -> tuple[int, bytes]:
    """One request by hand."""
    connection = http.client.HTTPConnection("127.0.0.1", desk.up.port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def a_static_file(desk) -> str:
    """The address of a style sheet as pages name it."""
    _, page = ask(desk, "GET", "/sign-in/")
    found = re.search(rb'href="(/static/[^"]+\.css)"', page)
    assert found
    return found[1].decode()


def test_a_foreign_host_is_refused_on_pages_static_files_and_healthz(desk):
    for path in ("/", "/sign-in/", "/pending/", "/healthz", a_static_file(desk)):
        assert ask(desk, "GET", path)[0] in (200, 302, 503), path
        for host in ("evil.example", f"evil.example:{desk.up.port}", f"127.0.0.1.evil.example:{desk.up.port}"):
            status, body = ask(desk, "GET", path, Host=host)
            assert (path, status) == (path, 400)
            assert b"does not answer to that host" in body


def test_a_sign_in_link_is_not_used_up_by_what_merely_opens_it(desk, page):
    link = desk.link("lena", "viewer")
    path = link.removeprefix(desk.url)
    for method in ("GET", "HEAD", "GET", "HEAD"):
        assert ask(desk, method, path)[0] == 200
    page.goto(link)
    page.get_by_role("button", name="Sign in as lena").click()
    page.wait_for_url(f"{desk.url}/")
    assert ask(desk, "GET", path)[0] == 410


def test_every_page_asks_a_stranger_to_sign_in(desk, page):
    for path in ("/", "/tasks/", "/pending/", "/spend/", "/disk/", "/alerts/", "/audit/", "/journals/"):
        page.goto(f"{desk.url}{path}")
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
