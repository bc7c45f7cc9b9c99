"""A real browser, and a dashboard for it: the product as it is started by its users."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.running_dashboard import Up, free_port


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """One headless Chromium for the session."""
    with sync_playwright() as playwright:
        # Root, as in CI, may not use Chromium's sandbox; the pages are our own.
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield browser
        browser.close()


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
    up = Up(tmp_path_factory.mktemp("dashboard") / "data", free_port())
    try:
        up.link()
        yield up
    finally:
        up.stop()
