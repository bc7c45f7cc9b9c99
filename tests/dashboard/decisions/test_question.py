"""Query status now: what is shown is what is asked, and it is asked once, with a reason."""

from __future__ import annotations

import contextlib
import html
import re
from datetime import timedelta

import pytest
from django.urls import reverse

from agents.models import AuditEvent, Job
from dashboard.ui.forms import ReasonForm
from journal import Journal, Request, clock, env, http_tool, tool
from journal.errors import StepHeld, StepWaiting
from tests.builders import fleet
from tests.builders.asked import ask, deliver
from tests.dashboard.ladder import assert_closed, signed_in, text
from tests.journal.raw_server import answer, serving

pytestmark = pytest.mark.django_db
WHY = "Nobody saw the pull request."
TOKEN = "t0k3n-of-the-forge"
STATUS = {
    "request": "GET /operations/{key}?full=1",
    "headers": {"Authorization": {"env": "FORGE_TOKEN", "prefix": "Bearer "}, "Accept": "application/json"},
    "absence": "eventual",
    "interpret": [{"status": 200, "is": "exists"}, {"status": 404, "is": "absent"}],
    "visible": "GET /repos/x",
}


@pytest.fixture
def forge():
    """A provider that loses each request that changes something, and knows of none."""

    def serve(connection, request):
        if request.startswith(b"GET"):
            status = 404 if b"/operations/" in request else 200
            answer(status, b"{}", content_type="application/json")(connection, request)

    with serving(serve) as server:
        yield server


@pytest.fixture
def asked_of(tmp_path, settings, monkeypatch):
    """The addresses of a step whose request to this address got no answer."""
    monkeypatch.setenv("FORGE_TOKEN", TOKEN)
    fleet.watched(tmp_path, settings)

    def make(url, **other):
        @http_tool(effect="mutating", provider="forge")
        def open_pull(title: str) -> Request:
            return Request("POST", f"{url}/pulls", json={"title": title})

        unanswered(tmp_path / "a.db", open_pull, providers={"forge": {"status": {**STATUS, **other}}}, title="hello")
        return addresses(tmp_path / "a.db")

    return make


def unanswered(path, called, *, providers=None, **arguments):
    with (
        Journal(path, agent="a", tools=[called], providers=providers, max_wait=0) as journal,
        contextlib.suppress(StepHeld, StepWaiting),
        journal.task("t") as task,
    ):
        task.run(called, **arguments)
    fleet.swept()


def addresses(path):
    return lambda name="query", *rest: reverse(name, args=[fleet.journal_file(path).pk, "t", 0, *rest])


def form(page, reason=WHY):
    found = re.search(r'name="binding" value="([^"]+)"', page)
    assert found
    return {"binding": found[1], "reason": reason}


def test_what_the_page_shows_is_what_the_provider_is_asked(forge, asked_of, tmp_path):
    url = asked_of(forge.url)
    client = signed_in("operator")
    page = text(client.get(url()))
    key = fleet.the_step(tmp_path / "a.db", "t").idempotency_key
    assert f"<strong>GET</strong> {forge.url}/operations/{key}?full=1</code>" in page
    assert f"<code>GET {forge.url}/repos/x</code>" in page
    [headers] = re.findall(r'<dl class="headers">(.*?)</dl>', page, re.S)
    shown = dict(re.findall(r"<dt>([^<]+)</dt>\s*<dd>([^<]+)</dd>", headers))
    assert shown["Authorization"] == "Bearer ${FORGE_TOKEN}"
    assert TOKEN not in page
    assert re.search(r'<a href="/pending/"[^>]* aria-current="page"', page)
    assert f"Query status now: asks 127.0.0.1:{forge.port}</button>" in page
    before = len(forge.received)
    job = deliver(Job.objects.get(uuid=client.post(url(), form(page)).headers["Location"].split("/")[-2]))
    after = html.unescape(text(client.get(reverse("job", args=[job.uuid]))))
    headline, evidence = job.answer, job.result.splitlines()[0]
    assert ("no such effect" in headline, job.sentence) == (True, headline)
    assert [after.count(line) for line in (headline, evidence)] == [1, 1]
    head, canary = (request.decode().split("\r\n") for request in forge.received[before : before + 2])
    assert head[0] == f"GET /operations/{key}?full=1 HTTP/1.1"
    assert canary[0] == "GET /repos/x HTTP/1.1"
    sent = dict(line.split(": ", 1) for line in head[1:] if line)
    assert sent.pop("Host") == f"127.0.0.1:{forge.port}"
    assert sent == {name: value.replace("${FORGE_TOKEN}", TOKEN) for name, value in shown.items()}


def test_an_address_in_a_variable_is_shown_by_its_name_and_what_is_taken_of_it(forge, asked_of, monkeypatch):
    monkeypatch.setenv("FORGE_URL", forge.url)
    page = text(signed_in("operator").get(asked_of(env("FORGE_URL"))()))
    assert "<strong>GET</strong> ${FORGE_URL}/operations/" in page
    assert "Of ${FORGE_URL} scheme, host and port alone." in page
    assert forge.url not in page


