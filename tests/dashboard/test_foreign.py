"""Journals of other makers: what they do not say is said to be unknown, and nothing of them is recovered by us."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from django.urls import reverse

from agents import alerts
from agents.fleet.queries import list_journals, list_tasks, load_overview
from agents.models import JournalFile, PendingIntent
from journal import clock
from tests.builders import fleet as builders
from tests.dashboard.ladder import signed_in, text
from tests.journal.rows import hash_only_table, insert, writer

pytestmark = pytest.mark.django_db


@pytest.fixture
def maker(tmp_path: Path, settings) -> Iterator[sqlite3.Connection]:
    """Another maker's writer; its table keeps hashes only."""
    builders.watched(tmp_path, settings)
    with closing(writer(tmp_path / "foreign.db", mode="delete")) as connection:
        hash_only_table(connection)
        yield connection


def put(connection: sqlite3.Connection, task_id: str, index: int, status: str, at: str | None) -> None:
    insert(
        connection, "agent_step_journal", task_id=task_id, step_index=index, tool_name="send_mail", args_hash="ab" * 32,
        status=status, created_at=at or "",
    )  # fmt: skip


def address(name: str, *rest: object) -> str:
    return reverse(name, args=[list_journals()[0].journal_id, *rest])


@pytest.fixture
def pending(maker) -> None:
    put(maker, "t", 0, "committed", "2026-11-01 10:00:00")
    put(maker, "t", 1, "pending", "2026-11-01 10:00:05")
    builders.swept()


def test_the_task_is_unresolved_in_the_list_and_on_its_page_and_never_crashed_or_resumed(pending):
    listed, page = text(signed_in().get("/tasks/")), text(signed_in().get(address("task", "t")))
    for said in (listed, page):
        assert "<span>unresolved</span>" in said
        assert "<span>running</span>" not in said
        assert "crashed" not in said.split("</form>")[-1]
        assert "resumes" not in said
    assert "2 steps on record, 1 of them pending" in page
    assert "nothing of it is recovered from here" in page
    assert [line.task_id for line in list_tasks(status="unresolved").items] == ["t"]
    assert not list_tasks(status="running").items


def test_what_it_cost_is_unknown_and_never_free(pending):
    for url in ("/tasks/", address("task", "t"), "/", "/spend/"):
        assert "$0" not in text(signed_in().get(url)), url
    assert "1 journal of another maker says nothing of tokens or money" in text(signed_in().get("/spend/"))
    assert "unknown" in text(signed_in().get("/"))


def test_neither_a_copy_nor_a_file_that_is_gone_counts_as_a_journal_of_another_maker(pending):
    for changes in ({"kind": "copy"}, {"kind": "vanished", "vanished_at": clock.wall()}):
        JournalFile.objects.update(**{"kind": "ok", "vanished_at": None, **changes})
        assert load_overview().journals_foreign == 0
        assert "of another maker" not in text(signed_in().get("/spend/"))
        assert "of other makers" not in text(signed_in().get("/"))


def test_its_pending_step_stands_apart_and_nothing_claims_that_it_settles_or_runs_again(pending):
    queue = text(signed_in("operator").get("/pending/"))
    assert "In journals of other makers" in queue
    assert "Nothing here settles it: only the agent that wrote this journal can." in queue
    assert "Settles by itself" not in queue
    assert "dispatched" not in queue
    step = text(signed_in("operator").get(address("step", "t", 1)))
    assert "pending; outcome unknown" in step
    assert "This journal does not say whether the step changes anything outside." in step
    assert "It records no attempts" in step
    for said in (queue, step, text(signed_in().get(address("task", "t")))):
        assert "runs again" not in said
        assert "changes nothing outside" not in said


def test_rows_without_a_time_have_no_age_and_raise_no_alert(maker):
    put(maker, "t", 0, "pending", None)
    builders.swept()
    assert "time not recorded" in text(signed_in().get("/tasks/"))
    assert "time not recorded" in text(signed_in().get("/pending/"))
    assert load_overview().oldest_pending_at is None
    tile = text(signed_in().get("/")).split('class="tiles"')[1].split("</ul>")[0]
    assert "of 1 open" in tile
    assert "no intent is open" not in tile
    first = PendingIntent.objects.get().since
    PendingIntent.objects.update(since=first - timedelta(days=1))
    alerts.evaluate_alerts(watching_since=clock.wall())
    assert "unsettled" not in text(signed_in().get("/alerts/"))
    builders.reread(builders.journal_file(Path(list_journals()[0].path)))
    assert PendingIntent.objects.get().since == first - timedelta(days=1), "its place in the list stays"


def test_a_task_longer_than_a_page_counts_all_its_steps(maker):
    maker.execute("BEGIN")
    for index in range(1203):
        put(maker, "long", index, "committed", "2026-11-01 10:00:00")
    maker.execute("COMMIT")
    builders.swept()
    page = text(signed_in().get(address("task", "long")))
    assert "1,203 steps on record, none pending" in page
    assert "200 steps" not in page


def test_our_own_long_task_counts_and_prices_all_its_steps(small_fleet):
    rows = builders.rows
    with builders.writing(small_fleet.folder / "triage.db") as connection:
        connection.execute("BEGIN")
        rows.a_task(connection, "long", status="completed", revision=rows.BOOT * 2 + 1)
        for index in range(601):
            rows.a_step(connection, "long", index, revision=rows.BOOT * 2 + 2 + index)
        builders.a_model_call(connection, "long", 3, revision=rows.BOOT * 2 + 700)
        builders.a_model_call(connection, "long", 600, revision=rows.BOOT * 2 + 701)
        connection.execute("COMMIT")
    builders.reread(small_fleet.triage)
    page = text(signed_in().get(small_fleet.task("long")))
    assert "601 steps" in page
    assert "200 steps" not in page
    assert "3,000" in page
    assert "$0.0107" in page


@pytest.mark.parametrize(("status", "said"), [("started", "changed"), ("committed", "settled")])
def test_a_step_of_another_makers_status_is_not_called_settled(maker, status, said):
    put(maker, "t", 0, status, "2026-11-01 10:00:00")
    builders.swept()
    page = text(signed_in().get(address("step", "t", 0)))
    assert f"<p>{said} " in page
