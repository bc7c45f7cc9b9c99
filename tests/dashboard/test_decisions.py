"""Deciding about a held step: what is shown is what is bound, and a POST decides at most once."""

from __future__ import annotations

import contextlib
import re
from datetime import timedelta

import pytest
from django.urls import reverse

from agents.models import AuditEvent, Job, JournalFile, PendingIntent
from dashboard import binding
from dashboard.pages import payload
from dashboard.pages.verbs import verb_of
from journal import clock
from tests.builders import fleet
from tests.builders.fleet import rows
from tests.builders.held import TASK, a_held_step, hook
from tests.dashboard.ladder import assert_closed, assert_unchanged_is_204, signed_in, text

pytestmark = pytest.mark.django_db
KINDS = ("replay", "mark_committed", "mark_not_applied", "abandon")


@pytest.fixture
def held(tmp_path, settings):
    """A held step of a webhook that knows neither keys nor status, and its page."""
    path = tmp_path / "hook.db"
    with contextlib.closing(hook()) as server:
        a_held_step(path, server.url)
        fleet.watched(tmp_path, settings)
        fleet.swept()
        pk = fleet.journal_file(path).pk
        yield lambda name="step", *rest: reverse(name, args=[pk, TASK, 0, *rest])


def sealed(page: str) -> str:
    found = re.search(r'name="binding" value="([^"]+)"', page)
    assert found
    return found[1]


def form(page: str, **more: str) -> dict[str, str]:
    return {"binding": sealed(page), "reason": "The channel shows no such message.", **more}


@pytest.mark.parametrize("kind", KINDS)
def test_the_confirmation_shows_the_bytes_the_key_and_what_if_wrong(held, kind):
    page = text(signed_in("operator").get(held("decide", kind)))
    assert "&quot;text&quot;:&quot;hello&quot;" in page
    assert "1 dispatch may have left this machine" in page
    assert "If you are wrong" in page
    assert "expires" in page
    assert page.count("recomputed: equal") == 2
    assert not Job.objects.exists()


def test_the_final_button_names_its_effect(held):
    page = text(signed_in("operator").get(held("decide", "replay")))
    assert re.search(r"Approve replay: sends 16 bytes to 127\.0\.0\.1:\d+", page)
    assert "autofocus" not in page


def test_a_body_longer_than_a_page_reads_has_its_whole_length_and_raises_no_false_alarm(held, monkeypatch):
    monkeypatch.setattr(payload, "REQUEST", 10)
    client = signed_in("operator")
    confirm, step = text(client.get(held("decide", "replay"))), text(client.get(held()))
    assert re.search(r"Approve replay: sends 16 bytes to 127\.0\.0\.1:\d+", confirm)
    assert "download the whole body" in confirm
    assert 'body: <span class="digits">16 bytes</span>' in step
    for page in (confirm, step):
        assert "not recomputed: longer than a page reads" in page
        assert "DIFFERS" not in page
        assert "Something changed this journal from outside" not in page
    assert client.get(held("download", "body")).content == b'{"text":"hello"}'


def test_a_replay_at_a_provider_without_keys_promises_nothing_of_a_key(held):
    page = text(signed_in("operator").get(held("decide", "replay")))
    assert "under the stored key" not in page
    assert "recognise the key" not in page
    assert "The provider takes no key, so nothing tells it that this is the same request again." in page
    assert verb_of("replay", "mutating").does.startswith("Sends the stored bytes again, under the stored key. Where")


def test_a_post_makes_one_job_and_the_same_post_again_makes_none(held):
    client = signed_in("operator")
    body = form(text(client.get(held("decide", "replay"))))
    first = client.post(held("decide", "replay"), body)
    second = client.post(held("decide", "replay"), body)
    job = Job.objects.get()
    assert first.headers["Location"] == second.headers["Location"] == reverse("job", args=[job.uuid])
    assert (job.decision, job.reason, job.dispatches) == ("replay", body["reason"], 1)


def test_two_people_with_two_pages_share_one_job(held):
    one, two = signed_in("operator"), signed_in("admin")
    for client in (one, two):
        assert (
            client.post(held("decide", "replay"), form(text(client.get(held("decide", "replay"))))).status_code == 302
        )
    assert Job.objects.count() == 1


