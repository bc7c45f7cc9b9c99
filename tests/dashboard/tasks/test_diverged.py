"""A task whose code diverged waits for a person, though there is nothing to approve; its pages name the difference."""

from __future__ import annotations

import contextlib
import re
import sqlite3

import pytest
from django.urls import reverse

from agents.fleet.queries import load_overview
from journal import Diverged, Journal, tool
from tests.builders import fleet as builders
from tests.dashboard.ladder import signed_in, text

pytestmark = pytest.mark.django_db


@tool(effect="mutating")
def charge(call, card: object, cents: int) -> int:
    return cents


@tool(effect="read_only")
def look(card: object) -> object:
    return card


def run(path, *cards: object) -> None:
    """Open the task as its code now is: looks at a card, charges it, and is not done."""
    with (
        Journal(path, agent="shop", tools=[charge, look]) as journal,
        contextlib.suppress(Diverged, KeyboardInterrupt),
        journal.task("t") as task,
    ):
        for card in cards:
            task.run(look, card)
            task.run(charge, card, 500)
        raise KeyboardInterrupt


@pytest.fixture
def diverged(tmp_path, settings):
    builders.watched(tmp_path, settings)
    path = tmp_path / "shop.db"
    run(path, "visa-1234")
    run(path, "visa-9876")
    builders.swept()
    return path


def test_it_is_counted_and_listed_among_what_waits_with_nothing_to_approve(diverged):
    assert load_overview().held == 1
    page = text(signed_in("operator").get("/pending/"))
    assert "held: code diverged" in page
    assert "First difference: $.card." in page
    assert "There is nothing to approve" in page
    assert "Approve replay" not in page
    assert "cancel" not in page
    assert "held: code diverged" in text(signed_in().get("/tasks/"))


def test_its_pages_name_the_step_and_the_difference_and_no_value(diverged):
    pk = builders.journal_file(diverged).pk
    task = text(signed_in().get(reverse("task", args=[pk, "t"])))
    assert "nothing to approve: the handler&#x27;s code asks for another step 0 than the journal holds." in task
    assert "first difference: $.card" in task
    step = text(signed_in("operator").get(reverse("step", args=[pk, "t", 0])))
    assert "First difference: $.card. There is nothing to approve" in step
    assert "9876" not in task + step
    decide = signed_in("operator").get(reverse("decide", args=[pk, "t", 0, "abandon"]))
    assert decide.status_code == 409


@pytest.mark.parametrize(("name", "rest", "noun"), [("query", [], "ask"), ("decide", ["abandon"], "approve")])
def test_a_pending_step_that_diverged_is_refused_in_the_words_of_what_was_wanted(diverged, name, rest, noun):
    with contextlib.closing(sqlite3.connect(diverged, isolation_level=None)) as connection:
        connection.execute(
            "UPDATE agent_step_journal SET status = 'pending', hold_reason = 'diverged', output_json = NULL"
            " WHERE step_index = 1"
        )
    answer = signed_in("operator").get(reverse(name, args=[builders.journal_file(diverged).pk, "t", 1, *rest]))
    assert answer.status_code == 409
    assert re.findall(r"Nothing to (\w+): the handler", text(answer)) == [noun]


def test_with_the_old_code_it_leaves_the_queue(diverged):
    run(diverged, "visa-1234")
    builders.reread(builders.journal_file(diverged))
    assert load_overview().held == 0
    assert "First difference" not in text(signed_in().get("/pending/"))


def test_keys_of_the_payload_in_a_difference_are_for_payload_viewers_alone(tmp_path, settings):
    builders.watched(tmp_path, settings)
    path = tmp_path / "shop.db"
    run(path, {"Jane Doe": ["visa"]})
    run(path, {"Jane Doe": ["amex"]})
    builders.swept()
    pk = builders.journal_file(path).pk
    for url in ("/pending/", reverse("task", args=[pk, "t"]), reverse("step", args=[pk, "t", 0])):
        seen = {role: text(signed_in(role).get(url)) for role in ("viewer", "operator", "payload_viewer")}
        assert "irst difference: $.card" in seen["viewer"], url
        assert "Jane" not in seen["viewer"], url
        assert "$.card.Jane Doe[0]" in seen["payload_viewer"], url


@pytest.mark.parametrize("status", ["cancelled", "failed"])
def test_a_pending_step_that_diverged_waits_no_more_for_code_once_its_task_has_ended(tmp_path, settings, status):
    builders.watched(tmp_path, settings)
    path = tmp_path / "shop.db"
    run(path, "visa-1234")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE agent_task SET status = ?", (status,))
        connection.execute(
            "UPDATE agent_step_journal SET status = 'pending', hold_reason = 'diverged', hold_detail = '$.card',"
            " output_json = NULL WHERE step_index = 1"
        )
    builders.swept()
    client, pk = signed_in("operator"), builders.journal_file(path).pk
    for page in (text(client.get("/pending/")), text(client.get(reverse("step", args=[pk, "t", 1])))):
        assert f"Nothing: its task is {status}. Only a person can say what became of the step." in page
        assert "bring the handler" not in page
        assert "It did not happen" in page
        assert "Approve replay" not in page
    assert client.get(reverse("decide", args=[pk, "t", 1, "abandon"])).status_code == 200