def test_a_python_tools_own_status_function_is_named_with_key_and_arguments(tmp_path, settings):
    def find(call, text):
        raise OSError("nobody there")

    @tool(effect="mutating", status=find)
    def commit_it(call, text: str) -> str:
        raise OSError("lost")

    fleet.watched(tmp_path, settings)
    unanswered(tmp_path / "a.db", commit_it, text="hello")
    client = signed_in("operator")
    page = text(client.get(addresses(tmp_path / "a.db")()))
    assert "commit_it" in page
    assert f"<code>{fleet.the_step(tmp_path / 'a.db', 't').idempotency_key}</code>" in page
    assert "{&quot;text&quot;: &quot;hello&quot;}" in page
    assert "Query status now: asks its agent</button>" in page
    assert client.post(addresses(tmp_path / "a.db")(), form(page)).status_code == 302


def test_the_reason_stands_in_the_job_in_the_audit_and_on_the_jobs_page(forge, asked_of):
    url = asked_of(forge.url)
    client = signed_in("operator")
    answered = client.post(url(), form(text(client.get(url()))))
    job = Job.objects.get()
    assert answered.headers["Location"] == reverse("job", args=[job.uuid])
    assert (job.kind, job.decision, job.reason, job.dispatches) == ("query_status", "", WHY, 1)
    event = AuditEvent.objects.get(action="request query_status")
    assert (event.actor_name, event.allowed, event.detail) == ("operator", True, WHY)
    assert WHY in text(client.get(reverse("job", args=[job.uuid])))


def test_a_question_without_a_reason_is_refused_in_the_words_of_a_decision_and_asks_nothing(forge, asked_of):
    url = asked_of(forge.url)
    client = signed_in("operator")
    page = text(client.get(url()))
    assert re.search(r'<textarea name="reason"[^>]* required', page)
    before = len(forge.received)
    answered = client.post(url(), form(page, reason=" \n"))
    assert answered.status_code == 422
    assert str(ReasonForm.base_fields["reason"].error_messages["required"]) in text(answered)
    assert f"{forge.url}/operations/" in text(answered)
    assert (Job.objects.count(), len(forge.received)) == (0, before)


def test_the_same_form_twice_is_one_question_and_no_decisions_form_is_one(forge, asked_of):
    url = asked_of(forge.url)
    client = signed_in("operator")
    page, decision = text(client.get(url())), text(client.get(url("decide", "abandon")))
    refused = client.post(url(), form(decision))
    assert (refused.status_code, "Nothing was asked" in text(refused)) == (409, True)
    assert "another step, question or person" in text(refused)
    assert client.post(url("decide", "abandon"), form(page)).status_code == 409
    first, again = (client.post(url(), form(page)).headers["Location"] for _ in range(2))
    assert first == again
    assert Job.objects.count() == 1


def test_a_page_older_than_a_question_may_be_asks_nothing(forge, asked_of, monkeypatch):
    url = asked_of(forge.url)
    client = signed_in("operator")
    page = text(client.get(url()))
    later = clock.wall() + timedelta(seconds=901)
    monkeypatch.setattr(clock, "wall", lambda: later)
    refused = text(client.post(url(), form(page)))
    assert "Nothing was asked: the page has expired" in refused
    assert "older than a question may be" in refused
    assert not Job.objects.exists()


def test_an_open_question_is_seen_by_everybody_also_beside_a_newer_decision_that_ended(forge, asked_of, tmp_path):
    url = asked_of(forge.url)
    asked = ask(tmp_path / "a.db", kind="query_status", decision=None)
    assert deliver(ask(tmp_path / "a.db", decision="mark_not_applied")).state == "done"
    fleet.swept()
    for role in ("viewer", "operator"):
        client, job = signed_in(role), reverse("job", args=[asked.uuid])
        queue, page = text(client.get("/pending/")), text(client.get(url("step")))
        assert f'Its status is being asked for: <a href="{job}"' in queue
        assert job in page
        assert "Query status now" not in queue + page


def test_the_variable_of_the_requests_address_is_named_also_where_the_question_goes_elsewhere(
    forge, asked_of, monkeypatch
):
    monkeypatch.setenv("FORGE_URL", forge.url)
    url = asked_of(env("FORGE_URL"), request=f"GET {forge.url}/operations/{{key}}")
    page = text(signed_in("operator").get(url()))
    assert "<code>GET ${FORGE_URL}/repos/x</code>" in page
    assert "FORGE_URL, FORGE_TOKEN: put in from the environment when it is asked." in page


def test_step_and_queue_lead_to_the_question_and_ask_nothing_themselves(forge, asked_of):
    url = asked_of(forge.url)
    client = signed_in("operator")
    for page in (text(client.get(url("step"))), text(client.get("/pending/"))):
        assert f'href="{url()}">Query status now…</a>' in page
        assert f'action="{url()}"' not in page


def test_who_may_not_ask_is_not_shown_the_question(forge, asked_of):
    url = asked_of(forge.url)
    assert_closed(url(), method="get")
    for role in ("viewer", "payload_viewer"):
        assert signed_in(role).get(url()).status_code == 403
        assert signed_in(role).post(url(), {"reason": WHY}).status_code == 403
    assert signed_in("operator").delete(url()).status_code == 405
    assert signed_in("operator").get(url().replace("/0/", "/5/")).status_code == 404
    assert AuditEvent.objects.filter(action="request query_status", allowed=False).count() >= 4
    assert not Job.objects.exists()
