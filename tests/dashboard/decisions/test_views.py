"""Nothing is decided by who may not, by a forged or borrowed form, about what has changed, or once it has expired."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from agents.models import AuditEvent, Job, JournalFile
from dashboard.decisions.binding import unseal_binding
from journal import clock
from tests.builders import fleet
from tests.builders.fleet import rows
from tests.builders.held import TASK
from tests.dashboard.conftest import KINDS, form, sealed
from tests.dashboard.ladder import assert_closed, signed_in, text

pytestmark = pytest.mark.django_db


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
    said = unseal_binding(sealed(page)).expires_at
    monkeypatch.setattr(clock, "wall", lambda: said - timedelta(seconds=1))
    assert client.post(held("decide", "replay"), form(page)).status_code == 302
    job = Job.objects.get()
    assert job.expires_at == said < opened + timedelta(seconds=settings.STEPKEEPER_DECISION_TTL + 60)
    assert f'datetime="{clock.text(said)}"' in text(client.get(reverse("job", args=[job.uuid])))


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
