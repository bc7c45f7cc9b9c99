"""`recover` settles what can be settled, and its exit code says what is left."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from journal.cli import main
from journal.ownership import Lock
from tests.journal.rows import a_held_journal, a_journal


@pytest.fixture
def path(path: Path) -> Path:
    return a_held_journal(path)


def test_recover_leaves_what_needs_a_person_and_ends_with_75(path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["recover", str(path), "--json"]) == 75
    report = json.loads(capsys.readouterr().out)
    assert report["settled"] == 0
    assert report["held"] + report["waiting"] + report["left_to_agent"] == 1
    assert main(["recover", str(path)]) == 75
    assert "0 settled" in capsys.readouterr().out


def test_recover_of_a_journal_with_nothing_pending_ends_with_0(tmp_path: Path):
    assert main(["recover", str(a_journal(tmp_path / "j.db"))]) == 0


def test_recover_beside_a_live_agent_is_busy_and_names_its_pid(path: Path, capsys: pytest.CaptureFixture[str]):
    lock = Lock(path, role="agent")
    lock.acquire()
    try:
        assert main(["recover", str(path), "--wait", "0"]) == 4
        assert str(os.getpid()) in capsys.readouterr().err
        assert main(["recover", str(path), "--wait", "0", "--json"]) == 4
        assert json.loads(capsys.readouterr().out)["error"]["kind"] == "busy"
    finally:
        lock.release()
