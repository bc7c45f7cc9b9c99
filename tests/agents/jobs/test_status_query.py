"""Query status now: asked by the worker where it can be, left to the agent where only it can ask."""

from __future__ import annotations

import contextlib
import json
import threading

import pytest

from agents.decisions.check import StepBinding
from agents.fleet.queries import list_pending
from agents.jobs import queue
from agents.jobs.queue import run_job
from agents.jobs.states import LEASE, requeue_lost_jobs
from agents.models import Job
from journal import Journal, Request, clock, env, http_tool, tool
from journal.errors import StepHeld, StepWaiting
from journal.inbox import mailbox
from journal.reader import Reader
from tests.builders.fleet import a_person, held, journal_file, rows, swept, the_step, watched, writing
from tests.journal.agent import start
from tests.journal.raw_server import RawServer, answer

pytestmark = pytest.mark.django_db

FORGE = {
    "status": {
        "request": "GET /operations/{key}",
        "absence": "never",
        "interpret": [{"status": 200, "is": "exists"}, {"status": 404, "is": "absent"}],
    }
}
BOUND = ("key", "payload_sha256", "dispatches", "expires_at")


AGENT = """
import json, sys
from journal import Journal, Request, http_tool

@http_tool(effect="mutating", provider="forge")
def open_pull(title: str) -> Request:
    return Request("POST", f"{sys.argv[2]}/pulls", json={"title": title})

with Journal(sys.argv[1], agent="forge", tools=[open_pull], providers={"forge": json.loads(sys.argv[3])}) as journal:
    with journal.task("t") as task:
        task.run(open_pull, title="hello")
"""


class Forge:
    """A provider that loses its first answer, and knows what it did; `says` is its status answer.

    A request is lost when it was `posted` and `answers` is set.
    """

    def __init__(self):
        self.says = 500
        self.asked = []
        self.posted = threading.Event()
        self.answers = threading.Event()
        self.answers.set()
        self.server = RawServer(self._serve)

    def _serve(self, connection, request):
        if request.startswith(b"GET"):
            self.asked.append(request)
            answer(self.says, b'{"number": 7}', content_type="application/json")(connection, request)
        else:
            self.posted.set()
            self.answers.wait(20)


@pytest.fixture
def forge():
    forge = Forge()
    yield forge
    forge.answers.set()
    forge.server.close()


@pytest.fixture
def folder(tmp_path, settings):
    watched(tmp_path, settings)
    return tmp_path


def an_unknown_outcome(path, forge, *, url=None):
    @http_tool(effect="mutating", provider="forge")
    def open_pull(title: str) -> Request:
        return Request("POST", f"{url or forge.server.url}/pulls", json={"title": title})

    with (
        Journal(path, agent="forge", tools=[open_pull], providers={"forge": FORGE}, max_wait=0) as journal,
        contextlib.suppress(StepHeld, StepWaiting),
        journal.task("t") as task,
    ):
        task.run(open_pull, title="hello")
    swept()
    forge.asked.clear()
    return path


def query(path, *, dispatches=None):
    line = list_pending().items[0]
    job = queue.request_job(
        "query_status",
        actor=a_person(),
        journal=journal_file(path),
        task_id="t",
        step_index=0,
        binding=StepBinding(line.key, line.payload_sha256, dispatches or line.dispatches),
        reason="to see whether it is there",
    )
    run_job(str(job.uuid))
    job.refresh_from_db()
    return job


def test_an_effect_that_exists_is_adopted(folder, forge):
    path = an_unknown_outcome(folder / "a.db", forge)
    forge.says = 200
    job = query(path)
    step = the_step(path, "t")
    assert (job.state, step.status) == ("done", "committed")
    assert "exists" in job.sentence
    assert len(forge.asked) == 1
    assert (step.idempotency_key or "").encode() in forge.asked[0]
    evidence = Reader(path).evidence("t", 0)[-1]
    assert (evidence.answer, evidence.source, evidence.in_flight) == ("exists", "worker", False)


