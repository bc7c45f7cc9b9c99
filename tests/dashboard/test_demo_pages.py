"""What only the demo shows: its story, the forge's ledger, and the kill button."""

from __future__ import annotations

import pytest

from agents.models import AuditEvent
from tests.dashboard.ladder import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def demo(small_fleet, settings):
    settings.STEPKEEPER_DEMO = True
    settings.STEPKEEPER_DEMO_FOLDER = small_fleet.folder / "demo"
    return small_fleet


def test_the_story_stands_on_the_first_page(demo):
    page = text(signed_in().get("/"))
    assert page.count("Not killed yet") == 4


def test_only_operators_kill_and_a_refusal_is_audited(demo):
    assert signed_in("viewer").post("/demo/kill/messages/").status_code == 403
    assert AuditEvent.objects.get(allowed=False).detail == "messages"


def test_an_agent_of_nobodys_cannot_be_killed(demo):
    assert signed_in("operator").post("/demo/kill/triage/").status_code == 404
    assert signed_in("operator").post("/demo/kill/4242/").status_code == 404


def test_killing_what_does_not_run_says_so(demo):
    response = signed_in("operator").post("/demo/kill/messages/", follow=True)
    assert "messages is not running now" in text(response)
