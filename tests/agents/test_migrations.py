"""What a database of an earlier version holds is told as today's pages tell it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from agents.access import audit
from agents.models import IndexedTask, Job, JournalFile, PendingIntent, SpendHour
from journal import clock
from tests.builders.fleet import a_model_call, a_run, journal_file, rows, swept, watched, writing

pytestmark = pytest.mark.django_db
told_anew = import_module("agents.migrations.0007_told_anew")
SAID = "The provider says the effect exists. (HTTP 200)"
SECRET = "order of Jane Doe,\nHarley Street"
FLIGHT = " An attempt was in flight while it was asked, so this proves nothing."


def a_job(kind="query_status", **cells) -> Job:
    now = clock.wall()
    number = str(Job.objects.count())
    return Job.objects.create(kind=kind, message_id=number, created_at=now, enqueued_at=now, **cells)


def migrate() -> None:
    told_anew.keep_words_of_providers_apart(apps, None)
    told_anew.read_anew(apps, None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{SAID} {SECRET}", SAID),
        (f"{SAID} {SECRET}{FLIGHT}", SAID + FLIGHT),
        (SAID, SAID),
        ("The agent took the question in and gave no answer.",) * 2,
    ],
)
def test_providers_words_of_an_earlier_version_move_to_what_payload_viewers_see(before, after):
    job = a_job(result=before, sentence=before)
    audit.record("outcome query_status", actor=None, detail=before, job=job)
    migrate()
    migrate()
    job.refresh_from_db()
    assert (job.result, job.sentence, audit.lines().items[0].detail) == (after, after, after)
    assert job.detail == (SECRET if SECRET in before else "")


def test_what_was_kept_apart_already_and_what_people_typed_stay_as_they_are():
    kept = a_job(result=f"{SAID}\nhook-1: settled", sentence=SAID, detail="its answer")
    typed = a_job(kind="decision", reason=f"{SAID} I looked.", sentence="Applied.")
    audit.record("request replay", actor=None, detail=f"{SAID} I looked.")
    migrate()
    for job in (kept, typed):
        before = (job.result, job.sentence, job.detail, job.reason)
        job.refresh_from_db()
        assert (job.result, job.sentence, job.detail, job.reason) == before
    assert audit.lines().items[0].detail == f"{SAID} I looked."


def test_rows_that_were_indexed_before_get_their_new_columns_and_are_counted_once(tmp_path, settings):
    watched(tmp_path, settings)
    path = tmp_path / "a.db"
    error = '{"type": "ValueError", "message": "no such pull"}'
    pending: dict[str, Any] = {"output_json": None, "output_bytes": None, "committed_boot": None, "duration": None}
    with writing(path) as connection:
        rows.a_boot(connection)
        rows.a_task(connection, "t", status="failed", error_json=error)
        rows.a_step(connection, "t", 0, status="pending", **pending)
        a_model_call(connection)
        a_run(connection)
    swept()
    before = counted()
    assert before[0] == [("t", "ValueError", True)]
    IndexedTask.objects.update(error_type="", error_message="")
    PendingIntent.objects.update(why="quoted")
    JournalFile.objects.update(signature=journal_file(path).signature or "read")
    migrate()
    swept()
    assert counted() == before
    assert not PendingIntent.objects.filter(why="quoted").exists()


def counted() -> tuple[list[object], ...]:
    return (
        list(IndexedTask.objects.values_list("task_id", "error_type", "dated")),
        list(IndexedTask.objects.values_list("tokens_in", "cost_pico")),
        list(SpendHour.objects.values_list("calls", "tokens_in", "cost_pico")),
        list(PendingIntent.objects.values_list("task_id", "step_index", "state")),
    )
