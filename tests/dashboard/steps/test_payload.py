"""Who may not see payloads sees none: not the provider's words, not what a hold quotes, not a title in the ledger."""

from __future__ import annotations

import contextlib
import json

import pytest
from django.urls import reverse

from agents.access import audit
from agents.demo.ledger import Ledger
from agents.demo.paths import PULLS, Paths
from agents.models import AuditEvent, JournalFile
from journal import Journal, Request, http_tool
from journal.errors import StepHeld, StepWaiting
from tests.builders import fleet
from tests.builders.asked import ask, deliver
from tests.builders.fleet import rows
from tests.dashboard.conftest import HOSTILE
from tests.dashboard.ladder import signed_in, text
from tests.journal.raw_server import RawServer, answer

pytestmark = pytest.mark.django_db
SECRET = "the customer's own words"
STATUS = {
    "request": "GET /operations/{key}",
    "absence": "never",
    "interpret": [{"status": 200, "is": "exists"}, {"status": 503, "is": "unknown"}],
}


@pytest.fixture
def asked(tmp_path, settings):
    """A query about a lost request, answered with words of the provider's; the address of its job."""

    def serve(connection, request):
        if request.startswith(b"GET"):
            answer(503, SECRET.encode(), content_type="text/plain")(connection, request)

    @http_tool(effect="mutating", provider="forge")
    def open_pull(title: str) -> Request:
        return Request("POST", f"{server.url}/pulls", json={"title": title})

    fleet.watched(tmp_path, settings)
    path = tmp_path / "a.db"
    with contextlib.closing(RawServer(serve)) as server:
        with (
            Journal(path, agent="a", tools=[open_pull], providers={"forge": {"status": STATUS}}, max_wait=0) as journal,
            contextlib.suppress(StepHeld, StepWaiting),
            journal.task("t") as task,
        ):
            task.run(open_pull, title="hello")
        fleet.swept()
        job = deliver(ask(path, kind="query_status", decision=None))
    fleet.reread(fleet.journal_file(path))
    step = reverse("step", args=[fleet.journal_file(path).pk, "t", 0])
    return reverse("job", args=[job.uuid]), step


def test_the_providers_words_are_for_payload_viewers_alone(asked):
    job, step = asked
    for url in (job, step, "/audit/", "/pending/", "/alerts/", "/", "/tasks/"):
        assert SECRET not in text(signed_in("viewer").get(url)).replace("&#x27;", "'"), url
    assert "gave no answer that decides anything. (HTTP 503)" in text(signed_in("viewer").get(job))
    for url in (job, step):
        assert SECRET in text(signed_in("payload_viewer").get(url)).replace("&#x27;", "'"), url
    assert not [line for line in audit.list_events().items if SECRET in line.detail]


def test_what_a_hold_quotes_is_for_payload_viewers_alone(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        connection.execute(
            "UPDATE agent_step_journal SET hold_detail = ?, revision = ? WHERE task_id = ?",
            ("No row for this outcome: quoted.", rows.BOOT * 2 + 7, HOSTILE),
        )
    fleet.reread(small_fleet.triage)
    for url in ("/pending/", small_fleet.step(0, HOSTILE)):
        assert "quoted." not in text(signed_in("viewer").get(url))
        assert "quoted." in text(signed_in("payload_viewer").get(url))


def test_titles_in_the_demos_ledger_are_for_payload_viewers_alone(small_fleet, settings):
    settings.STEPKEEPER_DEMO, settings.STEPKEEPER_DEMO_FOLDER = True, small_fleet.folder
    JournalFile.objects.update(agent=PULLS)
    with contextlib.closing(Ledger(Paths(small_fleet.folder).forge_ledger)) as ledger:
        body = json.dumps({"title": SECRET}).encode()
        ledger.apply(ledger.receive("POST", "/pulls", key="k" * 64, raw=body, body=body))
    seen = {role: text(signed_in(role).get(small_fleet.task())) for role in ("viewer", "payload_viewer")}
    assert "own ledger" in seen["viewer"]
    assert "customer" not in seen["viewer"]
    assert "customer" in seen["payload_viewer"]


def seen():
    events = AuditEvent.objects.filter(action="payload.view").order_by("pk")
    return [(event.actor_name, event.allowed, event.detail, event.task_id, event.step_index) for event in events]


def test_who_saw_a_payload_is_audited_like_a_download_and_a_page_left_open_is_one_line(small_fleet):
    assert signed_in("viewer").get(small_fleet.step(0)).status_code == 200
    assert seen() == [], "a viewer is shown no payload"
    client = signed_in("payload_viewer")
    for _ in range(2):
        client.get(small_fleet.step(0))
    client.get(small_fleet.step(0), headers={"HX-Request": "true", "HX-Target": "step-now"})
    assert seen() == [("payload_viewer", True, "arguments, output", "report/42?", 0)]
    client.get(small_fleet.step(1))
    assert [place for *_, place in seen()] == [0, 1]


def test_the_page_of_a_decision_shows_payloads_and_says_so_in_the_audit(held, db):
    signed_in("operator").get(held("decide", "abandon"))
    assert [(actor, "request" in detail or "body" in detail) for actor, _, detail, *_ in seen()] == [("operator", True)]
