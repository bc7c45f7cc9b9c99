"""Whoever is refused a page stands in the audit: who, what, about which step."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from agents.models import Alert, AuditEvent, JournalFile
from journal import clock
from tests.dashboard.ladder import signed_in

pytestmark = pytest.mark.django_db


def test_a_viewer_who_asks_for_bytes_is_audited_with_journal_task_and_step(small_fleet):
    url = small_fleet.step(2) + "bytes/arguments/"
    assert signed_in("viewer").get(url).status_code == 403
    event = AuditEvent.objects.get()
    assert (event.actor_name, event.action, event.allowed) == ("viewer", "open", False)
    assert (event.journal, event.task_id, event.step_index) == (small_fleet.triage, "report/42?", 2)
    assert event.detail == f"{url} needs payload_viewer; this person has viewer."


@pytest.mark.parametrize("name", ["overview", "tasks", "pending", "spend", "disk", "alerts", "audit", "journals"])
def test_whoever_has_no_role_is_audited_on_every_page(name):
    assert signed_in(None).get(reverse(name)).status_code == 403
    event = AuditEvent.objects.get()
    assert (event.actor_name, event.allowed) == ("nobody", False)
    assert reverse(name) in event.detail
    assert "has no role" in event.detail


def test_a_page_that_polls_is_refused_in_one_line_a_minute(monkeypatch):
    client = signed_in(None)
    for _ in range(3):
        assert client.get("/tasks/").status_code == 403
    assert AuditEvent.objects.count() == 1
    assert client.get("/pending/").status_code == 403
    assert AuditEvent.objects.count() == 2, "another page is another refusal"
    later = clock.wall() + timedelta(seconds=61)
    monkeypatch.setattr(clock, "wall", lambda: later)
    client.get("/tasks/")
    assert AuditEvent.objects.count() == 3


@pytest.mark.parametrize("index", [2**31, 2**63 - 1])
def test_an_address_beyond_all_numbers_is_refused_too(small_fleet, index):
    url = small_fleet.step(index) + "bytes/arguments/"
    assert signed_in("viewer").get(url).status_code == 403
    assert url in AuditEvent.objects.get().detail


def test_who_is_not_signed_in_is_sent_to_sign_in_and_stands_in_no_audit():
    assert Client().get("/tasks/").status_code == 302
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize(("role", "url"), [(None, "/tasks/{}/_w/"), ("viewer", "/steps/{}/_w/0/bytes/body/")])
def test_an_address_of_bytes_that_are_no_text_is_refused_in_the_audit_too(small_fleet, role, url):
    assert signed_in(role).get(url.format(small_fleet.triage.pk)).status_code == 403
    assert AuditEvent.objects.get().task_id == "\\udcff"


@pytest.mark.parametrize("name", ["decide", "query"])
def test_who_has_no_role_learns_from_the_decision_pages_neither_of_steps_nor_of_files(small_fleet, name):
    client, rest = signed_in(None), ["replay"] if name == "decide" else []
    known, unknown = (reverse(name, args=[small_fleet.triage.pk, task, 0, *rest]) for task in ("report/42?", "none"))
    assert [client.get(known).status_code, client.get(unknown).status_code] == [403, 403]
    JournalFile.objects.update(path=str(small_fleet.folder / "elsewhere.db"))
    refused = client.get(known)
    assert refused.status_code == 403
    assert "elsewhere.db" not in refused.content.decode()


def test_who_has_no_role_is_not_told_how_much_waits(small_fleet):
    now = clock.wall()
    Alert.objects.create(kind="disk", subject="x", level="critical", sentence="Full.", opened_at=now, changed_at=now)
    assert 'data-count="1"' in signed_in("viewer").get("/tasks/").content.decode()
    refused = signed_in(None).get("/tasks/").content.decode()
    assert 'data-count="1"' not in refused
    assert "<title>(" not in refused


@pytest.mark.parametrize("address", ["/pending/", "/alerts/", "/audit/", "/tasks/"])
@pytest.mark.parametrize("place", ['["9999-12-31T23:59:59-01:00",1,0]', "[" * 3000])
def test_a_cursor_beyond_all_times_or_all_depths_is_a_404(db, address, place):
    after = base64.urlsafe_b64encode(place.encode()).decode()
    assert signed_in().get(address, {"after": after[:200] if address == "/tasks/" else after}).status_code == 404


def test_a_time_beyond_the_year_9999_raises_no_pill(small_fleet):
    assert signed_in().get("/tasks/", {"since": "9999-12-31T23:59:59-01:00"}).status_code == 200
