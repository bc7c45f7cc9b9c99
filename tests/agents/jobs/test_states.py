"""A job that its worker or its queue lost is found again, and given up when that happens twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError

from agents.jobs import execute, queue
from agents.jobs.queue import count_queued, sweep_jobs
from agents.jobs.result import end_overdue_jobs
from agents.jobs.states import LEASE, claim_job, requeue_lost_jobs
from agents.models import Job
from journal import clock
from journal.inbox import mailbox
from tests.builders.asked import ask, deliver
from tests.builders.fleet import journal_file

pytestmark = pytest.mark.django_db


def test_a_job_whose_worker_died_twice_is_given_up(path, server):
    job = ask(path)
    for attempt in (1, 2):
        claimed = claim_job(job.uuid)
        assert claimed is not None
        assert claimed.attempts == attempt, "counted before the work"
        assert claim_job(job.uuid) is None, "a second delivery finds nothing to claim"
        Job.objects.update(claimed_at=clock.wall() - LEASE - timedelta(seconds=1))
        end_overdue_jobs()
        requeued = requeue_lost_jobs()
        assert [one.pk for one in requeued] == ([job.pk] if attempt == 1 else [])
    job.refresh_from_db()
    assert (job.state, job.sentence.startswith("Gave up after 2 attempts")) == ("failed", True)
    deliver(job)
    assert len(server.received) == 1


def test_a_kill_between_post_and_lock_posts_the_same_message_again(path, server):
    job = ask(path)
    claimed = claim_job(job.uuid)
    assert claimed is not None
    execute._post_decision(claimed, journal_file(path))
    execute._post_decision(claimed, journal_file(path))
    assert [message.message_id for message in mailbox.list_messages(path)] == [job.message_id]
    Job.objects.update(state="queued")
    assert deliver(job).state == "done"
    assert len(server.received) == 2


def test_a_queued_job_that_its_queue_lost_is_queued_again(path):
    job = ask(path)
    assert not requeue_lost_jobs(), "its own entry has not had its time yet"
    Job.objects.update(enqueued_at=clock.wall() - timedelta(minutes=1))
    assert [one.pk for one in requeue_lost_jobs()] == [job.pk]
    assert not requeue_lost_jobs()


def test_a_decision_stands_where_only_the_queue_could_not_be_written(
    path, monkeypatch, django_capture_on_commit_callbacks
):
    def locked(*_args, **_more):
        raise OperationalError("database is locked")

    with monkeypatch.context() as patched:
        patched.setattr(queue, "async_task", locked)
        with django_capture_on_commit_callbacks(execute=True):
            job = ask(path)
    job.refresh_from_db()
    assert job.state == "queued"
    assert count_queued() == 0
    Job.objects.update(enqueued_at=clock.wall() - timedelta(minutes=1))
    sweep_jobs()
    assert count_queued() == 1
