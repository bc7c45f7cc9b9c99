"""The queue of pending intents."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from agents.fleet.queries import list_pending
from agents.models import JournalFile, PendingIntent
from dashboard import pending
from tests.builders import fleet
from tests.builders.fleet import rows
from tests.dashboard.conftest import NOW
from tests.dashboard.ladder import (
    assert_a_poll_brings_the_same_page,
    assert_page,
    assert_unchanged_is_204,
    signed_in,
    text,
)

pytestmark = pytest.mark.django_db


def test_the_queue_is_a_page_and_a_part_that_polls(small_fleet):
    page = assert_page("/pending/", part="pending-queue", role="operator")
    assert "One intent needs your decision." in page
    assert "held: outcome unknown" in page
    assert "Nothing: only a person can decide it." in page
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


@pytest.mark.parametrize(("minutes", "said"), [(90, "key safe for 1 h 30 min"), (-1, "closed: the provider may have")])
def test_a_key_window_that_is_known_is_not_called_unknown(small_fleet, still_clock, minutes, said):
    PendingIntent.objects.update(window_text="", window_left_until=still_clock + timedelta(minutes=minutes))
    page = text(signed_in().get("/pending/"))
    assert said in page
    assert "unknown: nothing says how long" not in page


def named(page: str) -> list[str]:
    """The intents of a page, in its order: the task each folded line names."""
    return re.findall(r'<span class="under"><bdi>([^<]+)</bdi>, step', page)


def links(page: str) -> dict[str, str]:
    """The buttons below the list, by their words."""
    return {word: href for href, word in re.findall(r'<a class="button" href="(/pending/[^"]*)">([^<]+)</a>', page)}


@pytest.fixture
def two_journals(tmp_path, settings, still_clock, db):
    """Held intents of two agents, turn and turn about, and what another maker's journal calls pending."""
    settings.STEPKEEPER_JOURNALS = ()
    for name, minutes in (("a", (9, 5, 1)), ("b", (7, 5, 3))):
        with fleet.writing(tmp_path / f"{name}.db", agent=name) as connection:
            rows.a_boot(connection, 1, ended_at="2026-11-01T10:10:00.000000Z", ended="SIGKILL")
            for minute in minutes:
                _a_pending_task(connection, f"{name}-held-{minute}", minute, "no_key_no_status")
    with rows.writer(tmp_path / "c.db", mode="delete") as connection:
        rows.minimal_table(connection)
        for minute in (11, 0):
            rows.insert(
                connection,
                "agent_step_journal",
                task_id=f"c-foreign-{minute}",
                step_index=0,
                tool_name="send",
                status="pending",
                created_at=f"2026-11-01T10:{minute:02d}:00Z",
            )
    connection.close()
    fleet.watched(tmp_path, settings)
    fleet.swept()


def _a_pending_task(connection, task_id, minute, hold_reason):
    rows.a_task(
        connection,
        task_id,
        status="waiting",
        wait_kind="held",
        wait_step_task=task_id,
        wait_step_index=0,
        wait_hold=hold_reason,
    )
    rows.a_step(
        connection,
        task_id,
        status="pending",
        output_json=None,
        output_bytes=None,
        committed_boot=None,
        duration=None,
        hold_reason=hold_reason,
        created_at=f"2026-11-01T10:{minute:02d}:00.000000Z",
    )
    rows.an_attempt(connection, task_id, verdict=None, kind=None, ended_at=None)


HELD = ["a-held-1", "b-held-3", "a-held-5", "b-held-5", "b-held-7", "a-held-9"]
FOREIGN = ["c-foreign-0", "c-foreign-11"]


def test_the_oldest_of_all_journals_stands_first_and_open_and_the_rest_is_folded(two_journals):
    page = text(signed_in().get("/pending/"))
    assert "6 intents need your decision." in page
    assert named(page) == HELD + FOREIGN
    opened = re.findall(r'<details id="[^"]+"(?: (open) class="first")? ?>', page)
    assert opened == ["open"] + [""] * 7
    assert page.index("c-foreign-0") > page.index("<h2>In journals of other makers</h2>") > page.index("a-held-9")


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_page_follows_page_and_each_intent_stands_on_one(two_journals, monkeypatch, limit):
    monkeypatch.setattr(pending, "LIMIT", limit)
    client, url, found = signed_in(), "/pending/", []
    while url:
        page = text(client.get(url))
        assert "6 intents need your decision." in page
        found += named(page)
        assert links(page).get("First intents") == (None if url == "/pending/" else "/pending/")
        url = links(page).get("More intents", "")
    assert found == HELD + FOREIGN


def test_a_later_page_follows_itself_and_never_turns_into_the_first(two_journals, monkeypatch):
    monkeypatch.setattr(pending, "LIMIT", 3)
    client = signed_in()
    url = links(text(client.get("/pending/")))["More intents"]
    page = text(client.get(url))
    assert named(page) == HELD[3:]
    assert_unchanged_is_204(url, part="pending-queue", page=page)
    assert_a_poll_brings_the_same_page(part="pending-queue", page=page)


def test_a_page_whose_intents_were_settled_meanwhile_is_not_called_an_empty_queue(two_journals, monkeypatch):
    monkeypatch.setattr(pending, "LIMIT", 7)
    url = links(text(signed_in().get("/pending/")))["More intents"]
    PendingIntent.objects.filter(state="foreign").delete()
    page = text(signed_in().get(url))
    assert "No further intent stands here now." in page
    assert "6 intents need your decision." in page
    assert "The queue is empty" not in page


def test_a_journal_full_of_older_intents_hides_nothing_that_waits_for_a_person(small_fleet):
    full = JournalFile.objects.create(path="/full.db", agent="full", found_at=NOW, seen_at=NOW)
    for state, many in (("foreign", 201), ("unresolved", 201)):
        PendingIntent.objects.bulk_create(
            PendingIntent(
                journal=full,
                task_id=state,
                step_index=number,
                tool_name="send",
                state=state,
                since=NOW - timedelta(days=9),
                decided_at=NOW,
            )
            for number in range(many)
        )
    page = text(signed_in().get("/pending/"))
    assert "One intent needs your decision." in page
    assert "held: outcome unknown" in page
    assert list_pending().items[0].state == "held"
