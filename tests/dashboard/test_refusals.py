"""Whoever is refused a page stands in the audit: who, what, about which step."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from agents.models import AuditEvent
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
