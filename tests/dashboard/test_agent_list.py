"""The list of all agents: each state is told apart and filtered by, and page follows page."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest

from agents.fleet import agents
from agents.models import IndexedTask, JournalFile
from agents.states import AGENT_STATES
from dashboard import agent_list, overview
from journal import clock
from tests.dashboard.ladder import assert_page, assert_unchanged_is_204, signed_in, text

pytestmark = pytest.mark.django_db


def _links(page: str) -> dict[str, str]:
    return {word: href for href, word in re.findall(r'<a [^>]*href="(/agents/[^"]*)">([^<]+)</a>', page)}


def _a_journal(name: str, **columns: object) -> JournalFile:
    now = clock.wall()
    values = {"agent": name, "dialect": "stepkeeper", "found_at": now, "seen_at": now, "read_at": now} | columns
    return JournalFile.objects.create(path=f"/nowhere/{name}.db", **values)


def _a_task(journal: JournalFile, **columns: object) -> None:
    values = {"task_id": "t", "status": "running", "updated_at": clock.wall() - timedelta(hours=3)} | columns
    IndexedTask.objects.create(journal=journal, agent=journal.agent, **values)


@pytest.fixture
def every_state(db):
    """One agent in each state that the tables alone can give."""
    alive = {"writer_pid": 7, "writer_role": "agent"}
    _a_task(_a_journal("of-a-crash"), derived="crashed")
    _a_task(_a_journal("of-a-hang", **alive), derived="hung")
    _a_task(_a_journal("of-a-slow-call", **alive), derived="slow")
    _a_task(_a_journal("at-work", **alive))
    _a_journal("at-rest", **alive)
    _a_journal("just-found", read_at=None)
    _a_journal("switched-off")


def test_it_is_a_page_and_a_part_that_polls(every_state):
    page = assert_page("/agents/", part="agents-table")
    assert_unchanged_is_204("/agents/", part="agents-table", page=page)


@pytest.mark.parametrize(
    ("state", "name", "words"),
    [
        ("crashed", "of-a-crash", "Crashed in the middle of 1 task"),
        ("hung", "of-a-hang", "no step of it runs"),
        ("slow", "of-a-slow-call", "in one call for over 10 minutes"),
        ("working", "at-work", "Works on 1 task as pid 7."),
        ("idle", "at-rest", "Runs as pid 7."),
        ("unread", "just-found", "Its journal is not read yet."),
        ("stopped", "switched-off", "nothing is unfinished"),
    ],
)
def test_a_state_filters_to_its_agents_and_their_sentence(every_state, state, name, words):
    page = text(signed_in().get("/agents/", {"state": state}))
    assert (words in page, page.count('data-label="state"')) == (True, 1)
    assert f"?agent={name}" in page


def test_an_agent_that_was_not_read_is_never_said_to_have_nothing_unfinished(every_state):
    page = text(signed_in().get("/agents/?state=unread"))
    assert "not read yet" in page
    assert "unfinished" not in page


def test_changed_is_the_time_of_the_journals_own_change_and_a_dash_where_there_is_none(every_state):
    assert "3 h ago" in text(signed_in().get("/agents/?state=crashed"))
    assert "ago" not in text(signed_in().get("/agents/?state=idle")).split("<table", 1)[1].split("</table", 1)[0]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_page_follows_page_and_each_agent_stands_on_one(every_state, monkeypatch, limit):
    whole = agents.list_agents
    monkeypatch.setattr(agent_list, "list_agents", lambda **given: whole(**given, limit=limit))
    url, found = "/agents/", []
    while url:
        page = text(signed_in().get(url))
        found += [part.split('"', 1)[0] for part in page.split("/tasks/?agent=")[1:]]
        url = html.unescape(_links(page).get("More agents", ""))
    assert sorted(found) == sorted(set(found))
    assert len(found) == len(AGENT_STATES) - 1


@pytest.mark.parametrize("after", ["x", "1", "1.x.a", "1.2", "１.1.a"])
def test_a_cursor_that_is_none_is_a_404(every_state, after):
    assert signed_in().get("/agents/", {"after": after}).status_code == 404


def test_an_unknown_state_is_no_filter(every_state):
    assert text(signed_in().get("/agents/?state=asleep")).count('data-label="state"') == len(AGENT_STATES) - 1


def test_the_overview_leads_from_its_first_few_to_all(every_state, monkeypatch):
    monkeypatch.setattr(overview, "MOST_AGENTS", 2)
    assert _links(text(signed_in().get("/")))["5 more agents"] == "/agents/"
