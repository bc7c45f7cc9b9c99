"""How a job ends whose attempt was begun: its sender has the last word while it lives."""

from __future__ import annotations

from functools import partial

import pytest

from agents.jobs.result import follow_job
from journal.store.sql import attempts, decisions
from journal.store.writer import Store
from tests.builders.asked import ask, deliver
from tests.builders.fleet import writing

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(orphaned):
    return orphaned


def begun(store, job):
    """Begin the attempt that the approval allows, as its agent does."""

    def begin(tx):
        mark = attempts.mark_dispatch(tx, job.task_id, 0, generation=0, decision_id=job.message_id)
        assert decisions.consume_approval(tx, job.message_id, mark.attempt)
        return mark

    return store.write(begin, sync=False)


@pytest.mark.parametrize("is_late", [False, True])
def test_an_approval_is_called_sent_only_once_its_attempt_has_an_outcome(path, later, is_late):
    job = deliver(ask(path))
    store = Store(path, agent="hook", role="agent")
    try:
        mark = begun(store, job)
        if is_late:
            later()
        job = follow_job(job)
        assert (job.state, "attempt 2 is under way" in job.sentence) == ("waiting_agent", True)
        settled = partial(
            attempts.settle_attempt,
            mark=mark,
            verdict="unknown",
            kind="gateway",
            http_status=504,
            detail="",
            retry_after_at=None,
            output_json=None,
        )
        assert store.write(settled, sync=False)
        job = follow_job(job)
        assert (job.state, job.sentence.endswith("it sent attempt 2.")) == ("done", True)
    finally:
        store.close()


def test_a_killed_attempt_without_an_outcome_ends_the_job_with_its_time(path, later):
    job = deliver(ask(path))
    store = Store(path, agent="hook", role="agent")
    begun(store, job)
    store.close()
    with writing(path) as connection:
        connection.execute("UPDATE agent_boot SET ended_at = NULL, ended = NULL")
        connection.commit()
    assert "attempt 2 is under way" in follow_job(job).sentence
    later()
    job = follow_job(job)
    assert (job.state, "its outcome is not on record" in job.sentence) == ("done", True)
