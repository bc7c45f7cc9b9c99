"""One job's page follows it to its result and then stops."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.urls import reverse

from agents.models import Job
from journal import clock
from tests.dashboard.ladder import assert_page, assert_unchanged_is_204, part_of, signed_in

pytestmark = pytest.mark.django_db


def a_job(small_fleet, state: str, **more: object) -> str:
    now = clock.wall()
    job = Job.objects.create(
        kind="decision",
        decision="replay",
        journal=small_fleet.triage,
        task_id="report/42?",
        step_index=2,
        key="ab" * 32,
        payload_sha256="cd" * 32,
        dispatches=1,
        actor_name="ann",
        reason="The channel shows no such message.",
        state=state,
        message_id=uuid.uuid4().hex,
        created_at=now,
        enqueued_at=now,
        expires_at=now + timedelta(minutes=15),
        **more,
    )
    return reverse("job", args=[job.uuid])


def test_an_open_job_polls_until_it_has_ended(small_fleet):
    url = a_job(small_fleet, "queued", sentence="Waiting for the worker.")
    page = assert_page(url, part="job-now")
    assert "Waiting for the worker." in page
    assert_unchanged_is_204(url, part="job-now", page=page)


@pytest.mark.parametrize("state", ["done", "failed", "expired", "refused"])
def test_an_ended_job_does_not_poll(small_fleet, state):
    page = part_of(a_job(small_fleet, state, ended_at=clock.wall(), sentence="It is over."), "job-now")
    assert "hx-trigger" not in page
    assert "Look at the step" in page


def test_what_was_typed_or_said_in_lines_is_shown_in_lines(small_fleet):
    url = a_job(small_fleet, "done", ended_at=clock.wall(), sentence="It is over.", result="one\ntwo")
    Job.objects.update(reason="first\r\nsecond\u202e")
    page = part_of(url, "job-now")
    assert '<dd class="typed">first\nsecond<span class="ctl"' in page
    assert ">one\ntwo</p>" in page


def test_an_unknown_job_is_a_404_and_the_canary_is_none(small_fleet):
    assert signed_in().get(reverse("job", args=[uuid.uuid4()])).status_code == 404
    now = clock.wall()
    canary = Job.objects.create(kind="canary", message_id=uuid.uuid4().hex, created_at=now, enqueued_at=now)
    assert signed_in().get(reverse("job", args=[canary.uuid])).status_code == 404
    assert signed_in().get("/jobs/nonsense/").status_code == 404
