"""A page of a journal opens the file once, and shows one instant of it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest

from agents.models import Job
from agents.models.job import WAITING_AGENT
from journal.reader import process
from journal.reader.process import Pool
from tests.builders import fleet
from tests.builders.asked import ask
from tests.dashboard.conftest import HOSTILE, Fleet
from tests.dashboard.ladder import signed_in

pytestmark = pytest.mark.django_db
_opened: list[str] = []
_counting = False
PAGES = {
    "task": lambda fleet: fleet.task(),
    "task with a held step": lambda fleet: fleet.task(HOSTILE),
    "later page of a task": lambda fleet: f"{fleet.task()}?after=0",
    "step": lambda fleet: fleet.step(1),
    "held step": lambda fleet: fleet.step(0, HOSTILE),
    "download": lambda fleet: f"{fleet.step(1)}bytes/output/",
    "decision": lambda fleet: f"{fleet.step(0, HOSTILE)}decide/abandon/",
    "question": lambda fleet: fleet.step(0, HOSTILE, name="query"),
}


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if _counting and event == "sqlite3.connect" and "triage.db" in str(arguments[0]):
        _opened.append(str(arguments[0]))


# Python tells its audit hooks of each connection. A hook stays for the life of the process.
sys.addaudithook(_hear)


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """The addresses under which the journal `triage.db` is opened from here on."""
    global _counting
    _opened.clear()
    _counting = True
    yield _opened
    _counting = False


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_its_journal_once(small_fleet: Fleet, opened: list[str], page: str):
    response = signed_in("operator").get(PAGES[page](small_fleet))
    assert response.status_code in (200, 409)
    assert len(opened) == 1
    assert "mode=ro" in opened[0]


@pytest.mark.parametrize("page", ["task", "task with a held step", "held step"])
def test_a_poll_that_finds_nothing_new_opens_no_journal(small_fleet: Fleet, opened: list[str], page: str):
    client, url = signed_in("operator"), PAGES[page](small_fleet)
    version = client.get(url).context["page"].version
    opened.clear()
    assert client.get(f"{url}?version={version}", headers={"HX-Request": "true"}).status_code == 204
    assert opened == []


def test_branches_of_a_task_cost_no_further_opening(small_fleet: Fleet, opened: list[str]):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        for number in range(5):
            fleet.rows.a_task(connection, f"report/42?/{number}", parent_id="report/42?")
            fleet.rows.a_step(connection, f"report/42?/{number}", 0)
    opened.clear()
    page = signed_in("operator").get(small_fleet.task()).context["page"]
    assert [group.steps for group in page.groups] == [3, 1, 1, 1, 1, 1]
    assert len(opened) == 1


@pytest.mark.parametrize("kind", ["decision", "query_status"])
def test_the_page_of_a_job_opens_its_journal_once(small_fleet: Fleet, opened: list[str], kind: str):
    job = ask(small_fleet.folder / "triage.db", kind=kind, decision="abandon" if kind == "decision" else None)
    Job.objects.filter(pk=job.pk).update(state=WAITING_AGENT, posted_at=job.created_at)
    opened.clear()
    assert signed_in("operator").get(f"/jobs/{job.uuid}/").status_code == 200
    assert len(opened) == 1


def test_a_journal_whose_reader_hangs_is_a_card_and_other_pages_go_on(small_fleet: Fleet, monkeypatch):
    pool = Pool(1)
    monkeypatch.setattr(process, "_pool", pool)
    client = signed_in()
    assert client.get(small_fleet.task()).context["page"].rows
    stopped = pool.run("any", 30.0, os.getpid)
    os.kill(stopped, signal.SIGSTOP)
    monkeypatch.setattr(process, "GRACE", 0.0)
    card = client.get(small_fleet.task())
    assert (card.status_code, card.context["page"].kind) == (200, "hung")
    monkeypatch.setattr(process, "GRACE", 30.0)
    assert client.get("/tasks/").status_code == 200
    assert client.get(small_fleet.task()).context["page"].kind == "hung"
    fresh = Pool(1)
    monkeypatch.setattr(process, "_pool", fresh)
    assert client.get(small_fleet.task()).context["page"].rows
    fresh.close()
    pool.close()
