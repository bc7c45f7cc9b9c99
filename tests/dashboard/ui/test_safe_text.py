"""What the log is told of requests."""

from __future__ import annotations

import io
import logging
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.access import login_link
from dashboard.ui.safe_text import LogLine

pytestmark = pytest.mark.django_db


@pytest.fixture
def written():
    """What the process's own log handler writes meanwhile."""
    (handler,) = (one for one in logging.getLogger().handlers if isinstance(one.formatter, LogLine))
    assert isinstance(handler, logging.StreamHandler)
    stream = io.StringIO()
    before = handler.setStream(stream)
    yield stream
    handler.setStream(before)


def test_a_link_that_still_signs_in_stands_in_no_line(written):
    token = login_link.make_link(User.objects.create_user("ana"), valid_for=timedelta(hours=1))
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(f"/sign-in/link/{token}/").status_code == 403
    assert "/sign-in/link/<token>/" in written.getvalue()
    assert token not in written.getvalue()


def test_a_fault_on_the_page_of_a_link_names_its_traceback_and_not_the_link(written, client, monkeypatch):
    client.raise_request_exception = False
    monkeypatch.setattr(login_link, "find_link", lambda token: 1 // 0)
    assert client.get("/sign-in/link/abc-DEF_9/").status_code == 500
    assert "ZeroDivisionError" in written.getvalue()
    assert "abc-DEF_9" not in written.getvalue()


def test_a_request_that_is_refused_for_its_size_is_a_line_without_a_traceback(written, client):
    client.force_login(User.objects.create_user("ana"))
    client.raise_request_exception = False
    assert client.get("/tasks/?text=" + "&a=" * 2000).status_code in {400, 403}
    assert client.get("/sign-in/?next=" + "&a=" * 2000).status_code == 400
    assert "The number of GET/POST parameters exceeded" in written.getvalue()
    assert "Traceback" not in written.getvalue()


def test_text_of_a_journal_acts_on_no_terminal_and_forges_no_line(written):
    agent = "a\x1b]0;owned\x07\x1b[2J\u202e\r\nStepkeeper is ready: http://evil.example/sign-in/link/x/"
    logging.getLogger("agents.alerts").warning("Agent %s: %d%% held", agent, 5)
    line = written.getvalue()
    assert line.count("\n") == 1
    assert not set("\x1b\x07\r\u202e") & set(line)
    assert "Agent a[U+001B]]0;owned[U+0007][U+001B][2J[U+202E][U+000D][U+000A]Stepkeeper is ready" in line
    assert line.endswith(": 5% held\n")


def test_an_error_that_quotes_a_journal_forges_no_line_under_its_traceback(written):
    try:
        raise ValueError("odd\x1b[2J\nStepkeeper is ready: http://evil.example/")
    except ValueError:
        logging.getLogger("agents.watch").exception("Journal %s", "/agents/a\nb.db")
    first, *rest = written.getvalue().splitlines()
    assert first.endswith("Journal /agents/a[U+000A]b.db")
    assert rest
    assert all(line.startswith("    ") for line in rest)
    assert "\x1b" not in written.getvalue()
