"""Deciding about a held step: what is shown is what is bound, and a POST decides at most once."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from agents.models import AuditEvent, Job, PendingIntent
from dashboard.choices import choose_verb
from dashboard.decisions.binding import make_binding, seal_binding, unseal_binding
from dashboard.steps import payload
from journal import clock
from journal.reader import payloads
from tests.dashboard.conftest import KINDS, form
from tests.dashboard.ladder import assert_unchanged_is_204, signed_in, text

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("kind", KINDS)
def test_the_confirmation_shows_the_bytes_the_key_and_what_if_wrong(held, kind):
    page = text(signed_in("operator").get(held("decide", kind)))
    assert "&quot;text&quot;:&quot;hello&quot;" in page
    assert "1 dispatch may have left this machine" in page
    assert "If you are wrong" in page
    assert "expires" in page
    assert page.count("checksum matches") == 2
    assert not Job.objects.exists()


def test_the_final_button_names_its_effect(held):
    page = text(signed_in("operator").get(held("decide", "replay")))
    assert re.search(r"Approve replay: sends 16 bytes to 127\.0\.0\.1:\d+", page)
    assert "autofocus" not in page


def test_a_body_that_no_download_gives_is_not_offered_as_one(held, monkeypatch):
    monkeypatch.setattr(payload, "READ", 10)
    monkeypatch.setattr(payloads, "MOST_HANDED_OUT", 10)
    page = text(signed_in("operator").get(held("decide", "replay")))
    assert "too long to hand out here, so copy the journal" in page
    assert held("download", "body") not in page


def test_a_body_longer_than_a_page_reads_has_its_whole_length_and_raises_no_false_alarm(held, monkeypatch):
    monkeypatch.setattr(payload, "REQUEST", 10)
    client = signed_in("operator")
    confirm, step = text(client.get(held("decide", "replay"))), text(client.get(held()))
    assert re.search(r"Approve replay: sends 16 bytes to 127\.0\.0\.1:\d+", confirm)
    assert "download the whole body" in confirm
    assert 'body: <span class="digits">16 bytes</span>' in step
    for page in (confirm, step):
        assert "checksum not computed: longer than a page reads" in page
        assert "DIFFERS" not in page
        assert "Something changed this journal from outside" not in page
    assert client.get(held("download", "body")).content == b'{"text":"hello"}'


def test_a_replay_at_a_provider_without_keys_promises_nothing_of_a_key(held):
    page = text(signed_in("operator").get(held("decide", "replay")))
    assert "under the stored key" not in page
    assert "recognise the key" not in page
    assert "The provider takes no key, so nothing tells it that this is the same request again." in page
    assert choose_verb("replay", "mutating").does.startswith(
        "Sends the stored bytes again, under the stored key. Where"
    )


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
    assert "operator decided “replay” before you" in text(answer)
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


def test_while_a_job_is_open_the_step_leads_to_it_and_offers_nothing_else(held):
    client = signed_in("operator")
    client.post(held("decide", "replay"), form(text(client.get(held("decide", "replay")))))
    page = text(client.get(held()))
    assert reverse("job", args=[Job.objects.get().uuid]) in page
    assert "Approve replay" not in page


def test_that_an_intent_was_looked_at_again_is_no_change_of_its_page(held):
    page = text(signed_in().get(held()))
    PendingIntent.objects.update(decided_at=clock.wall())
    assert_unchanged_is_204(held(), part="step-now", page=page)


def test_a_binding_survives_any_task_id():
    made = make_binding(
        journal_id=1,
        task_id="a\udcff/\u202e",
        step_index=0,
        kind="replay",
        key="k",
        payload_sha256="p",
        dispatches=1,
        user_id=1,
    )
    assert unseal_binding(seal_binding(made)) == made
