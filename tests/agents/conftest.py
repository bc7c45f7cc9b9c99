"""What tests of the fleet start from: a watched folder, and a journal in it whose only step waits for a person."""

from __future__ import annotations

import pytest

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