def test_while_an_agent_lives_the_answer_is_shown_at_once_and_waits_for_it(folder, forge):
    path = an_unknown_outcome(folder / "a.db", forge)
    forge.says = 404
    with held(path) as pid:
        job = query(path)
        assert job.state == "waiting_agent"
        assert "no such effect" in job.sentence
        assert f"pid {pid}" in job.sentence
        message = mailbox.list_messages(path)[0].body or {}
        assert (message["kind"], message["answer"], message["attempt"]) == ("evidence", "absent", 1)


def test_an_absence_that_was_told_while_a_request_is_in_flight_proves_nothing(folder, forge):
    path = folder / "a.db"
    forge.answers.clear()
    with start(AGENT, path, forge.server.url, json.dumps(FORGE)) as agent:
        try:
            assert forge.posted.wait(20)
            swept()
            forge.says = 404
            job = query(path)
        finally:
            agent.kill()
    assert "An attempt was in flight while it was asked, so this proves nothing." in job.sentence
    message = mailbox.list_messages(path)[0].body or {}
    assert (message["answer"], message["attempt"], message["in_flight"]) == ("absent", 1, True)


def test_a_provider_that_does_not_answer_is_no_evidence_of_absence(folder, forge):
    path = an_unknown_outcome(folder / "a.db", forge)
    job = query(path)
    assert "no answer that decides anything" in job.sentence
    assert the_step(path, "t").status == "pending"


def test_what_the_worker_cannot_resolve_is_left_to_the_agent(folder, forge, monkeypatch):
    monkeypatch.setenv("FORGE_URL", forge.server.url)
    path = an_unknown_outcome(folder / "a.db", forge, url=env("FORGE_URL"))
    monkeypatch.delenv("FORGE_URL")
    forge.says = 200
    with held(path):
        job = query(path)
    assert job.state == "waiting_agent"
    assert not forge.asked
    assert mailbox.list_messages(path)[0].kind == "status"


def test_a_python_tools_status_is_left_to_its_agent(folder):
    def find(call, text):
        raise OSError("nobody there")

    @tool(effect="mutating", status=find)
    def send(call, text: str) -> str:
        raise OSError("lost")

    path = folder / "a.db"
    with (
        Journal(path, agent="git", tools=[send], max_wait=0) as journal,
        contextlib.suppress(StepHeld, StepWaiting),
        journal.task("t") as task,
    ):
        task.run(send, text="x")
    swept()
    job = query(path)
    assert job.state == "waiting_agent"
    assert "not running" in job.sentence
    message = mailbox.list_messages(path)[0].body or {}
    shown = (job.key, job.payload_sha256, 1, clock.text(job.expires_at))
    assert (message["kind"], *(message[name] for name in BOUND)) == ("status", *shown)


def test_a_step_that_was_dispatched_again_meanwhile_is_not_asked_about(folder, forge):
    path = an_unknown_outcome(folder / "a.db", forge)
    job = query(path, dispatches=2)
    assert (job.state, "Nothing was asked." in job.sentence) == ("refused", True)
    assert not forge.asked
    assert not mailbox.list_messages(path)


def test_a_question_whose_worker_was_killed_once_it_had_asked_is_not_said_to_be_unasked(folder, forge, monkeypatch):
    def killed(job):
        raise SystemExit

    path = an_unknown_outcome(folder / "a.db", forge)
    forge.says = 200
    with monkeypatch.context() as patched:
        patched.setattr("agents.jobs.status_query.mark_posted", killed)
        with pytest.raises(SystemExit):
            query(path)
    assert len(mailbox.list_messages(path)) == 1
    with writing(path) as connection:
        rows.an_attempt(connection, attempt=2, verdict="unknown", kind="raised", revision=rows.BOOT * 2)
    Job.objects.update(claimed_at=clock.wall() - 2 * LEASE)
    [job] = requeue_lost_jobs()
    run_job(str(job.uuid))
    job.refresh_from_db()
    assert (job.state, "exists" in job.sentence) == ("done", True)