def test_who_decides_otherwise_at_the_same_time_is_told_that_theirs_was_not_taken(held):
    one, two = signed_in("operator"), signed_in("admin")
    first, other = (
        form(text(client.get(held("decide", kind)))) for client, kind in ((one, "replay"), (two, "abandon"))
    )
    assert one.post(held("decide", "replay"), first).status_code == 302
    answer = two.post(held("decide", "abandon"), other)
    assert answer.status_code == 409
    assert "operator decided “replay” at" in text(answer)
    assert "Yours was not taken." in text(answer)
    assert Job.objects.get().decision == "replay"
    event = AuditEvent.objects.get(action="request abandon")
    assert (event.actor_name, event.allowed) == ("admin", False)
    assert "operator decided" in event.detail


def test_two_outputs_for_one_step_are_two_decisions(held):
    one, two = signed_in("operator"), signed_in("admin")
    url = held("decide", "mark_committed")
    forms = [form(text(client.get(url)), output=output, reference="r") for client, output in ((one, "1"), (two, "2"))]
    assert one.post(url, forms[0]).status_code == 302
    assert two.post(url, forms[1]).status_code == 409
    assert Job.objects.get().output_json == "1"


def test_a_decision_without_a_reason_asks_for_one_and_decides_nothing(held):
    client = signed_in("operator")
    response = client.post(held("decide", "abandon"), form(text(client.get(held("decide", "abandon"))), reason=" "))
    assert response.status_code == 422
    assert "Say why" in text(response)
    assert not Job.objects.exists()


@pytest.mark.parametrize("output", ["", "{'a': 1}", "NaN", '{"a": 1, "a": 2}'])
def test_mark_committed_wants_json(held, output):
    client = signed_in("operator")
    body = form(text(client.get(held("decide", "mark_committed"))), output=output, reference="#7")
    response = client.post(held("decide", "mark_committed"), body)
    assert response.status_code == 422
    assert not Job.objects.exists()


def test_an_output_as_long_as_the_form_takes_is_no_bad_request(held):
    output = "%F0%9F%98%80" * 1_000_000  # as a browser writes it
    kind = "application/x-www-form-urlencoded"
    answer = signed_in("operator").post(held("decide", "mark_committed"), f"output={output}", content_type=kind)
    assert (answer.status_code, Job.objects.count()) == (409, 0), "refused for its binding, not for its length"


def test_mark_committed_carries_output_and_reference(held):
    client = signed_in("operator")
    body = form(text(client.get(held("decide", "mark_committed"))), output='{"number": 7}', reference="#7")
    assert client.post(held("decide", "mark_committed"), body).status_code == 302
    job = Job.objects.get()
    assert (job.output_json, job.reference) == ('{"number": 7}', "#7")


@pytest.mark.parametrize("role", ["viewer", "payload_viewer"])
@pytest.mark.parametrize("kind", KINDS)
def test_who_may_not_decide_gets_403_and_the_refusal_is_audited(held, role, kind):
    client = signed_in(role)
    assert client.get(held("decide", kind)).status_code == 403
    assert client.post(held("decide", kind), {"reason": "x"}).status_code == 403
    assert client.post(held("query")).status_code == 403
    assert AuditEvent.objects.filter(allowed=False, actor_name=role).count() == 3
    assert not Job.objects.exists()


def test_anonymous_people_are_sent_to_sign_in(held):
    for url, method in ((held("decide", "replay"), "get"), (held("decide", "replay"), "post"), (held("query"), "post")):
        assert_closed(url, method=method)


def test_other_methods_unknown_kinds_and_steps_are_refused(held):
    client = signed_in("operator")
    assert client.delete(held("decide", "replay")).status_code == 405
    assert client.delete(held("query")).status_code == 405
    assert client.get(held("decide", "query_status")).status_code == 404
    assert client.get(held("decide", "delete_everything")).status_code == 404
    assert client.post(held("query").replace("/0/", "/5/")).status_code == 404


