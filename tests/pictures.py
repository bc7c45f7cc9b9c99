"""Takes a picture of every page at each width, light and dark, of the real dashboard on the big fleet.

`python -m tests.pictures FOLDER [WORD ...]`: with words, only of the pages whose names contain one of them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import django
from playwright.sync_api import Browser, Page, sync_playwright

from tests.big_desk import BigDesk, addresses
from tests.conftest import browser_path

WIDTHS = (1440, 1024, 768, 360)
TALLEST = 2600  # pixels: a page of hundreds of rows is seen well enough by then


def main(folder: Path, words: list[str]) -> None:
    """Take the pictures; a page wider than its window is named so."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    with (
        tempfile.TemporaryDirectory(prefix="stepkeeper-pictures-") as work,
        BigDesk(Path(work)) as desk,
        _browser() as browser,
    ):
        pages = addresses(desk, browser)
        wanted = {name: path for name, path in pages.items() if not words or any(word in name for word in words)}
        for scheme in ("light", "dark"):
            for width in WIDTHS:
                _take(desk, browser, wanted, folder, width, scheme)


def _take(desk: BigDesk, browser: Browser, pages: dict[str, str], folder: Path, width: int, scheme: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    page = desk.signed_in(browser, viewport={"width": width, "height": 900}, color_scheme=scheme)
    for name, path in pages.items():
        page.goto(path)
        _refuse(page, name)
        tall = min(int(page.evaluate("document.documentElement.scrollHeight")), TALLEST)
        wide = int(page.evaluate("document.documentElement.scrollWidth"))
        picture = folder / f"{name}-{width}-{scheme}.png"
        page.screenshot(path=picture, full_page=True, clip={"x": 0, "y": 0, "width": wide, "height": tall})
        print(picture.name, "is wider than the window" if wide > width else "", flush=True)
    page.context.close()


def _refuse(page: Page, name: str) -> None:
    """A page named so is seen as it answers a form with nothing in it."""
    if name.endswith("refused"):
        page.locator("main form button[type=submit]").last.click()
        page.wait_for_load_state()


@contextlib.contextmanager
def _browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path(), args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield browser
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
