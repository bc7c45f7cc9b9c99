"""The sentences about a pending step are true of what was sent, of what raised and of who is alive, on every page."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from django.urls import reverse

from journal import Journal, tool
from journal.errors import StepHeld
from tests.builders import fleet
from tests.builders.asked import ask, deliver
from tests.builders.fleet import rows
from tests.dashboard.ladder import signed_in, text

pytestmark = pytest.mark.django_db
_KINDS = {"not_sent": "not_connected", "unknown": "lost_answer"}
PENDING: dict[str, Any] = {
    "status": "pending",
    "output_json": None,
    "output_bytes": None,
    "committed_boot": None,
    "duration": None,
}


def _pages(path, task_id="t") -> list[str]:
    """The step's own page, its decision page and the queue."""
    pk = fleet.journal_file(path).pk
    client = signed_in("operator")
    places = [reverse("step", args=[pk, task_id, 0]), reverse("decide", args=[pk, task_id, 0, "abandon"]), "/pending/"]
    return [text(client.get(place)) for place in places]


@pytest.fixture
def a_step(tmp_path, settings):
    """Write a pending step with these cells and attempts, and have the index read it."""
    settings.STEPKEEPER_JOURNALS = ()
    path = tmp_path / "triage.db"

    def write(*verdicts: str | None, **cells: Any):
        with fleet.writing(path) as connection:
            rows.a_boot(connection, 1, ended_at=rows.WHEN, ended="SIGKILL")
            given: dict[str, Any] = {"input_json": '{"number": 42}', "handler": "book"}
            rows.a_task(connection, "t", status="waiting", wait_kind="held", **given)
            rows.a_step(connection, "t", **PENDING | cells)
            for number, verdict in enumerate(verdicts, 1):
                ended = rows.WHEN if verdict else None
                rows.an_attempt(
                    connection, "t", 0, number, verdict=verdict, kind=_KINDS.get(verdict or ""), ended_at=ended
                )
        fleet.watched(tmp_path, settings)
        fleet.swept()
        return path

    return write


@pytest.mark.parametrize("reason", ["missing_reference", "tls"])
def test_nothing_was_sent_is_said_only_where_nothing_may_have_left(a_step, reason):
    for page in _pages(a_step("unknown", "not_sent", hold_reason=reason)):
        assert "At least one attempt may have arrived." in page
        assert "nothing was sent" not in page.lower()


@pytest.mark.parametrize("verdicts", [(), ("not_sent",)])
def test_where_nothing_left_every_page_says_so(a_step, verdicts):
    for page in _pages(a_step(*verdicts, hold_reason="missing_reference")):
        assert "Nothing was sent" in page
        assert "may have arrived" not in page


def test_a_time_that_is_past_is_not_said_to_come_and_a_dead_agent_not_to_act(a_step):
    path = a_step("not_sent", next_attempt_at="2026-11-01T10:00:00.000000Z")
    step, _, queue = _pages(path)
    for page in (step, queue):
        assert "It was due" in page
        assert "waits for its agent, which is not running" in page
        assert "due later" not in page
    assert "Waiting for their agents" in queue
    assert "Settled without you" not in queue


def test_a_decision_page_names_agent_task_handler_and_input(a_step):
    page = _pages(a_step("unknown", hold_reason="unknown_outcome"))[1]
    for name in ("<bdi>triage</bdi>", "<bdi>t</bdi>, step 0", "<bdi>book</bdi>", "&quot;number&quot;: 42"):
        assert name in page


@pytest.fixture
def raised(tmp_path, settings):
    """A real tool that raised after it may have acted, and its journal, whose agent is gone."""

    @tool(effect="mutating")
    def post(n: int) -> int:
        raise TimeoutError("no answer")

    path = tmp_path / "raised.db"
    with (
        Journal(path, agent="raised", tools=[post]) as journal,
        contextlib.suppress(StepHeld),
        journal.task("t") as task,
    ):
        task.run(post, n=1)
    fleet.watched(tmp_path, settings)
    fleet.swept()
    return path


def test_a_raise_that_is_on_record_is_named_and_not_said_to_be_missing(raised):
    step, decision, queue = _pages(raised)
    for page in (step, decision):
        assert "The tool raised TimeoutError, and it may have acted before." in page
    assert "The tool raised an exception, and it may have acted before." in queue
    for page in (step, decision, queue):
        assert "never reached the disk" not in page
        assert "no outcome is on record" not in page


def test_approving_a_dead_agents_own_tool_says_first_that_nobody_runs_it_yet(raised):
    pk = fleet.journal_file(raised).pk
    said = "Nobody runs it before the agent is started"
    client = signed_in("operator")
    assert said in text(client.get(reverse("decide", args=[pk, "t", 0, "replay"])))
    assert said not in text(client.get(reverse("decide", args=[pk, "t", 0, "abandon"])))
    with fleet.held(raised):
        assert said not in text(client.get(reverse("decide", args=[pk, "t", 0, "replay"])))


def test_a_worker_does_not_speak_for_the_agent_whose_tools_it_has_not(raised):
    job = deliver(ask(raised))
    assert "not among this agent's tools" not in job.result
    assert "is code of its agent" in job.result
