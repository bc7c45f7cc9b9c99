"""The command line: every verb's text, JSON and exit code, run as users run it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from journal.cli import main
from tests.journal.rows import (
    BOOT,
    WHEN,
    a_held_journal,
    a_journal,
    a_step,
    a_task,
    an_attempt,
    hash_only_table,
    insert,
    minimal_table,
    writer,
)

VERBS = ("show", "submit", "recover", "check", "supervise")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(path: Path) -> Path:
    return a_held_journal(path)


def _json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_and_its_exit_codes(verb: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "--json" in text
    assert "exit codes:" in text


@pytest.mark.parametrize("words", [[], ["dance"], ["show"], ["show", "f", "--limit", "0"], ["submit", "f", "h"]])
def test_a_wrong_command_line_ends_with_2(words: list[str]):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2


@pytest.mark.parametrize(
    "words",
    [["dance"], ["show"], ["show", "f", "--limit", "9" * 20], ["show", "f", "--status", "bogus"], ["supervise"]],
)
def test_a_wrong_command_line_is_one_json_document_where_that_was_asked_for(
    words: list[str], capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as ended:
        main([*words, "--json"])
    assert ended.value.code == 2
    error = _json(capsys)["error"]
    assert (error["kind"], "usage: python -m journal" in error["hint"], bool(error["message"])) == ("usage", True, True)


def test_an_output_that_cannot_be_written_is_a_sentence(path: Path):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "journal", "show", path], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (1, "The system refused: [Errno 28] No space left on device.\n")


def test_it_runs_as_a_module_from_any_folder(path: Path, tmp_path: Path):
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "journal", "show", path.name, "--json"],
        cwd=tmp_path, env=environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [task["task_id"] for task in json.loads(done.stdout)["tasks"]] == ["held", "done"]


def test_showing_a_journal_loads_no_third_party_module_and_no_parser_at_import(path: Path):
    code = "import journal.cli, sys; print('argparse' in sys.modules, 'httpx2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_tasks_with_a_pending_step_come_first(path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["show", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("A journal of triage.")
    assert lines[1].split() == ["STATE", "TASK", "STEPS", "PENDING", "CHANGED", "WHY"]
    assert lines[2].split()[:4] == ["waiting", "held", "2", "1"]
    assert "step 1 open_issue: no_key_no_status" in lines[2]
    assert lines[3].split()[:4] == ["completed", "done", "1", "0"]


def test_a_limit_and_a_status_choose_tasks_and_say_that_there_are_more(path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["show", str(path), "--limit", "1"]) == 0
    assert "There are more" in capsys.readouterr().out
    assert main(["show", str(path), "--status", "completed", "--json"]) == 0
    document = _json(capsys)
    assert ([task["task_id"] for task in document["tasks"]], document["more"]) == (["done"], False)


def test_a_tasks_timeline_tells_its_steps_attempts_evidence_and_decisions(
    path: Path, capsys: pytest.CaptureFixture[str]
):
    with closing(writer(path)) as connection:
        a_task(connection, "held/b", parent_id="held")
        insert(connection, "agent_task_run", task_id="held", run=2, boot=1, started_at=WHEN, served_through=0,
               revision=BOOT + 5)  # fmt: skip
        insert(connection, "agent_evidence", task_id="held", step_index=1, attempt=1, asked_at=WHEN, asked_boottime=1.0,
               os_boot_id="os", answer="unknown", source="status", http_status=500, revision=BOOT + 5)  # fmt: skip
        insert(connection, "agent_decision", message_id="m", task_id="held", step_index=1, kind="replay", actor="ann",
               reason="looked", created_at=WHEN, applied_at=WHEN, outcome="refused", outcome_detail="too late",
               revision=BOOT + 5)  # fmt: skip
    assert main(["show", str(path), "held"]) == 0
    text = capsys.readouterr().out
    for piece in (
        "held: waiting, handler triage", "run 2 in boot 1 (pid 4242, not known to have ended)",
        "branch held/b: running",
        "steps 0 to 0 from the journal", "0  committed open_issue",
        "1  pending   open_issue mutating", "held: no_key_no_status. This tool has no idempotency key",
        "mark it committed", "attempt 1 in boot 1: no outcome on disk: unknown",
        "unknown, HTTP 500", "ann said replay", "(looked): refused: too late",
    ):  # fmt: skip
        assert piece in text
    assert main(["show", str(path), "held", "--json"]) == 0
    task = _json(capsys)["tasks"][0]
    assert [step["arguments_json"] for step in task["steps"]] == ['{"number": 0}', '{"number": 1}']
    assert task["attempts"][0]["verdict"] is None
    assert task["decisions"][0]["created_at"] == WHEN


def test_a_failed_task_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = str(a_journal(tmp_path / "failed.db"))
    with closing(writer(Path(path))) as connection:
        error = {"type": "ValueError", "message": "no such \x1b[31mcustomer", "chain": []}
        a_task(connection, "t", status="failed", error_json=json.dumps(error))
        a_task(connection, "odd", status="failed", error_json="[not json", revision=7)
    assert main(["show", path]) == 0
    listed = capsys.readouterr().out
    assert "ValueError: no such" in listed
    assert "[not json" in listed
    assert main(["show", path, "t"]) == 0
    shown = capsys.readouterr().out
    assert "  failed: ValueError: no such" in shown
    assert "\x1b" not in shown


def test_an_unknown_task_is_a_problem_and_not_a_crash(path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["show", str(path), "nobody"]) == 1
    assert "not in this journal" in capsys.readouterr().out
    assert main(["show", str(path), "nobody", "--json"]) == 1
    assert _json(capsys)["error"]["kind"] == "no_task"


def test_what_a_journal_holds_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = a_journal(tmp_path / "j\x1b[2J.db", agent="\x1b]0;owned\x07")
    evil = "\x1b[31mred\x9b\r\n\u202etxt\0"
    with closing(writer(path)) as connection:
        a_task(connection, evil, wait_kind="unset", wait_detail=evil, handler=evil, conflict=evil)
        a_step(connection, evil, tool_name=evil, hold_reason=evil, hold_detail=evil, status="pending")
        an_attempt(connection, evil, detail=evil)
    for words in (["show", str(path)], ["show", str(path), evil], ["check", str(path)], ["show", str(path), "\x1b[x"]):
        main(words)
        text = capsys.readouterr().out
        assert [char for char in text if char != "\n" and not char.isprintable()] == []
        assert "\\x1b" in text


def test_a_hash_only_journal_is_shown_as_never_replayable(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "foreign.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        hash_only_table(connection)
        connection.execute(
            "INSERT INTO agent_step_journal VALUES ('a/b?c#d', 0, 'send', 'abc', 'committed', '1', ?)",
            ("2026-11-01 10:00:00",),
        )
    assert main(["show", str(path), "--json"]) == 0
    document = _json(capsys)
    assert document["dialect"] == "hash_only"
    step = document["tasks"][0]["steps"][0]
    assert (step["replayable"], step["reason"]) == (False, "the payload was never stored, only its hash")
    assert (step["args_hash"], step["arguments_json"], step["output_json"]) == ("abc", None, "1")
    assert step["created_at"] == "2026-11-01T10:00:00.000000Z"
    assert main(["show", str(path), "a/b?c#d"]) == 0
    assert "never replayable: the payload was never stored" in capsys.readouterr().out
    assert main(["check", str(path)]) == 0


def test_a_nine_column_journal_is_shown_with_its_payloads(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "foreign.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        minimal_table(connection)
        connection.executemany(
            "INSERT INTO agent_step_journal VALUES ('t', ?, 'send', 'k', '{}', 'committed', '1', ?, ?)",
            [(number, WHEN, WHEN) for number in range(1200)],
        )
    assert main(["show", str(path), "--json"]) == 0
    document = _json(capsys)
    assert document["dialect"] == "minimal"
    steps = document["tasks"][0]["steps"]
    assert [step["step_index"] for step in steps] == list(range(1200))
    assert (steps[0]["arguments_json"], steps[0]["replayable"], "reason" in steps[0]) == ("{}", True, False)


@pytest.mark.parametrize("verb", ["show", "check", "recover"])
def test_a_file_that_is_no_journal_ends_with_3_and_says_why(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "letter.txt"
    path.write_text("Dear all,\n" * 100)
    assert main([verb, str(path)]) == 3
    assert "not a SQLite database" in capsys.readouterr().err
    assert main([verb, str(path), "--json"]) == 3
    assert _json(capsys)["error"]["kind"] == "not_a_database"
    assert main([verb, str(tmp_path / "nothing.db")]) == 3
    assert os.listdir(tmp_path) == ["letter.txt"]


def test_supervise_needs_a_command_and_returns_its_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = str(tmp_path / "j.db")
    assert main(["supervise", "--journal", path]) == 2
    assert "-- python agent.py" in capsys.readouterr().err
    assert main(["supervise", "--journal", path, "--json", "--", sys.executable, "-c", "pass", "--json"]) == 0
    assert _json(capsys) == {"exit_code": 0}


def test_a_closed_pipe_is_no_error(path: Path):
    with subprocess.Popen(
        [sys.executable, "-m", "journal", "show", path, "--json"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait() == 0
