"""What tests of the fleet start from: a watched folder, and a journal in it whose only step waits for a person."""

from __future__ import annotations

import pytest

from journal import env
from tests.builders.fleet import swept, watched
from tests.builders.held import a_held_step, hook


@pytest.fixture
def folder(tmp_path, settings):
    """An empty folder whose journals are watched."""
    folder = tmp_path / "agents"
    folder.mkdir()
    watched(folder, settings)
    return folder


@pytest.fixture
def server():
    server = hook()
    yield server
    server.close()


@pytest.fixture
def path(tmp_path, settings, server):
    watched(tmp_path, settings)
    a_held_step(tmp_path / "hook.db", server.url)
    swept()
    return tmp_path / "hook.db"


@pytest.fixture
def orphaned(tmp_path, settings, server, monkeypatch):
    """A held step whose request names a credential that nobody but its agent, which has gone, can resolve."""
    monkeypatch.setenv("HOOK_URL", server.url)
    watched(tmp_path, settings)
    a_held_step(tmp_path / "hook.db", env("HOOK_URL"))
    monkeypatch.delenv("HOOK_URL")
    swept()
    return tmp_path / "hook.db"


@pytest.fixture
def later(tmp_path, monkeypatch):
    """Move every clock past a decision's life."""
    file = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(file))
    return lambda: file.write_text("901")
