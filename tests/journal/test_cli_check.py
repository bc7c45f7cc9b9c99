"""`check` finds what is wrong with a journal, and nothing in a right one."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from journal import Journal, Request, UsageError, http_tool, tool
from journal.cli import main
from journal.http.frozen_request import digest_request
from journal.ids import sha256_hex, step_key
from tests.journal.rows import BOOT, WHEN, a_boot, a_journal, a_step, a_task, an_attempt, insert, writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A right journal: a Python step, an HTTP step, a step with bodies, one of a second key."""
    path = a_journal(tmp_path / "j.db")
    with closing(writer(path)) as connection:
        a_boot(connection)
        a_task(connection, status="completed")
        a_step(connection)
        request = ("POST", "https://forge.example/", (("Idempotency-Key", "k"),), b"{}", ())
        a_step(connection, index=1, transport="http", payload_sha256=digest_request(*request))
        insert(connection, "agent_request", task_id="t", step_index=1, key_generation=0, method=request[0],
               url=request[1], headers_json='[["Idempotency-Key", "k"]]', refs_json="[]", body=b"{}",
               sha256=digest_request(*request), created_at=WHEN)  # fmt: skip
        body = json.dumps({"text": "x" * 2_000_000})
        insert(connection, "agent_body", sha256=sha256_hex(body), body=body)
        a_step(connection, index=2, idempotency_key=step_key("t", 2, body), arguments_json="{}",
               args_hash=sha256_hex(body),
               payload_sha256=sha256_hex(body), arguments_ref=sha256_hex(body),
               output_ref=sha256_hex(body))  # fmt: skip
        a_step(connection, index=3, key_generation=1, idempotency_key=step_key("t", 3, '{"number": 3}', generation=1))
        for index in range(4):
            an_attempt(connection, index=index)
    return path


def test_a_right_journal_has_no_finding(path: Path, capsys: pytest.CaptureFixture[str]):
    before = path.read_bytes()
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == f"{path} (stepkeeper): no findings.\n"
    assert main(["check", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"journal": str(path), "dialect": "stepkeeper", "findings": []}
    assert (path.read_bytes(), os.listdir(path.parent)) == (before, ["j.db"])


STEP = "UPDATE agent_step_journal SET {} WHERE step_index = 0"
WRONG = {
    STEP.format("idempotency_key = 'f00'"): ("key", "step 0 of t"),
    STEP.format("arguments_json = '{}'"): ("key", "step 0 of t"),
    STEP.format("args_hash = 'f00'"): ("hash", "step 0 of t"),
    STEP.format("payload_sha256 = 'f00'"): ("hash", "step 0 of t"),
    STEP.format("output_json = NULL"): ("output", "step 0 of t"),
    STEP.format("output_json = 'not json'"): ("output", "step 0 of t"),
    STEP.format("created_at = 'soon'"): ("cell", "step 0 of t"),
    STEP.format("status = 'pending'"): ("task", "task t"),
    STEP.format("committed_boot = 9"): ("order", "step 0 of t"),
    STEP.format(f"revision = {9 * BOOT}"): ("order", "agent_step_journal row 1"),
    "DELETE FROM agent_step_journal WHERE step_index = 1": ("order", "step 1 of t"),
    STEP.format("created_at = '2026-11-02T00:00:00.000000Z'"): ("attempt", "attempt 1 of step 0 of t"),
    "UPDATE agent_body SET body = '{}'": ("cell", "step 2 of t"),
    "UPDATE agent_request SET body = x'00'": ("hash", "step 1 of t"),
    "UPDATE agent_request SET headers_json = '{'": ("hash", "step 1 of t"),
    "DELETE FROM agent_request": ("request", "step 1 of t"),
    "DELETE FROM agent_step_journal WHERE step_index = 3": ("attempt", "attempt 1 of step 3 of t"),
    "DELETE FROM agent_step_attempt WHERE step_index = 0": ("attempt", "step 0 of t"),
    "DELETE FROM agent_task": ("task", "step 0 of t"),
}


@pytest.mark.parametrize("damage", WRONG)
def test_each_kind_of_damage_is_found_where_it_is(path: Path, damage: str, capsys: pytest.CaptureFixture[str]):
    kind, where = WRONG[damage]
    with closing(writer(path)) as connection:
        connection.execute(damage)
    assert main(["check", str(path), "--json"]) == 1
    found = [(finding["kind"], finding["where"]) for finding in json.loads(capsys.readouterr().out)["findings"]]
    assert (kind, where) in found


def test_a_garbage_page_is_a_finding_of_the_file(path: Path, capsys: pytest.CaptureFixture[str]):
    with path.open("r+b") as file:
        file.seek(os.path.getsize(path) - 8192 * 20)
        file.write(b"\xa5" * 8192)
    code = main(["check", str(path), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert code == 1
    assert {finding["kind"] for finding in document["findings"]} <= {"file", "cell", "key", "hash", "output"}


def test_every_step_of_a_long_journal_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = a_journal(tmp_path / "long.db")
    with closing(writer(path)) as connection:
        a_boot(connection)
        a_task(connection)
        for index in range(250):
            a_step(connection, index=index, effect="read_only", idempotency_key="f00")
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out.endswith("(stepkeeper): 250 findings.\n")


def test_a_check_past_its_budget_says_so(path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["check", str(path), "--budget", "0"]) == 3
    assert "time budget" in capsys.readouterr().err


def test_a_step_that_was_refused_before_it_was_written_is_no_finding(path: Path):
    path.unlink()

    @http_tool(effect="mutating")
    def send(text: str) -> Request:
        return Request("POST", "http://127.0.0.1:1/", headers={"X": text})

    @tool(effect="read_only")
    def look() -> int:
        return 1

    with Journal(path, agent="a", tools=[send, look]) as journal, journal.task("t") as task:
        with pytest.raises(UsageError):
            task.run(send, "two\nlines")
        task.run(look)
    assert main(["check", str(path)]) == 0
