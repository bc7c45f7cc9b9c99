"""The queue of pending intents."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agents.models import PendingIntent
from tests.dashboard.ladder import assert_page, assert_unchanged_is_204, signed_in, text

pytestmark = pytest.mark.django_db


def test_the_queue_is_a_page_and_a_part_that_polls(small_fleet):
    page = assert_page("/pending/", part="pending-queue", role="operator")
    assert "One intent waits for you." in page
    assert "held: nothing can tell" in page
    assert "nothing by itself: no machine may decide this." in page
    assert_unchanged_is_204("/pending/", part="pending-queue", page=text(signed_in().get("/pending/")))


def test_the_oldest_is_open_with_its_whole_story(small_fleet):
    page = text(signed_in().get("/pending/"))
    assert page.count("<details") == 1
    assert "open class=" in page
    assert "What you can do".lower() in page.lower()


def test_only_operators_are_offered_decisions(small_fleet):
    assert "Approve replay" in text(signed_in("operator").get("/pending/"))
    assert "Approve replay" not in text(signed_in("payload_viewer").get("/pending/"))


def test_an_empty_queue_says_what_would_stand_here(db):
    assert "The queue is empty" in text(signed_in().get("/pending/"))


def test_a_cursor_that_is_none_is_a_404(db):
    assert signed_in().get("/pending/?after=%00").status_code == 404


def test_a_folded_row_names_its_task(small_fleet):
    page = text(signed_in().get("/pending/"))
    assert "step 0" in page[page.index("<summary>") : page.index("</summary>")]


@pytest.mark.parametrize(("minutes", "said"), [(90, "key safe for 1 h 30 m"), (-1, "closed: the provider may have")])
def test_a_key_window_that_is_known_is_not_called_unknown(small_fleet, still_clock, minutes, said):
    PendingIntent.objects.update(window_text="", window_left_until=still_clock + timedelta(minutes=minutes))
    page = text(signed_in().get("/pending/"))
    assert said in page
    assert "unknown: nothing says how long" not in page
