"""What `show` cannot read no other verb writes beside."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from journal.cli import main
from tests.journal.rows import a_held_journal


@pytest.fixture
def path(path: Path) -> Path:
    return a_held_journal(path)


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("PRAGMA user_version = 0", "damaged"),
        ("ALTER TABLE agent_step_journal RENAME COLUMN hold_reason TO why", "foreign_tables"),
        ("ALTER TABLE agent_task RENAME COLUMN wait_kind TO why", "foreign_tables"),
    ],
)
def test_a_file_that_show_refuses_is_refused_in_the_same_words_and_left_alone(
    path: Path, capsys: pytest.CaptureFixture[str], statement: str, kind: str
):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
    before = path.read_bytes()
    errors = []
    for words in (["show", str(path)], ["recover", str(path)], ["submit", str(path), "h", "--task-id", "z"]):
        assert main([*words, "--json"]) == 3
        errors.append(json.loads(capsys.readouterr().out)["error"])
    assert errors[0]["kind"] == kind
    assert errors == errors[:1] * 3
    assert path.read_bytes() == before
    assert not Path(f"{path}.inbox").exists()