def test_a_forged_and_a_borrowed_binding_decide_nothing(held):
    operator, admin = signed_in("operator"), signed_in("admin")
    page = text(operator.get(held("decide", "replay")))
    forged = {"binding": "made:up", "reason": "because"}
    answers = [
        operator.post(held("decide", "replay"), forged),
        admin.post(held("decide", "replay"), form(page)),  # another person's page
        operator.post(held("decide", "abandon"), form(page)),  # another decision's page
    ]
    assert [answer.status_code for answer in answers] == [409] * 3
    assert "Nothing was decided: the form cannot be used" in text(answers[0])
    assert all("Nothing was decided: the form was made for something else" in text(each) for each in answers[1:])
    assert not Job.objects.exists()
    assert AuditEvent.objects.filter(allowed=False).count() == 3


def test_what_changed_meanwhile_is_said_and_nothing_is_decided(held, tmp_path):
    client = signed_in("operator")
    page = text(client.get(held("decide", "replay")))
    with fleet.writing(tmp_path / "hook.db") as connection:
        rows.an_attempt(connection, TASK, 0, 2, verdict="unknown", kind="lost_answer", boot=2)
    response = client.post(held("decide", "replay"), form(page))
    assert response.status_code == 409
    assert "dispatched 1 times when you were shown it; now it is 2" in text(response)
    assert not Job.objects.exists()


def test_a_page_older_than_a_decision_may_be_decides_nothing(held, monkeypatch, settings):
    client = signed_in("operator")
    page = text(client.get(held("decide", "replay")))
    later = clock.wall() + timedelta(seconds=settings.STEPKEEPER_DECISION_TTL + 1)
    monkeypatch.setattr(clock, "wall", lambda: later)
    response = client.post(held("decide", "replay"), form(page))
    assert response.status_code == 409
    assert "older than a decision may be" in text(response)


def test_a_decision_expires_when_the_page_said_not_a_whole_time_after_it_was_sent(held, monkeypatch, settings):
    client = signed_in("operator")
    opened = clock.wall()
    page = text(client.get(held("decide", "replay")))
    said = binding.unseal(sealed(page)).expires_at
    monkeypatch.setattr(clock, "wall", lambda: said - timedelta(seconds=1))
    assert client.post(held("decide", "replay"), form(page)).status_code == 302
    job = Job.objects.get()
    assert job.expires_at == said < opened + timedelta(seconds=settings.STEPKEEPER_DECISION_TTL + 60)
    assert f'datetime="{clock.text(said)}"' in text(client.get(reverse("job", args=[job.uuid])))


def test_while_a_job_is_open_the_step_leads_to_it_and_offers_nothing_else(held):
    client = signed_in("operator")
    client.post(held("decide", "replay"), form(text(client.get(held("decide", "replay")))))
    page = text(client.get(held()))
    assert reverse("job", args=[Job.objects.get().uuid]) in page
    assert "Approve replay" not in page


def test_a_step_that_is_settled_offers_and_takes_no_decision(small_fleet):
    client = signed_in("operator")
    assert client.get(small_fleet.step(2) + "decide/replay/").status_code == 409
    asked = client.get(small_fleet.step(2) + "query/")
    assert (asked.status_code, "The step is not pending: it is committed." in text(asked)) == (409, True)


def test_a_journal_that_is_not_read_now_takes_no_decision_and_its_pages_say_why(held):
    client = signed_in("operator")
    page = text(client.get(held("decide", "replay")))
    JournalFile.objects.update(kind="copy", sentence="It is a copy of another.")
    asked = client.get(held("decide", "replay"))
    assert (asked.status_code, "It is a copy of another." in text(asked)) == (409, True)
    assert "its journal is not read now" in text(client.post(held("decide", "replay"), form(page)))
    asked = client.get(held("query"))
    assert (asked.status_code, "It is a copy of another." in text(asked)) == (409, True)
    assert "Approve replay" not in text(client.get(held()))
    assert not Job.objects.exists()


def test_that_an_intent_was_looked_at_again_is_no_change_of_its_page(held):
    page = text(signed_in().get(held()))
    PendingIntent.objects.update(decided_at=clock.wall())
    assert_unchanged_is_204(held(), part="step-now", page=page)


def test_a_binding_survives_any_task_id():
    made = binding.make(
        journal_id=1,
        task_id="a\udcff/\u202e",
        step_index=0,
        kind="replay",
        key="k",
        payload_sha256="p",
        dispatches=1,
        user_id=1,
    )
    assert binding.unseal(binding.seal(made)) == made
