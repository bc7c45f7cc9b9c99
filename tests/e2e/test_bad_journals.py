"""Journals that cannot be read: a card each that says why, and everything else goes on."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from playwright.sync_api import Page, expect

from tests.crash.looking import until
from tests.e2e.desk import ALIVE, Desk
from tests.journal import rows

pytestmark = [pytest.mark.e2e, pytest.mark.accept, pytest.mark.xdist_group("pages")]

CARDS = {
    "empty": "empty",
    "truncated": "truncated",
    "prose": "not a database",
    "folder": "folder",
    "newer": "newer",
}


@pytest.fixture(scope="module")
def spoilt(desk: Desk) -> Desk:
    """The desk with one journal of each bad kind lying in its folder."""
    desk.journal("empty").touch()
    whole = rows.a_journal(desk.journals / "whole").read_bytes()
    (desk.journals / "whole").unlink()
    desk.journal("truncated").write_bytes(whole[: len(whole) // 2])
    desk.journal("prose").write_text("Dear diary, today I was not a database.\n" * 300)
    desk.journal("folder").mkdir()
    rows.a_journal(desk.journal("newer"), agent="from the future")
    with closing(sqlite3.connect(desk.journal("newer"))) as connection:
        connection.execute("PRAGMA user_version = 9999")
    return desk


def shows(page: Page, path: str, text: str) -> bool:
    """Whether the page, opened anew, has this text."""
    page.goto(path)
    return text in page.locator("main").inner_text()


def test_each_bad_journal_is_a_card_and_the_healthy_ones_go_on(spoilt, sign_in):
    page = sign_in("ada")
    until(lambda: shows(page, "/journals/", "newer.db"), "the cards")
    for name, kind in CARDS.items():
        card = page.locator("li.note.bad", has_text=f"{name}.db")
        expect(card).to_have_count(1)
        expect(card.locator("strong")).to_have_text(kind)
        expect(card).to_contain_text("Every other journal is unaffected.")
    expect(page.locator("tr", has_text="alive.db")).to_contain_text("pid")
    spoilt.submit(ALIVE, "beside-bad-journals")
    spoilt.wait_status("beside-bad-journals")
    until(lambda: shows(page, "/tasks/", "beside-bad-journals"), "the healthy journal's task")
    page.goto("/")
    expect(page.locator("main")).to_contain_text("agent alive")


def test_a_journal_that_appears_is_found_without_a_restart(desk, sign_in):
    page = sign_in("ada")
    rows.a_journal(desk.journal("newcomer"), agent="newcomer")
    with closing(rows.writer(desk.journal("newcomer"))) as connection:
        rows.a_task(connection, "first-of-newcomer", status="completed")
        rows.a_step(connection, "first-of-newcomer")
    until(lambda: shows(page, "/journals/", "newcomer.db"), "the new journal")
    until(lambda: shows(page, "/tasks/", "first-of-newcomer"), "its task")
    page.get_by_role("link", name="first-of-newcomer").click()
    expect(page.locator("tr.step")).to_have_count(1)
