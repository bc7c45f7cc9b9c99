"""Fixtures every room's tests share, and what becomes of browser tests without a browser."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Generator
from typing import Any

import hypothesis
import pytest
from django.test import RequestFactory

from tests.browsers_loop import browsers_loop

# A busy machine is no counterexample.
hypothesis.settings.register_profile(
    "patient",
    hypothesis.settings(),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("patient")

# The build without a window starts a page in a third of the time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


# Django's test client sends no Host header, as no browser does, and a request without one is refused.
_plain_environ = RequestFactory.__dict__["_base_environ"]


def _environ_with_host(self: RequestFactory, **request: Any) -> Any:
    return _plain_environ(self, **{"HTTP_HOST": "testserver"} | request)


RequestFactory._base_environ = _environ_with_host  # type: ignore[attr-defined]


def browser_path() -> str | None:
    """The browser the e2e tests drive; None where the machine has none."""
    named = os.environ.get("CHROMIUM")
    return named or next((path for name in BROWSERS if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium. Skips where there is none; with CI=true that is a failure."""
    path = browser_path()
    if path is None:
        sentence = "No Chromium on this machine: apt-get install chromium, or set CHROMIUM to its path."
        if os.environ.get("CI") == "true":
            pytest.fail(sentence, pytrace=False)
        pytest.skip(sentence)
    return path


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    with _loop_of(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    with _loop_of(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    with _loop_of(item):
        return (yield)


def _loop_of(item: pytest.Item) -> contextlib.AbstractContextManager[None]:
    return browsers_loop() if item.get_closest_marker("e2e") else contextlib.nullcontext()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Browser tests get the browser check even where they forget to ask for it.
    for item in items:
        if item.get_closest_marker("e2e") and isinstance(item, pytest.Function):
            item.fixturenames.insert(0, "chromium")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "No Chromium" in str(report.longrepr)]
    if skipped:
        terminalreporter.write_sep("=", "browser tests NOT run", yellow=True)
        terminalreporter.write_line(
            f"{len(skipped)} browser tests were skipped: no Chromium here. apt-get install chromium runs them."
        )
