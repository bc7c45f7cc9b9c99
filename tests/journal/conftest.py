"""What most tests of the journal start from: a path for it, and the world its agent acts on."""

from __future__ import annotations

import pytest

from tests.journal.agent import World


@pytest.fixture
def path(tmp_path):
    return tmp_path / "j.db"


@pytest.fixture
def world():
    return World()
