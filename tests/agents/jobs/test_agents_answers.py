"""Questions that only an agent can ask: its answer, its silence, and the time in which either ends the job."""

from __future__ import annotations

import pytest

from agents.jobs.result import follow_job
from journal import clock
from journal.inbox import mailbox
from journal.providers.parse import python_profile
from tests.builders.asked import ask, deliver
from tests.builders.fleet import held, rows, swept, watched, writing

pytestmark = pytest.mark.django_db


@pytest.fixture
def python_tool(tmp_path, settings):
    """A journal with an unknown outcome of a tool that only its agent can ask."""
    watched(tmp_path, settings)
    path = tmp_path / "a.db"
    with writing(path) as connection:
        rows.a_boot(connection)
        rows.a_task(connection)
        rows.a_step(
            connection,
            status="pending",
            output_json=None,
            profile_json=python_profile(None, True, None).canonical,
        )
        rows.an_attempt(connection, verdict="unknown", kind="raised")
    swept()
    return path


@pytest.fixture
def later(tmp_path, monkeypatch):
    """Move every clock by so many seconds."""
    file = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(file))
    return lambda seconds: file.write_text(str(seconds))


def answered(path):
    with writing(path) as connection:
        rows.insert(
            connection,
            "agent_evidence",
            task_id="t",
            step_index=0,
            attempt=1,
            asked_at=clock.now_text(),
            asked_boottime=1.0,
            os_boot_id="os",
            answer="exists",
            source="tool",
            revision=rows.BOOT + 90,
        )


@pytest.mark.parametrize("seconds", [0, 905])
def test_the_agents_answer_ends_the_question_a_little_after_its_time_too(python_tool, later, seconds):
    with held(python_tool):
        job = deliver(ask(python_tool, kind="query_status", decision=None))
        mailbox.remove_message(mailbox.list_messages(python_tool)[0])
        later(seconds)
        assert follow_job(job).sentence == "The agent took the question in; it has not answered yet."
        answered(python_tool)
        job = follow_job(job)
    assert (job.state, job.sentence) == ("done", "The provider says the effect exists.")


def test_a_question_that_was_taken_in_and_not_answered_ends_a_minute_after_its_time(python_tool, later):
    with held(python_tool):
        job = deliver(ask(python_tool, kind="query_status", decision=None))
        mailbox.remove_message(mailbox.list_messages(python_tool)[0])
        later(970)
        job = follow_job(job)
    assert (job.state, job.sentence) == ("done", "The agent took the question in and gave no answer.")


def test_a_question_that_expired_undelivered_stays_expired_whatever_is_answered_later(python_tool, later):
    job = deliver(ask(python_tool, kind="query_status", decision=None))
    later(901)
    assert follow_job(job).state == "expired"
    later(3600)
    mailbox.remove_message(mailbox.list_messages(python_tool)[0])
    answered(python_tool)
    job = follow_job(job)
    assert (job.state, job.sentence.startswith("Expired undelivered")) == ("expired", True)


@pytest.mark.parametrize(
    ("attempt", "why"),
    [
        (
            {"attempt": 2, "verdict": "unknown", "kind": "raised"},
            "Refused: The step has changed since it was asked about",
        ),
        ({"verdict": None, "kind": None, "ended_at": None}, "Refused: An attempt of the step is in flight"),
    ],
)
def test_a_question_that_its_agent_found_nothing_to_ask_about_ends_at_once_and_can_be_asked_again(
    python_tool, attempt, why
):
    with held(python_tool):
        job = deliver(ask(python_tool, kind="query_status", decision=None))
        mailbox.remove_message(mailbox.list_messages(python_tool)[0])
        with writing(python_tool) as connection:
            connection.execute("DELETE FROM agent_step_attempt WHERE attempt = ?", (attempt.get("attempt", 1),))
            rows.an_attempt(connection, revision=rows.BOOT + 80, **attempt)
        job = follow_job(job)
        assert (job.state, job.sentence.startswith(why)) == ("refused", True)
        assert job.sentence.endswith("No answer is on record; ask again if it is still wanted.")
        assert ask(python_tool, kind="query_status", decision=None).uuid != job.uuid


def test_an_answer_that_was_given_before_its_step_was_dispatched_again_is_the_questions(python_tool):
    with held(python_tool):
        job = deliver(ask(python_tool, kind="query_status", decision=None))
        mailbox.remove_message(mailbox.list_messages(python_tool)[0])
        answered(python_tool)
        with writing(python_tool) as connection:
            rows.an_attempt(connection, attempt=2, verdict="unknown", kind="raised", revision=rows.BOOT + 91)
        job = follow_job(job)
    assert (job.state, job.sentence) == ("done", "The provider says the effect exists.")
