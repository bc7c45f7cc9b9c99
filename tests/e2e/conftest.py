"""A real browser, and a dashboard for it: the product as it is started by its users."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Dialog,
    Page,
    Request,
    StorageState,
    expect,
    sync_playwright,
)

from tests.browsers_loop import browsers_loop
from tests.e2e.desk import ALIVE, KILLED, STOPPED, SUPERVISED, Desk, sentence
from tests.running_dashboard import Up, a_data_folder, free_port

# `sign_in(person, role=..., statuses=..., **options of a browser context)`
SignIn: TypeAlias = Callable[..., Page]

# Only a test that fails waits so long: a busy machine is no fault of a page.
expect.set_options(timeout=30_000)

_STATUS = re.compile(r"Failed to load resource: the server responded with a status of (\d+)")


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """One headless Chromium for the session."""
    playwright = sync_playwright().start()
    # Root, as in CI, may not use Chromium's sandbox; the pages are our own.
    browser = playwright.chromium.launch(
        executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    )
    yield browser
    with browsers_loop():
        browser.close()
        playwright.stop()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page in a context of its own. The test fails when the page wrote an error to the console: a broken rule of
    the Content-Security-Policy shows there and nowhere else."""
    context = browser.new_context()
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert errors == []


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A running dashboard without journals; its sign-in link is `dashboard.link()`."""
    up = Up(a_data_folder(tmp_path_factory.mktemp("dashboard") / "data"), free_port())
    try:
        up.link()
        yield up
    finally:
        up.stop()


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One dashboard for all tests of a group, and its agents: alive, waiting under supervise, stopped, killed.

    All but the first have one pending errand each, named as they are. The killed one's request had arrived.
    """
    with Desk(tmp_path_factory.mktemp("desk")) as desk:
        desk.agent(ALIVE, "serve")
        desk.scene.hook.next(drop_before_apply=True, match=sentence(SUPERVISED))
        desk.agent(SUPERVISED, SUPERVISED, "letter", sentence(SUPERVISED), supervised=True)
        stopped = desk.agent(STOPPED, "serve")
        desk.hold(STOPPED, name=STOPPED, tool="postcard")
        assert stopped.stop() == 0
        desk.scene.forge.next(hold_after_apply=True, match=sentence(KILLED))
        desk.submit(KILLED, KILLED, tool="pull")
        killed = desk.agent(KILLED, "serve")
        assert desk.scene.forge.script.wait_held()
        killed.kill()
        desk.scene.forge.script.release()
        desk.wait_held(SUPERVISED, name=SUPERVISED)
        desk.open()
        yield desk


@pytest.fixture
def empty_desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk of its own for one test: no agents yet, and the dashboard starts with `open`."""
    with Desk(tmp_path) as desk:
        yield desk


@pytest.fixture(scope="session")
def cookies() -> dict[str, StorageState]:
    """Who is signed in already: each person uses one link a session."""
    return {}


@pytest.fixture
def sign_in(browser: Browser, desk: Desk, cookies: dict[str, StorageState]) -> Iterator[SignIn]:
    """Pages of signed-in people, each in a browser context of its own.

    The test fails when one of them wrote anything to its console (answers of the expected `statuses` apart), opened a
    dialog, or asked any other host.
    """
    contexts: list[BrowserContext] = []
    told: list[str] = []

    def open_page(person: str, *, role: str = "operator", statuses: Collection[int] = (), **options: Any) -> Page:
        context = browser.new_context(storage_state=cookies.get(person), base_url=desk.url, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        _listen(page, desk.url, told, statuses)
        if person not in cookies:
            page.goto(desk.link(person, role))
            page.get_by_role("button", name=f"Sign in as {person}").click()
            page.wait_for_url(f"{desk.url}/")
            cookies[person] = context.storage_state()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert told == []


def _listen(page: Page, url: str, told: list[str], statuses: Collection[int]) -> None:
    def said(text: str) -> None:
        status = _STATUS.match(text)
        if status is None or int(status[1]) not in statuses:
            told.append(text)

    def opened(dialog: Dialog) -> None:
        told.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def asked(request: Request) -> None:
        if not request.url.startswith(f"{url}/"):
            told.append(f"asked {request.url}")

    page.on("console", lambda message: said(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("dialog", opened)
    page.on("request", asked)
