"""What every page asks for while it is looked at: the index's age, and what the header counts."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from agents.models import Beat, PendingIntent
from tests.dashboard.ladder import assert_closed, assert_unchanged_is_204, part_of, signed_in, text


def test_the_header_counts_what_waits_now_and_the_age_of_the_index_moves(small_fleet, still_clock):
    Beat.objects.update_or_create(name="watch", defaults={"beaten_at": still_clock - timedelta(seconds=4)})
    page = text(signed_in().get("/audit/"))
    assert "updated <time" in page
    assert 'data-moves="age">4 s ago</time>' in page
    assert 'id="count-pending" class="waits " data-count="1"><' in page
    assert_unchanged_is_204("/pulse/", part="desk-pulse", page=page)
    PendingIntent.objects.all().delete()
    answer = part_of("/pulse/", "desk-pulse")
    assert 'id="count-pending" class="waits " data-count="" hidden hx-swap-oob="true"' in answer
    assert 'id="count-alerts"' in answer


@pytest.mark.parametrize("url", ["/", "/pending/", "/tasks/", "/spend/", "/disk/", "/alerts/", "/journals/"])
def test_every_page_says_that_the_index_is_old(small_fleet, still_clock, url):
    Beat.objects.update_or_create(name="watch", defaults={"beaten_at": still_clock - timedelta(seconds=45)})
    page = text(signed_in().get(url))
    assert "the watch process does not run" in page
    assert "45 s ago" in page


def test_it_is_for_people_with_a_role_alone(small_fleet):
    assert_closed("/pulse/", method="get")
    assert "desk-pulse" not in text(signed_in(None).get("/audit/"))


@pytest.mark.parametrize("url", ["/", "/pending/", "/tasks/", "/disk/", "/alerts/", "/journals/"])
def test_every_part_that_polls_takes_of_an_answer_itself_alone(small_fleet, url):
    # What stands around it would be put into the page with each answer.
    found = re.findall(r'<\w+ id="([\w-]+)"[^>]* data-poll[^>]*>', text(signed_in().get(url)))
    page = text(signed_in().get(url))
    assert len(found) == 2
    for part in found:
        assert re.search(rf'id="{part}"[^>]* hx-select="#{part}" hx-swap="outerHTML"', page)
