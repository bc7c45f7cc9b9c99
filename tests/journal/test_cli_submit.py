"""`submit` leaves one message for the agent, or says why no agent would read it."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from journal.cli import main
from journal.inbox import mailbox
from tests.journal.rows import a_held_journal, minimal_table


@pytest.fixture
def path(path: Path) -> Path:
    return a_held_journal(path)


def test_submit_leaves_one_message_for_the_agent(path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["submit", str(path), "triage", "--task-id", "t/1", "--input", '{"number": 42}', "--json"]
    assert main(words) == 0
    message_id = json.loads(capsys.readouterr().out)["message_id"]
    message = mailbox.list_messages(path)[0]
    assert message.message_id == message_id
    assert message.body is not None
    assert (message.kind, message.body["handler"], message.body["task_id"]) == ("submit", "triage", "t/1")
    assert message.body["input"] == {"number": 42}


def test_submit_reads_a_long_input_from_stdin(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"text": "long"}'))
    assert main(["submit", str(path), "triage", "--task-id", "t", "--input", "-"]) == 0
    body = mailbox.list_messages(path)[0].body
    assert body is not None
    assert body["input"] == {"text": "long"}


@pytest.mark.parametrize("text", ["{", "[1]", "7", '{"a": NaN}', '{"a": "\\ud800"}'])
def test_submit_refuses_input_that_is_no_strict_json_object(path: Path, text: str):
    assert main(["submit", str(path), "triage", "--task-id", "t", "--input", text]) == 2
    assert mailbox.list_messages(path) == []


@pytest.mark.parametrize("task_id", ["", "a" * 513, "a\x00"])
def test_submit_refuses_a_task_id_that_the_agent_would_refuse(path: Path, task_id: str):
    assert main(["submit", str(path), "triage", "--task-id", task_id]) == 2
    assert mailbox.list_messages(path) == []


def test_submit_names_the_value_that_json_readers_would_round(path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["submit", str(path), "triage", "--task-id", "t", "--input", '{"a": 123456789012345678901}', "--json"]
    assert main(words) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["kind"], error["message"].partition(":")[0]) == ("usage", "Input $.a")


def test_submit_refuses_what_no_agent_would_ever_read(tmp_path: Path):
    folder = tmp_path / "folder"
    folder.mkdir()
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection:
        minimal_table(connection)
    rest = ["triage", "--task-id", "t"]
    assert main(["submit", str(folder), *rest]) == 3
    assert main(["submit", str(foreign), *rest]) == 2
    assert main(["submit", str(tmp_path / "no" / "folder.db"), *rest]) == 3
    assert sorted(os.listdir(tmp_path)) == ["folder", "foreign.db"]


def test_submit_before_the_agents_first_start_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["submit", str(tmp_path / "new.db"), "triage", "--task-id", "t"]) == 0
    assert "There is no journal yet" in capsys.readouterr().out
    assert len(mailbox.list_messages(tmp_path / "new.db")) == 1
