"""An approval that expired while its agent was stopped: the step waits for a person again, and every page says so."""

from __future__ import annotations

import contextlib

import pytest
from django.urls import reverse

from agents.fleet.queries import list_tasks, load_overview
from agents.jobs.result import follow_waiting_jobs
from journal import Journal, tool
from journal.errors import StepHeld
from tests.builders import fleet as builders
from tests.builders.asked import ask, deliver
from tests.dashboard.ladder import signed_in, text

pytestmark = pytest.mark.django_db
EXPIRED = "The approval by ada expired before it was used."


@pytest.fixture
def branch():
    """The branch that the step belongs to; its task's own where there is none."""
    return ""


@pytest.fixture
def approved(tmp_path, settings, monkeypatch, branch):
    """A Python tool's step, held and approved; its agent does not run, so nothing is sent. And what lets time pass."""

    @tool(effect="mutating")
    def send(call, text: str) -> str:
        raise OSError("the line went dead")

    builders.watched(tmp_path, settings)
    path = tmp_path / "a.db"
    with (
        Journal(path, agent="mail", tools=[send]) as journal,
        contextlib.suppress(StepHeld),
        journal.task("t") as task,
    ):
        if branch:
            with task.branch(branch) as child:
                child.run(send, text="hello")
        task.run(send, text="hello")
    builders.swept()
    deliver(ask(path))
    builders.reread(builders.journal_file(path))
    offset = tmp_path / "offset"

    def pass_time(seconds: int) -> None:
        offset.write_text(str(seconds))
        monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(offset))
        follow_waiting_jobs()
        builders.swept()

    return builders.journal_file(path).pk, pass_time


def test_while_the_approval_runs_nothing_waits_for_a_person(approved):
    _, pass_time = approved
    pass_time(60)
    assert load_overview().held == 0
    assert EXPIRED not in text(signed_in().get("/pending/"))


def test_once_it_expired_the_step_waits_for_a_person_and_the_pages_say_why(approved):
    pk, pass_time = approved
    task, step = reverse("task", args=[pk, "t"]), reverse("step", args=[pk, "t", 0])
    before = text(signed_in().get(task))
    assert "needs your decision" not in before
    pass_time(3600)
    assert load_overview().held == 1
    pending = text(signed_in().get("/pending/"))
    assert "One intent needs your decision." in pending
    assert "held: outcome unknown" in pending
    assert EXPIRED in pending
    page = text(signed_in("operator").get(step))
    assert EXPIRED in page
    assert "Approve replay" in page
    assert "Step 0 needs your decision." in text(signed_in().get(task))
    assert "queued" not in text(signed_in().get("/tasks/")).split("<tbody>")[1]
    assert [line.task_id for line in list_tasks(status="waiting").items] == ["t"]
    assert not list_tasks(status="queued").items


def test_an_open_task_page_notices_without_a_change_in_the_journal(approved):
    pk, pass_time = approved
    task = reverse("task", args=[pk, "t"])
    version = text(signed_in().get(task)).split("?version=")[1].split('"')[0]
    pass_time(3600)
    poll = signed_in().get(f"{task}?version={version}", headers={"HX-Request": "true", "HX-Target": "task-timeline"})
    assert poll.status_code == 200


@pytest.mark.parametrize("branch", ["b"])
def test_of_a_branchs_step_the_parents_page_and_the_list_of_tasks_notice_too(approved):
    pk, pass_time = approved
    task = reverse("task", args=[pk, "t"])
    before = text(signed_in().get(task))
    assert "Queued: the agent has not taken it yet." in before
    version = before.split("?version=")[1].split('"')[0]
    pass_time(3600)
    poll = signed_in().get(f"{task}?version={version}", headers={"HX-Request": "true", "HX-Target": "task-timeline"})
    assert poll.status_code == 200
    page = text(signed_in().get(task))
    assert "Step 0 of its branch" in page
    assert "queued" not in page.lower().split("<main")[1]
    assert "queued" not in text(signed_in().get("/tasks/")).split("<tbody>")[1]


@pytest.mark.parametrize("branch", ["b"])
def test_of_a_branchs_step_a_later_page_of_the_parent_says_the_same_state_as_the_first(approved):
    pk, pass_time = approved
    pass_time(3600)
    later = text(signed_in().get(reverse("task", args=[pk, "t"]) + "?after=0"))
    assert "Waiting: held at step 0 of a branch: outcome unknown." in later
    assert "Queued: the agent has not taken it yet." not in later
