"""Jobs: one decision, one message, one effect, however often it is asked for and delivered."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import F

from agents.access import audit
from agents.access.roles import give_role
from agents.catalog import discovery
from agents.decisions.check import BadDecision, OtherDecision, StepBinding
from agents.fleet.queries import list_pending
from agents.jobs.result import follow_job, follow_waiting_jobs
from agents.models import AuditEvent, Job, JournalFile
from journal import clock
from journal.inbox import mailbox
from journal.reader import Reader
from tests.builders.asked import ask, deliver
from tests.builders.fleet import a_person, held, journal_file, swept, the_step
from tests.builders.held import TASK, a_held_step

pytestmark = pytest.mark.django_db


def step(path):
    return the_step(path, TASK)


def test_an_approved_replay_sends_the_same_bytes_once(path, server):
    job = deliver(ask(path))
    assert (job.state, step(path).status) == ("done", "committed")
    first, second = server.received
    assert first == second
    assert job.attempts == 1 or job.attempts == 0
    assert "attempt 2" in job.sentence


def test_a_job_delivered_again_does_nothing(path, server):
    job = deliver(ask(path))
    ended = job.ended_at
    for _ in range(3):
        job = deliver(job)
    assert len(server.received) == 2
    assert job.ended_at == ended


def test_two_clicks_two_people_and_a_repeated_post_are_one_job(path, server):
    one = ask(path)
    other = ask(path, actor=a_person("bob"), reason="bob looked too")
    with pytest.raises(OtherDecision, match="ada decided “replay”"):
        ask(path, actor=a_person("bob"), decision="abandon")
    assert one.pk == other.pk == ask(path, message_id=one.message_id).pk
    deliver(one)
    assert Job.objects.count() == 1
    assert len(server.received) == 2
    said = ("already asked for by ada", "bob looked too")
    assert [AuditEvent.objects.filter(detail__contains=words).count() for words in said] == [2, 1]


def test_a_form_posted_again_after_its_job_ended_is_the_same_job(path, server):
    line = list_pending().items[0]
    binding = StepBinding(line.key, line.payload_sha256, line.dispatches)
    one = deliver(ask(path, binding=binding, message_id="ab" * 16))
    assert ask(path, binding=binding, message_id="ab" * 16).pk == one.pk
    assert len(server.received) == 2


def test_a_decision_about_other_bytes_is_refused_by_the_writer(path, server):
    line = list_pending().items[0]
    for binding in (
        StepBinding(line.key, "0" * 64, line.dispatches),
        StepBinding("0" * 64, line.payload_sha256, line.dispatches),
        StepBinding(line.key, line.payload_sha256, line.dispatches + 1),
    ):
        job = deliver(ask(path, binding=binding))
        assert job.state == "refused"
    assert len(server.received) == 1
    assert step(path).status == "pending"


def test_a_decision_waits_for_the_agent_that_holds_the_journal(path, server):
    with held(path) as pid:
        job = deliver(ask(path))
        assert (job.state, job.sentence) == ("waiting_agent", f"Waiting for the agent (pid {pid}).")
        assert len(mailbox.list_messages(path)) == 1
        assert follow_job(job).state == "waiting_agent"
    assert len(server.received) == 1
    # The agent has gone without taking it in: after a while the worker does it.
    Job.objects.update(claimed_at=F("claimed_at") - timedelta(minutes=1))
    assert [one.pk for one in follow_waiting_jobs()] == [job.pk]
    assert deliver(job).state == "done"
    assert len(server.received) == 2


def test_a_decision_nobody_took_in_expires_and_says_so(path, server, settings):
    settings.STEPKEEPER_DECISION_TTL = 0
    job = ask(path)
    assert deliver(job).state == "expired"
    assert not mailbox.list_messages(path), "it expired before it was posted"
    settings.STEPKEEPER_DECISION_TTL = 900
    with held(path):
        job = deliver(ask(path))
        Job.objects.filter(pk=job.pk).update(expires_at=clock.wall())
        job = follow_job(job)
    assert job.state == "expired"
    assert "undelivered" in job.sentence
    assert len(server.received) == 1


def test_who_lost_the_role_before_the_work_is_refused_and_audited(path, server):
    ada = a_person()
    job = ask(path, actor=ada)
    give_role(ada, "viewer")
    assert deliver(job).state == "refused"
    assert len(server.received) == 1
    assert not mailbox.list_messages(path)
    line = audit.list_events(refused_only=True).items[0]
    assert (line.actor, line.allowed, line.job_uuid) == ("ada", False, str(job.uuid))


@pytest.mark.parametrize("role", ["viewer", "payload_viewer", None])
def test_who_may_not_decide_is_refused_and_audited(path, role):
    with pytest.raises(PermissionDenied):
        ask(path, actor=a_person("eve", role))
    assert not Job.objects.exists()
    assert not AuditEvent.objects.get().allowed


def test_nobody_signed_in_decides_nothing(path):
    with pytest.raises(PermissionDenied):
        ask(path, actor=AnonymousUser())


@pytest.mark.parametrize(
    ("decision", "more", "field"),
    [
        ("replay", {"reason": "  "}, "reason"),
        (None, {"kind": "query_status", "reason": "  "}, "reason"),
        ("mark_committed", {"output_json": "{", "reference": "r"}, "output"),
        ("mark_committed", {"output_json": "NaN", "reference": "r"}, "output"),
        ("mark_committed", {"output_json": "1"}, "reference"),
        ("replay_as_new", {}, "kind"),
        ("replay", {"message_id": "../../etc"}, "message_id"),
    ],
)
def test_what_was_typed_wrong_names_its_field(path, decision, more, field):
    with pytest.raises(BadDecision) as caught:
        ask(path, decision=decision, **more)
    assert caught.value.field == field
    assert not Job.objects.exists()


def test_marking_committed_gives_the_handler_that_output(path, server):
    job = deliver(ask(path, decision="mark_committed", output_json='{"ok": 1}', reference="hook log line 7"))
    assert job.state == "done"
    found = step(path)
    assert (found.status, found.output_json, found.reference) == ("committed", '{"ok": 1}', "hook log line 7")
    assert len(server.received) == 1


def test_marking_not_applied_sends_nothing_by_itself(path, server):
    job = deliver(ask(path, decision="mark_not_applied"))
    assert job.state == "done"
    assert step(path).status == "pending"
    assert len(server.received) == 1
    swept()
    assert deliver(ask(path)).state == "done"
    assert len(server.received) == 2
    assert server.received[0] == server.received[1]


def test_abandoning_ends_the_step(path, server):
    assert deliver(ask(path, decision="abandon")).state == "done"
    assert step(path).status == "abandoned"
    assert len(server.received) == 1


def test_the_decision_in_the_journal_names_who_decided(path):
    job = deliver(ask(path))
    decision = Reader(path).by_decision(job.message_id)
    assert decision is not None
    assert (decision.actor, decision.reason) == ("ada", "checked at the provider")


def test_a_bad_journal_takes_no_decision(path):
    row = journal_file(path)
    row.kind, row.sentence = "truncated", "It is cut off."
    row.save()
    with pytest.raises(BadDecision, match="cut off"):
        ask(path)


def test_a_journal_that_left_the_globs_gets_no_message(path, settings, tmp_path):
    job = ask(path)
    settings.STEPKEEPER_JOURNALS = (str(tmp_path / "elsewhere" / "*.db"),)
    assert deliver(job).state == "failed"
    assert not mailbox.list_messages(path)


def test_asking_where_nothing_can_be_asked_says_so(path):
    job = deliver(ask(path, kind="query_status", decision=None))
    assert job.state == "failed"
    assert "knows no status query" in job.sentence


def test_the_pending_list_names_the_open_job(path):
    job = ask(path)
    assert list_pending().items[0].job_uuid == str(job.uuid)
    assert discovery.reader_for(journal_file(path)).state.readable


def test_the_audit_says_who_asked_why_and_what_came_of_it(path):
    deliver(ask(path))
    outcome, request = audit.list_events(task_id=TASK).items
    assert (request.actor, request.action, request.detail) == ("ada", "request replay", "checked at the provider")
    assert (outcome.actor, outcome.action, outcome.allowed) == ("ada", "outcome replay", True)
    assert "attempt 2" in outcome.detail


def test_a_decision_about_a_journal_that_was_swapped_for_another_is_refused(path, server, tmp_path):
    job = ask(path)
    other = tmp_path / "elsewhere" / "other.db"
    other.parent.mkdir()
    a_held_step(other, server.url)
    sent = len(server.received)
    path.unlink()
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    other.rename(path)
    job = deliver(job)
    assert (job.state, job.sentence.split(":")[0]) == ("refused", "Refused")
    assert "another journal stands at this path" in job.sentence
    assert (len(server.received), mailbox.list_messages(path)) == (sent, [])


@pytest.mark.parametrize("kind", ["copy", "rewound", "new"])
def test_a_decision_about_a_journal_that_is_not_read_any_more_is_refused(path, server, kind):
    job, sent = ask(path), len(server.received)
    JournalFile.objects.update(kind=kind, sentence="It is not what it was.")
    job = deliver(job)
    assert (job.state, job.sentence.split(":")[0]) == ("refused", "Refused")
    assert job.sentence.endswith("Nothing was sent.")
    assert (len(server.received), mailbox.list_messages(path)) == (sent, [])


def test_a_decision_about_a_journal_that_fell_back_since_it_was_read_is_refused(path, server):
    job, sent = ask(path), len(server.received)
    JournalFile.objects.update(highest_revision=F("highest_revision") + 1)
    assert "holds less now than was read" in deliver(job).sentence
    assert (len(server.received), mailbox.list_messages(path)) == (sent, [])
