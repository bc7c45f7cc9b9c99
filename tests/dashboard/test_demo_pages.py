"""What only the demo shows: its story, the forge's ledger, and the kill button."""

from __future__ import annotations

import json
import re

import pytest

from agents.demo.ledger import Ledger
from agents.demo.paths import PULLS, Paths
from agents.models import AuditEvent, JournalFile
from tests.builders import fleet
from tests.dashboard.ladder import signed_in, text

pytestmark = pytest.mark.django_db
REQUESTS = "requests with this key"


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


def test_the_ledger_beside_the_timeline_counts_the_effects_of_a_key_and_keeps_the_tasks_own_line(demo):
    JournalFile.objects.update(agent=PULLS)
    key = fleet.the_step(demo.folder / "triage.db", "report/42?", 2).idempotency_key
    _pull_requests(demo.folder / "demo", [key, "twice", *(f"later-{number}" for number in range(300)), "twice"])
    page = text(signed_in("operator").get(demo.task()))
    lines = re.findall(r"#(\d+) for ", page)
    requests, effects = (re.findall(rf'data-label="{column}">(\d+)<', page) for column in (REQUESTS, "effects"))
    assert list(zip(lines, requests, effects, strict=True)) == [
        ("1", "1", "1"),
        ("303", "2", "2"),
        *((str(number), "1", "1") for number in (302, 301, 300)),
    ]
    assert re.findall(r'<tr class="ours">\s*<td class="lead wide">#(\d+)', page) == ["1"]


def _pull_requests(folder, keys):
    """What the forge's own book says of pull requests that were made under these keys, one after another."""
    paths = Paths(folder)
    folder.mkdir()
    ledger = Ledger(paths.forge_ledger)
    for key in keys:
        body = json.dumps({"title": f"for {key}"}).encode()
        ledger.apply(ledger.receive("POST", "/pulls", key=key, raw=body, body=body))
    ledger.close()
