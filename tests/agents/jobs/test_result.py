"""How a job ends: by what the journal says, by time, and each end once in the audit."""

from __future__ import annotations

import contextlib
import threading
from datetime import timedelta

import pytest
from django.db.models import F

from agents.access import audit
from agents.decisions.check import StepBinding, decision_message
from agents.jobs import execute
from agents.jobs.result import end_overdue_jobs, follow_job, follow_waiting_jobs
from agents.jobs.states import claim_job
from agents.models import Job
from journal import Journal, Request, clock, http_tool
from journal.errors import StepWaiting
from journal.inbox import mailbox
from journal.reader import Reader
from journal.settle import visit
from tests.builders.asked import ask, deliver
from tests.builders.fleet import held, journal_file, the_step
from tests.builders.held import TASK
from tests.journal.raw_server import answer, serving

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(orphaned):
    return orphaned


def outcomes():
    return [
        (line.action, line.allowed, line.detail)
        for line in audit.list_events(task_id=TASK).items
        if line.action.startswith("outcome")
    ]


def test_an_approval_that_was_taken_in_and_never_sent_expires_and_frees_the_step(path, server, later):
    job = deliver(ask(path))
    assert job.state == "waiting_agent"
    assert "not sent yet" in job.sentence
    later()
    follow_waiting_jobs()
    job.refresh_from_db()
    assert (job.state, "but not sent before it expired. Nothing was sent" in job.sentence) == ("expired", True)
    assert outcomes() == [("outcome replay", False, job.sentence)]
    assert len(server.received) == 1
    assert deliver(ask(path, decision="abandon")).state == "done"
    assert follow_job(job).state == "expired", "what settled the step later was not this approval"
    assert len(outcomes()) == 2


def test_an_approval_whose_attempt_is_on_record_is_done_however_late_it_is_looked_at(path, server, later, monkeypatch):
    job = deliver(ask(path))
    monkeypatch.setenv("HOOK_URL", server.url)
    visit.reconcile_file(path, role="cli")
    later()
    assert (follow_job(job).state, len(server.received)) == ("done", 2)
    assert outcomes() == [("outcome replay", True, job.sentence)]


def test_an_approval_that_a_later_decision_replaced_was_not_sent(path, server):
    job = deliver(ask(path))
    decision = Reader(path).by_decision(job.message_id)
    assert decision is not None
    mailbox.post_message(path, decision_message("abandon", **another(job)))
    visit.reconcile_file(path, role="cli")
    assert follow_job(job).state == "refused"
    assert "not sent: superseded by a later decision (abandon by bob)" in job.sentence
    assert the_step(path, TASK).status == "abandoned"


def another(job):
    return {
        "message_id": "cd" * 16,
        "created_at": clock.wall(),
        "expires_at": clock.wall() + timedelta(minutes=15),
        "task_id": TASK,
        "step_index": 0,
        "binding": StepBinding(job.key, job.payload_sha256, job.dispatches),
        "actor": "bob",
        "reason": "It is not needed any more.",
        "output_json": "",
        "reference": "",
    }


def test_a_queued_job_whose_time_is_over_ends_once_with_a_line_in_the_audit(path, later):
    one = ask(path)
    later()
    end_overdue_jobs()
    deliver(one)
    assert one.state == "expired"
    assert outcomes() == [("outcome replay", False, one.sentence)]
    assert "before it could be carried out; nothing was sent" in one.sentence


def test_a_late_job_that_its_queue_delivers_ends_with_a_line_in_the_audit(path, later):
    job = ask(path)
    later()
    assert deliver(job).state == "expired"
    assert outcomes() == [("outcome replay", False, job.sentence)]


def test_a_late_job_that_the_writer_had_applied_says_so(path, later):
    with held(path):
        job = deliver(ask(path, decision="abandon"))
        assert job.state == "waiting_agent"
    visit.reconcile_file(path, role="cli")
    # The worker was to do it itself, and its time ran out in the queue.
    Job.objects.update(claimed_at=F("claimed_at") - timedelta(minutes=1))
    Job.objects.update(state="queued")
    later()
    end_overdue_jobs()
    job.refresh_from_db()
    assert (job.state, job.sentence) == ("done", "Applied.")
    assert job.applied_at is not None
    assert outcomes() == [("outcome abandon", True, job.sentence)]


def test_a_late_job_whose_journal_cannot_be_read_does_not_claim_that_nothing_was_sent(path, later):
    job = ask(path)
    claimed = claim_job(job.uuid)
    assert claimed is not None
    execute._post_decision(claimed, journal_file(path))
    Job.objects.update(state="queued")
    path.unlink()
    later()
    end_overdue_jobs()
    job.refresh_from_db()
    assert (job.state, "cannot be read now" in job.sentence) == ("failed", True)
    assert "othing was sent" not in job.sentence


@pytest.mark.parametrize(("kind", "decision"), [("query_status", ""), ("decision", "replay")])
def test_what_waits_for_a_journal_that_is_gone_ends_with_its_time(path, later, kind, decision):
    with held(path):
        job = deliver(ask(path))
        Job.objects.update(kind=kind, decision=decision)
        mailbox.remove_message(mailbox.list_messages(path)[0])
        path.unlink()
        assert follow_job(job).state == "waiting_agent"
        later()
        assert follow_job(job).state == "failed"
    assert "Its time is over, and the journal" in job.sentence
    assert outcomes() == [(f"outcome {decision or kind}", True, job.sentence)]


def test_a_job_given_up_is_audited_and_set_right_when_the_journal_says_otherwise(path):
    job = ask(path, decision="abandon")
    claimed = claim_job(job.uuid)
    assert claimed is not None
    execute._post_decision(claimed, journal_file(path))
    Job.objects.update(attempts=2, claimed_at=clock.wall() - timedelta(minutes=10))
    end_overdue_jobs()
    job.refresh_from_db()
    assert job.state == "failed"
    visit.reconcile_file(path, role="cli")
    assert follow_job(job).state == "done"
    said = outcomes()
    assert [line[:2] for line in said] == [("outcome abandon", True)] * 2
    assert [line[2][:7] for line in said] == ["Applied", "Gave up"]


def test_a_job_that_fails_says_so_in_the_audit(path):
    job = deliver(ask(path, kind="query_status", decision=None))
    assert job.state == "failed"
    assert outcomes() == [("outcome query_status", True, job.sentence)]


def test_a_job_settles_its_own_step_and_no_other(path, later):
    is_back = threading.Event()
    good = answer(200, b"{}", content_type="application/json")
    with serving(lambda connection, request: good(connection, request) if is_back.is_set() else None) as other:
        an_intent_that_is_due_later(path, other.url)
        before = len(other.received)
        is_back.set()
        later()
        assert deliver(ask(path, decision="abandon")).state == "done"
        assert len(other.received) == before, "the other step is due, but not this job's to settle"
        visit.reconcile_file(path, role="cli")
        assert len(other.received) == before + 1
    assert the_step(path, "keyed").status == "committed"


def an_intent_that_is_due_later(path, url):
    """Another step in the same journal, whose outcome nobody knows and which may be sent again under its key."""
    profile = {"key": {"placement": "header", "name": "K"}, "retention": {"for": "24h", "kind": "at_least"}}

    @http_tool(effect="mutating", provider="keyed")
    def send(text: str) -> Request:
        return Request("POST", f"{url}/keyed", json={"text": text})

    with (
        Journal(path, agent="hook", tools=[send], providers={"keyed": profile}, max_wait=0) as journal,
        contextlib.suppress(StepWaiting),
        journal.task("keyed") as task,
    ):
        task.run(send, text="x")
