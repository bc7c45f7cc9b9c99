"""`up --demo` as its visitor sees it: the first page tells what happened, and a button makes it happen again."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psutil
import pytest
from playwright.sync_api import Page, StorageState, expect

from tests.running_dashboard import Up, free_port, port_is_free, soon

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("demo")]

KILLED = r"[Kk]illed \d\d:\d\d:\d\d"
# One a kill, in the order of the demo.
STORY = (
    rf"{KILLED} in mid-request; the same \d+ bytes went out again under the same key; the forge has 1 pull request\.",
    rf"{KILLED} after a 504; the forge was asked with the original key and knew it; .* has 1 pull request\.",
    rf"{KILLED} between its commit and the note of it; .* asked .*; the repository has 1 commit with this key\.",
    rf"{KILLED} in mid-request; .*the webhook has 1 message of these bytes\.",
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("demo") / "data", free_port(), "--demo")
    try:
        up.link()
        yield up
        left = {port for process in up.processes() for port in _ports(process)}
        up.process.terminate()
        assert up.process.wait(timeout=8) == 0
        assert up.processes() == []
        assert len(left) >= 4, "the dashboard, the forge, the webhook and the model listen"
        assert all(port_is_free(port) for port in left)
    finally:
        up.end_hard()


def _ports(process: psutil.Process) -> list[int]:
    return [each.laddr.port for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN]


@pytest.fixture(scope="module")
def signed_in(browser, demo: Up) -> StorageState:
    """Who pressed the printed link's button."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(demo.link())
    page.get_by_role("button", name="Sign in as admin").click()
    page.wait_for_url(f"http://127.0.0.1:{demo.port}/")
    state: StorageState = context.storage_state()
    context.close()
    return state


@pytest.fixture
def first_page(browser, demo: Up, signed_in: StorageState) -> Iterator[Page]:
    """The first page once all four kills are told on it; the page polls, nobody reloads it."""
    context = browser.new_context(base_url=f"http://127.0.0.1:{demo.port}", storage_state=signed_in)
    page = context.new_page()
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.goto("/")
    for number, sentence in enumerate(STORY):
        expect(page.locator("ul.sentences li").nth(number)).to_contain_text(re.compile(sentence), timeout=50_000)
    yield page
    context.close()
    assert told == []


def test_the_first_page_tells_each_kill_and_leads_to_the_step_that_waits(first_page):
    page = first_page
    expect(page.get_by_role("heading", level=1)).to_contain_text("your decision")
    page.locator("ul.sentences li").first.get_by_role("link").click()
    ours = page.locator("#task-ledger tr.ours")
    expect(ours).to_have_count(1)
    expect(ours.locator('[data-label="effects"]')).to_have_text("1")
    expect(ours.locator('[data-label="requests with this key"]')).to_have_text("2")
    page.goto("/")
    page.get_by_role("link", name="Look and decide").click()
    expect(page.locator(".trial")).to_contain_text("held")
    expect(page.get_by_role("link", name="It happened…")).to_be_visible()


def test_the_kill_button_kills_that_agent_and_its_supervisor_starts_it_again(first_page):
    page = first_page
    row = page.locator("tr", has=page.get_by_role("link", name="commits", exact=True)).filter(
        has_text="Kill this agent"
    )
    # The last of the four kills may have been a moment ago: its agent is started first.
    expect(page.locator('[data-label="pid"]').filter(has_text="—")).to_have_count(0, timeout=30_000)
    before = row.locator('[data-label="pid"]').inner_text()
    others = page.locator('[data-label="pid"]').all_inner_texts()
    row.get_by_role("button", name="Kill this agent now").click()
    notice = page.get_by_role("status")
    expect(notice).to_contain_text(re.compile(r"Killed commits \(pid \d+\) with SIGKILL"))
    [pid] = re.findall(r"pid (\d+)", notice.inner_text())
    assert pid == before
    soon(lambda: not psutil.pid_exists(int(pid)), within=10)
    expect(row.locator('[data-label="pid"]')).to_have_text(re.compile(rf"^(?!{pid}$)\d+$"), timeout=30_000)
    after = page.locator('[data-label="pid"]').all_inner_texts()
    assert len(set(after) & set(others)) == len(others) - 1
