"""What tests of decisions start from: a watched journal whose only step waits for a person."""

from __future__ import annotations

import pytest

from tests.builders.fleet import swept, watched
from tests.builders.held import a_held_step, hook


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
