"""A task's page while its journal is written."""

from __future__ import annotations

import pytest

from dashboard.derived_holds import load_holds
from dashboard.journal_page import open_journal
from dashboard.tasks.task import build_task_page
from tests.builders import fleet
from tests.dashboard.conftest import HOSTILE
from tests.dashboard.ladder import signed_in

pytestmark = pytest.mark.django_db


def test_what_is_written_while_a_page_is_made_is_on_the_next_poll(small_fleet):
    """A page that had its version from after the write would be told "unchanged" for ever."""
    opened = open_journal(small_fleet.triage)
    holds = load_holds(opened)
    found = opened.reader.load_task(HOSTILE, limit=10)
    assert found.task is not None
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        connection.execute("UPDATE agent_task SET status = 'completed' WHERE task_id = ?", (HOSTILE,))
    opened = opened.with_boots(found.boots)
    page = build_task_page(opened, found, found.task, holds, place="", reveal=False, decides=False)
    assert page.state == "waiting"
    headers = {"HX-Request": "true", "HX-Target": "task-timeline"}
    poll = signed_in().get(f"{small_fleet.task(HOSTILE)}?version={page.version}", headers=headers)
    assert poll.status_code == 200
    assert "data-poll" not in poll.content.decode()
