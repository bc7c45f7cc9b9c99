"""A canary shows that the worker answers, and one that is lost makes room for the next."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agents.jobs.queue import count_queued, send_canary
from agents.models import Beat, Job
from journal import clock
from tests.builders.asked import deliver

pytestmark = pytest.mark.django_db


def test_the_canary_shows_that_the_worker_answers():
    send_canary()
    send_canary()
    job = Job.objects.get(kind="canary")
    assert count_queued() == 1
    assert deliver(job).state == "done"
    assert Beat.objects.filter(name="worker").exists()
    send_canary()
    assert Job.objects.filter(kind="canary").count() == 2


def test_a_canary_of_before_this_watch_is_not_waited_for():
    send_canary()
    send_canary(watching_since=clock.wall())
    assert sorted(Job.objects.values_list("state", flat=True)) == ["failed", "queued"]


def test_a_canary_that_does_not_come_home_is_given_up_and_another_one_sent():
    send_canary()
    Job.objects.update(created_at=clock.wall() - timedelta(minutes=2))
    send_canary()
    assert sorted(Job.objects.values_list("state", flat=True)) == ["failed", "queued"]
