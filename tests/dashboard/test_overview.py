"""The first page."""

from __future__ import annotations

import pytest

from agents.models import Beat, JournalFile
from tests.dashboard.ladder import assert_page, assert_unchanged_is_204, signed_in, text

pytestmark = pytest.mark.django_db


def test_the_overview_is_a_page_and_a_part_that_polls(small_fleet):
    page = assert_page("/", part="overview-now")
    assert "1 intent needs your decision" in page
    assert "<title>\n      (1) Overview" in page
    assert_unchanged_is_204("/", part="overview-now", page=page)


def test_an_empty_fleet_names_the_command_that_fills_it(db, settings):
    settings.STEPKEEPER_JOURNALS = ()
    page = text(signed_in().get("/"))
    assert "No agent yet" in page
    assert "python docs/tutorial/first_agent.py" in page


def test_an_index_nobody_keeps_is_said_to_be_old(small_fleet):
    Beat.objects.all().delete()
    assert "the watch process has never run" in text(signed_in().get("/"))


def test_the_tiles_are_links_to_where_their_numbers_come_from(small_fleet):
    page = text(signed_in().get("/"))
    for target in ("/pending/", "/agents/", "/spend/", "/disk/"):
        assert f'href="{target}"' in page.split('class="tiles"')[1]


def test_spend_is_at_least_what_is_known_while_a_journal_cannot_be_read(small_fleet):
    def spent() -> str:
        return text(signed_in().get("/")).split("spent today")[1].split("</a>")[0]

    JournalFile.objects.update(kind="ok")
    assert "≥" not in spent()
    JournalFile.objects.filter(pk=JournalFile.objects.values("pk")[:1]).update(kind="damaged")
    assert "≥ $" in spent()
    assert "1 journal cannot be read now" in spent()


def test_without_the_demo_nothing_can_be_killed(small_fleet):
    assert "Kill this agent" not in text(signed_in("admin").get("/"))
    assert signed_in("admin").post("/demo/kill/triage/").status_code == 404
    assert signed_in("admin").get("/demo/kill/triage/").status_code == 405
