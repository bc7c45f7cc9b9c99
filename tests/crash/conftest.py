"""The scene every crash test plays in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.scene import Scene


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """Servers, gates, and an agent's journal that does not exist yet. The clock is the scene's, here too."""
    with Scene(tmp_path) as scene:
        monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(scene.clock))
        yield scene
