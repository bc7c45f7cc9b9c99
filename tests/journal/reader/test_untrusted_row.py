"""What a cell of a journal is read as: a whole body, the beginning of one, a time, or a mark that it is odd."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from journal.ids import sha256_hex
from journal.reader import Reader
from tests.journal.rows import a_journal, a_step, an_attempt, insert


@pytest.fixture
def path(path: Path) -> Path:
    return a_journal(path)


def test_a_cell_of_20_mb_shows_its_beginning_and_its_size(path: Path, agent: sqlite3.Connection):
    a_step(agent, output_json='"' + "é" * 10_000_000 + '"')
    step = Reader(path).step("t", 0)
    assert step is not None
    assert step.output_bytes == 20_000_002
    assert step.previewed == ("output_json",)
    assert step.output_json is not None
    assert set(step.output_json[1:]) == {"é"}
    assert len(step.output_json.encode()) <= 65_536
    assert step.odd == ()


def test_a_body_of_its_own_row_is_resolved_and_proven(path: Path, agent: sqlite3.Connection):
    body = json.dumps({"text": "x" * 9000})
    insert(agent, "agent_body", sha256=sha256_hex(body), body=body)
    a_step(agent, arguments_json='{"stub": true}', arguments_ref=sha256_hex(body))
    step = Reader(path).step("t", 0)
    assert step is not None
    assert (step.arguments_json, step.odd, step.arguments_bytes) == (body, (), len(body))


@pytest.mark.parametrize("damage", ["UPDATE agent_body SET body = '{}'", "DELETE FROM agent_body"])
def test_a_body_that_is_not_what_its_name_says_is_odd(path: Path, agent: sqlite3.Connection, damage: str):
    insert(agent, "agent_body", sha256=sha256_hex("body"), body="body")
    a_step(agent, output_ref=sha256_hex("body"))
    agent.execute(damage)
    step = Reader(path).step("t", 0)
    assert step is not None
    assert step.odd == ("output_json",)


def test_a_bad_cell_is_one_marked_cell(path: Path, agent: sqlite3.Connection):
    agent.execute("PRAGMA ignore_check_constraints = 1")
    bad: dict[str, object] = {
        "tool_name": b"\xff\xfe", "effect": "magic", "status": "done", "created_at": "2026-13-01", "boot": "six",
        "duration": "long", "starts": 1.5, "next_attempt_at": b"\x00", "arguments_bytes": "many",
    }  # fmt: skip
    for index, (column, value) in enumerate(bad.items()):
        a_step(agent, index=index)
        agent.execute(f"UPDATE agent_step_journal SET {column} = ? WHERE step_index = ?", (value, index))
    a_step(agent, index=99)
    agent.execute("UPDATE agent_step_journal SET hold_reason = CAST(x'80' AS TEXT) WHERE step_index = 99")
    steps = Reader(path).steps("t")
    assert [step.odd for step in steps] == [(column,) for column in bad] + [("hold_reason",)]
    assert [step.tool_name for step in steps[1:]] == ["open_issue"] * 9
    assert steps[-1].hold_reason == "\N{REPLACEMENT CHARACTER}"
    assert Reader(path).step("t", 0) is not None


@pytest.mark.parametrize(
    "cell",
    [1793527200, 1793527200.0, 1793527200000, 1793527200000000, 1793527200000000000, "1793527200", "1793527200.000",
     "2026-11-01 10:00:00", "2026-11-01T10:00:00Z", "2026-11-01T15:00:00+05:00"],
)  # fmt: skip
def test_times_of_many_forms_are_the_same_time(path: Path, agent: sqlite3.Connection, cell: object):
    a_step(agent, updated_at=cell)
    step = Reader(path).steps("t")[0]
    assert (step.updated_at, step.odd) == (datetime(2026, 11, 1, 10, tzinfo=UTC), ())


@pytest.mark.parametrize("cell", ["", "soon", "2026-13-01", "10000-01-01T00:00:00Z", float("inf"), -(2**63), b"2026"])
def test_what_is_no_time_is_marked(path: Path, agent: sqlite3.Connection, cell: object):
    a_step(agent, updated_at=cell)
    step = Reader(path).steps("t")[0]
    assert (step.updated_at, step.odd) == (None, ("updated_at",))


def test_an_attempt_output_over_the_limit_leaves_the_rest_of_the_attempts(path: Path, agent: sqlite3.Connection):
    an_attempt(agent, attempt=1, output_json="x" * 2_000_000)
    found = Reader(path).attempts("t", 0)
    assert [(a.attempt, a.output_json, a.odd) for a in found] == [(1, None, ("output_json",))]
