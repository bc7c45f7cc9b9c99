"""The real dashboard on the big fleet, and the addresses of its pages: for pictures and for tests of layout."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

from playwright.sync_api import Browser, Page

from tests.builders.big_fleet import LONG, a_big_fleet
from tests.crash.scene import ROOT
from tests.running_dashboard import Up, a_data_folder, clean_environment, free_port, soon

# A task whose page is looked at, by the beginning of its id; and which of its steps.
_TASKS = {
    "done": ("issue-", 1),
    "held": ("release-news", 2),
    "raised": ("stock-transfer", 2),
    "failed": ("stock-count", 2),
    "retrying": ("payment", 0),
    "killed": ("killed-while", 2),
    "running": ("import", 2),
    "branches": ("all-branches", 0),
    "replayed": ("hook-approved", 2),
    "asked": ("mail", 2),
    "diverged": ("changed-code", 0),
    "odd": ("<img", 0),
    "long": (LONG, 1499),
}


class BigDesk:
    """A dashboard whose index has read the whole fleet."""

    def __init__(self, folder: Path, **size: int) -> None:
        self._folder, self._size = folder, size
        self._stack = ExitStack()
        self._cookies: Any = None

    def __enter__(self) -> Self:
        fleet = a_big_fleet(self._folder / "fleet", **self._size)
        self._stack.enter_context(fleet.alive())
        environment = {"STEPKEEPER_JOURNALS": f"{fleet.folder}/*.db"}
        self.up = Up(a_data_folder(self._folder / "data"), free_port(), env=environment)
        self._environment = {**environment, "STEPKEEPER_DATA": str(self.up.folder), "PORT": str(self.up.port)}
        self._stack.callback(self.up.stop)
        self.up.link()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.up.port}"

    def signed_in(self, browser: Browser, **options: Any) -> Page:
        """A page of an admin, in a context of its own."""
        page = browser.new_context(base_url=self.url, storage_state=self._cookies, **options).new_page()
        page.set_default_timeout(30_000)
        if self._cookies is None:
            page.goto(self._link())
            page.get_by_role("button", name="Sign in as ada").click()
            page.wait_for_url(f"{self.url}/")
            self._cookies = page.context.storage_state()
        return page

    def _link(self) -> str:
        command = [sys.executable, str(ROOT / "manage.py"), "login-link", "--user", "ada", "--role", "admin"]
        environment = {**clean_environment(), **self._environment}
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


def addresses(desk: BigDesk, browser: Browser) -> dict[str, str]:
    """Every page of the product by a short name, once the index has read all."""
    page = desk.signed_in(browser)
    found = {
        "overview": "/",
        "tasks": "/tasks/",
        "tasks-waiting": "/tasks/?status=waiting",
        "tasks-failed": "/tasks/?status=failed",
        "tasks-none": "/tasks/?text=no-such-task",
        "pending": "/pending/",
        "spend": "/spend/?by=agent&over=30d",
        "spend-model": "/spend/?by=model&over=30d",
        "disk": "/disk/",
        "alerts": "/alerts/",
        "audit": "/audit/",
        "journals": "/journals/",
        "nothing-here": "/nothing/",
    }
    for name, (text, index) in _TASKS.items():
        found[f"task-{name}"] = task = soon(partial(_first_task, page, text), within=120)
        found[f"step-{name}"] = task.replace("/tasks/", "/steps/") + f"{index}/"
    held = found["step-held"]
    for kind in ("replay", "mark_committed", "mark_not_applied", "abandon"):
        found[f"decide-{kind}"] = f"{held}decide/{kind}/"
    found["decide-refused"] = f"{held}decide/mark_committed/"
    found["query"] = found["step-raised"] + "query/"
    page.context.close()
    return found


def _first_task(page: Page, text: str) -> str | None:
    page.goto(f"/tasks/?text={text}")
    links = page.locator("#tasks-table td.lead a")
    return links.first.get_attribute("href") if links.count() else None
