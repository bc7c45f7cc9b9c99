"""A failed task says why it failed: the type to everybody, the message to people who may see payloads."""

from __future__ import annotations

import contextlib

import pytest
from django.urls import reverse

from journal import Journal
from tests.builders import fleet
from tests.dashboard.ladder import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def failed(tmp_path, settings) -> str:
    """The address of a task that failed before its first step."""
    fleet.watched(tmp_path, settings)
    path = tmp_path / "a.db"
    with Journal(path, agent="a") as journal, contextlib.suppress(ValueError), journal.task("t"):
        raise ValueError("customer <4711> is unknown")
    fleet.swept()
    return reverse("task", args=[fleet.journal_file(path).pk, "t"])


def test_its_page_and_the_lists_say_the_type_and_to_payload_viewers_the_message(failed):
    for url in (failed, "/tasks/", "/"):
        page = text(signed_in("payload_viewer").get(url))
        assert "ValueError: customer &lt;4711&gt; is unknown" in page, url


def test_a_viewer_is_told_the_type_and_that_there_is_a_message(failed):
    for url in (failed, "/tasks/", "/"):
        page = text(signed_in("viewer").get(url))
        assert "ValueError" in page, url
        assert "4711" not in page, url
    assert "Its message may quote a payload" in text(signed_in("viewer").get(failed))


def test_one_without_steps_does_not_ask_to_start_the_agent(failed):
    page = text(signed_in().get(failed))
    assert "It ended before its first step." in page
    assert "Start the agent" not in page
