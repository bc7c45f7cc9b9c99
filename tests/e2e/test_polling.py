"""Three browsers look at an agent at work: it does not feel them."""

from __future__ import annotations

import sys

import pytest
from playwright.sync_api import Page, Response, expect

from tests.crash.looking import rows, until
from tests.e2e.desk import Desk

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("polling")]

RATE = 200
MIB = 1024 * 1024


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(20, marks=pytest.mark.slow, id="twenty seconds"),
        pytest.param(60, marks=[pytest.mark.soak, pytest.mark.accept], id="sixty seconds"),
    ],
)
def test_three_polling_browsers_neither_lock_an_agent_nor_let_its_log_grow(empty_desk, browser, capsys, seconds):
    desk: Desk = empty_desk
    path, log = desk.journal("steady"), desk.journals / "steady.db-wal"
    steady = [sys.executable, "-m", "tests.crash.agents.steady"]
    writer = desk.scene.run(steady, JOURNAL=str(path), RATE=str(RATE), SECONDS=str(seconds))
    until(lambda: rows(path, "SELECT 1 FROM agent_step_journal LIMIT 1"), "the first step")
    desk.open()
    contexts = [browser.new_context(base_url=desk.url) for _ in range(3)]
    polls = [0, 0, 0]
    for number, context in enumerate(contexts):
        page = context.new_page()
        page.goto(desk.link(f"watcher-{number}", "viewer"))
        page.get_by_role("button", name="Sign in").click()
        _count_polls(page, polls, number)
        if number < 2:
            page.get_by_role("link", name="steady").last.click()
            expect(page.locator("#task-timeline")).to_contain_text("tick")
    sizes = [0]
    (desk.scene.folder / "watched").touch()

    def ended() -> bool:
        sizes.append(log.stat().st_size if log.exists() else 0)
        if min(polls) >= seconds // 5:
            (desk.scene.folder / "enough").touch()
        contexts[0].pages[0].wait_for_timeout(50)  # lets the browsers' events through
        return not writer.is_alive

    until(ended, "the writer's end", seconds=60 + 6 * seconds)
    for context in contexts:
        context.close()
    assert writer.wait() == 0, desk.scene.log.read_text()
    steps, rate = (desk.scene.folder / "steady").read_text().split()
    with capsys.disabled():
        print(f"\n{steps} steps, {rate}/s, under 3 browsers; largest log {max(sizes) / MIB:.1f} MiB; polls {polls}")
    # The writer begins when all three look, catches up with its clock, and goes on until each has polled often
    # enough: a machine with no time for them only makes this last longer.
    assert int(steps) > seconds * RATE
    # No lock error: the writer ended with 0, and every step it began is committed.
    assert "lock" not in desk.scene.log.read_text()
    stored = rows(path, "SELECT status, count(*) AS n FROM agent_step_journal GROUP BY status")
    assert [(row["status"], row["n"]) for row in stored] == [("committed", int(steps))]
    assert 0 < max(sizes) < 8 * MIB
    assert min(polls) >= seconds // 5


def _count_polls(page: Page, polls: list[int], number: int) -> None:
    def answered(response: Response) -> None:
        if "version=" in response.url and response.status in (200, 204):
            polls[number] += 1

    page.on("response", answered)
