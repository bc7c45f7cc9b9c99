"""Journals that Stepkeeper did not make: two made by hand, shown on the pages and never offered for a decision."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from playwright.sync_api import Page, expect

from tests.crash.looking import until
from tests.crash.scene import ROOT
from tests.e2e.desk import Desk

pytestmark = [pytest.mark.e2e, pytest.mark.accept, pytest.mark.xdist_group("pages")]

_NINE_COLUMNS = """CREATE TABLE agent_step_journal (task_id, step_index, tool_name, idempotency_key, arguments_json,
    status, output_json, created_at, updated_at)"""
_HASH_ONLY = """CREATE TABLE agent_step_journal (task_id TEXT, step_index INTEGER, tool_name TEXT, args_hash TEXT,
    status TEXT, output TEXT, created_at TEXT, PRIMARY KEY (task_id, step_index))"""

NO_DECISION = re.compile("Approve|Mark |Abandon|Query status")


@pytest.fixture(scope="module")
def foreign(desk: Desk) -> Desk:
    """The desk with both journals lying in its folder, found."""
    when = ("2026-11-01T10:00:00.000000Z", "2026-11-01T10:00:01.000000Z")
    with closing(sqlite3.connect(desk.journal("nine"))) as connection, connection:
        connection.execute(_NINE_COLUMNS)
        steps = [
            ("nine/a?b#c", 0, "read_page", "k0", '{"page": 1}', "committed", '{"title": "one"}', *when),
            ("nine/a?b#c", 1, "send_page", "k1", '{"page": 1, "to": "press"}', "pending", None, *when),
        ]
        connection.executemany(f"INSERT INTO agent_step_journal VALUES ({', '.join('?' * 9)})", steps)
    with closing(sqlite3.connect(desk.journal("hashes"))) as connection, connection:
        connection.execute(_HASH_ONLY)
        hashed = [
            ("hashed task", 0, "read_page", "ab" * 32, "committed", '{"title": "one"}', "2026-11-01 10:00:00"),
            ("hashed task", 1, "send_page", "cd" * 32, "pending", None, "2026-11-01 10:00:05"),
        ]
        connection.executemany(f"INSERT INTO agent_step_journal VALUES ({', '.join('?' * 7)})", hashed)
    return desk


def open_task(page: Page, task_id: str) -> None:
    """From the list of tasks to the timeline, by clicking."""
    link = page.get_by_role("link", name=task_id, exact=True)

    def is_listed() -> bool:
        page.goto("/tasks/")
        return link.count() == 1

    until(is_listed, f"{task_id} in the list")
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(task_id)


def test_a_nine_column_table_made_by_hand_has_its_timeline_under_any_task_id(foreign, sign_in):
    page = sign_in("ada")
    open_task(page, "nine/a?b#c")
    expect(page.locator("tr.step")).to_have_count(2)
    expect(page.locator("tr.step").nth(0)).to_contain_text("committed")
    page.get_by_role("link", name="send_page").click()
    expect(page.locator("#step-now")).to_contain_text('{"page": 1, "to": "press"}')
    expect(page.get_by_role("link", name=NO_DECISION)).to_have_count(0)
    expect(page.get_by_role("button", name=NO_DECISION)).to_have_count(0)
    page.get_by_role("link", name="nine/a?b#c").click()
    expect(page.locator("tr.step")).to_have_count(2)


def test_a_hash_only_table_has_its_timeline_and_is_said_to_be_never_replayable(foreign, sign_in):
    page = sign_in("ada")
    open_task(page, "hashed task")
    expect(page.locator("tr.step")).to_have_count(2)
    page.get_by_role("link", name="send_page").click()
    expect(page.locator("#step-now")).to_contain_text(
        "This journal keeps only a hash of the arguments. The step is shown and can never be replayed"
    )
    expect(page.get_by_role("link", name=NO_DECISION)).to_have_count(0)
    expect(page.get_by_role("button", name=NO_DECISION)).to_have_count(0)
    page.goto("/journals/")
    expect(page.locator("tr", has_text="hashes.db")).to_contain_text("never replayable")
    expect(page.locator("tr", has_text="nine.db")).to_contain_text("made by others")


def test_show_prints_both_as_json(foreign):
    told = {}
    for name in ("nine", "hashes"):
        command = [sys.executable, "-m", "journal", "show", str(foreign.journal(name)), "--json"]
        ended = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        told[name] = json.loads(ended.stdout)
    nine, hashes = told["nine"], told["hashes"]
    assert (nine["dialect"], hashes["dialect"]) == ("minimal", "hash_only")
    assert [task["task_id"] for task in nine["tasks"] + hashes["tasks"]] == ["nine/a?b#c", "hashed task"]
    assert [step["tool_name"] for step in nine["tasks"][0]["steps"]] == ["read_page", "send_page"]
    assert [step["replayable"] for step in nine["tasks"][0]["steps"]] == [True, True]
    for step in hashes["tasks"][0]["steps"]:
        assert (step["replayable"], step["reason"]) == (False, "the payload was never stored, only its hash")


def test_a_foreign_pending_step_in_the_queue_offers_nothing_to_press(foreign, sign_in):
    page = sign_in("ada")
    open_task(page, "hashed task")
    page.goto("/pending/")
    waiting = page.locator("details", has_text=re.compile("hashed task, step 1|nine/a.b#c, step 1"))
    expect(waiting).to_have_count(2)
    expect(waiting.first).to_contain_text("Nothing here settles it: only the agent that wrote this journal can.")
    expect(waiting.locator("a, button").filter(has_text=NO_DECISION)).to_have_count(0)


@pytest.mark.parametrize("task_id", ["hashed task", "nine/a?b#c"])
def test_a_form_for_a_foreign_step_says_that_nothing_can_be_decided(foreign, sign_in, task_id):
    page = sign_in("ada", statuses={409})
    open_task(page, task_id)
    page.get_by_role("link", name="send_page").click()
    step = page.url
    for kind in ("replay", "mark_committed", "abandon"):
        page.goto(f"{step}decide/{kind}/")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Nothing was decided")
        expect(page.get_by_role("button", name=NO_DECISION)).to_have_count(0)
