"""Reading our own journals: tasks, steps and what happened to them, in pages and within a budget."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from journal.errors import JournalUnreadable, UsageError
from journal.reader import COUNT_CAP, Reader
from tests.journal.rows import BOOT, WHEN, a_boot, a_journal, a_step, a_task, an_attempt, insert


@pytest.fixture
def path(path: Path) -> Path:
    return a_journal(path)


def _decision(connection: sqlite3.Connection, message_id: str, **cells: object) -> None:
    row: dict[str, object] = {
        "message_id": message_id, "task_id": "t", "step_index": 0, "kind": "replay", "actor": "ann", "reason": "seen",
        "created_at": WHEN, "applied_at": WHEN, "outcome": "applied", "revision": BOOT + 9,
    }  # fmt: skip
    insert(connection, "agent_decision", **{**row, **cells})


def test_tasks_come_newest_first_and_page_without_loss_while_new_ones_arrive(path: Path, agent: sqlite3.Connection):
    for number in range(25):
        a_task(agent, f"t{number}", revision=BOOT + number)
    reader = Reader(path)
    first = reader.tasks(limit=10)
    a_task(agent, "late", revision=BOOT + 99)
    second = reader.tasks(limit=10, after=first.next_cursor)
    third = reader.tasks(limit=10, after=second.next_cursor)
    seen = [task.task_id for page in (first, second, third) for task in page.items]
    assert seen == [f"t{number}" for number in reversed(range(25))]
    assert third.next_cursor is None


def test_tasks_are_filtered_by_status_and_by_text_taken_literally(path: Path, agent: sqlite3.Connection):
    a_task(agent, "Mail/100%", status="waiting")
    a_task(agent, "mail/1000", handler="other")
    assert [task.task_id for task in Reader(path).tasks(status="waiting").items] == ["Mail/100%"]
    assert [task.task_id for task in Reader(path).tasks(text="mail/100%").items] == ["Mail/100%"]
    assert [task.task_id for task in Reader(path).tasks(text="OTHER").items] == ["mail/1000"]


def test_the_next_due_time_is_the_earliest_of_all_unfinished_tasks(path: Path, agent: sqlite3.Connection):
    assert Reader(path).next_due() is None
    a_task(agent, "oldest", status="waiting", next_attempt_at="2026-11-29T12:00:00.000000Z")
    for number in range(600):
        a_task(agent, f"t{number}", status="waiting", next_attempt_at="2026-11-30T12:00:00.000000Z")
    a_task(agent, "ended", status="cancelled")
    a_step(agent, "ended", 0, status="pending", next_attempt_at="2026-11-28T12:00:00.000000Z")
    # A branch runs with its root, whenever it was to run itself.
    a_task(agent, "oldest/b", parent_id="oldest", status="waiting", next_attempt_at="2026-11-28T12:00:00.000000Z")
    assert Reader(path).next_due() == datetime(2026, 11, 29, 12, tzinfo=UTC)
    a_task(agent, "crashed", status="running")
    a_step(agent, "crashed", 0, status="pending", next_attempt_at="2026-11-29T11:00:00.000000Z")
    assert Reader(path).next_due() == datetime(2026, 11, 29, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    "cursor", ["", "x", "W10", "WyJhIl0", "WzEsMl0", "WzFlOTld", "é", "WzkyMjMzNzIwMzY4NTQ3NzU4MDhd"]
)
def test_a_tampered_cursor_is_a_usage_error(path: Path, cursor: str):
    with pytest.raises(UsageError):
        Reader(path).tasks(after=cursor)


def test_a_task_counts_its_steps_and_its_pending_ones(path: Path, agent: sqlite3.Connection):
    a_task(agent, input_json='{"number": 42}', parent_id="p")
    for index in range(3):
        a_step(agent, index=index, status="pending" if index == 2 else "committed")
    task = Reader(path).task("t")
    assert task is not None
    assert (task.steps, task.pending, task.input_json, task.parent_id) == (3, 1, '{"number": 42}', "p")
    assert [child.task_id for child in Reader(path).children("p")] == ["t"]
    assert Reader(path).task("unknown") is None


def test_a_task_is_read_without_input_and_output_where_only_its_error_is_wanted(path: Path, agent: sqlite3.Connection):
    a_task(agent, status="failed", input_json="{}", output_json="[]", error_json='{"type": "ValueError"}')
    task = Reader(path).task("t", cap=None)
    assert task is not None
    assert (task.input_json, task.output_json, task.error_json) == (None, None, '{"type": "ValueError"}')


@pytest.mark.parametrize("task_id", ["a/b?c#d", "", "x\ny", "tab\t", "👩‍🚀", "' OR 1=1 --", "a\0b"])
def test_task_ids_hold_any_characters(path: Path, agent: sqlite3.Connection, task_id: str):
    a_task(agent, task_id)
    a_step(agent, task_id)
    reader = Reader(path)
    assert reader.task(task_id) is not None
    assert [step.task_id for step in reader.steps(task_id)] == [task_id]


def test_ids_no_journal_can_hold_find_nothing(path: Path):
    reader = Reader(path)
    assert reader.task("\ud800") is None
    assert reader.step("t", 2**63) is None
    assert reader.steps("t", after=-(2**64)) == []
    assert reader.attempts("t", 2**63) == []
    assert reader.by_decision("\udfff") is None


def test_lists_carry_no_payload_and_a_step_carries_all_of_it(path: Path, agent: sqlite3.Connection):
    a_task(agent)
    a_step(agent, arguments={"title": "Größe"}, error_json='{"type": "E"}', profile_json='{"name": "forge"}')
    reader = Reader(path)
    listed, whole = reader.steps("t")[0], reader.step("t", 0)
    assert (listed.arguments_json, listed.output_json, listed.arguments_bytes) == (None, None, 28)
    assert whole is not None
    assert json.loads(whole.arguments_json or "") == {"title": "Größe"}
    assert (whole.output_json, whole.error_json, whole.odd) == ('{"ok": true}', '{"type": "E"}', ())
    assert reader.profile_json("t", 0) == '{"name": "forge"}'


def test_steps_page_by_index(path: Path, agent: sqlite3.Connection):
    for index in range(7):
        a_step(agent, index=index)
    assert [step.step_index for step in Reader(path).steps("t", after=2, limit=3)] == [3, 4, 5]


def test_what_happened_to_a_step_is_told_in_order(path: Path, agent: sqlite3.Connection):
    a_boot(agent)
    a_task(agent)
    a_step(agent, status="pending")
    an_attempt(agent, attempt=1, verdict="unknown", kind="gateway", http_status=504)
    an_attempt(agent, attempt=2, verdict=None, kind=None, ended_at=None, output_json="{}")
    insert(
        agent, "agent_evidence", task_id="t", step_index=0, attempt=2, asked_at=WHEN, asked_boottime=1.0,
        os_boot_id="os", answer="exists", source="status", output_json="{}", revision=BOOT + 8,
    )  # fmt: skip
    insert(
        agent, "agent_model_call", task_id="t", step_index=0, call=1, boot=1, started_at=WHEN, state="exact",
        in_uncached=0, raw_usage="{}", revision=BOOT + 8,
    )  # fmt: skip
    insert(agent, "agent_task_run", task_id="t", run=1, boot=1, started_at=WHEN, served_through=4, revision=BOOT + 8)
    reader = Reader(path)
    assert [(a.attempt, a.verdict, a.kind) for a in reader.attempts("t")] == [
        (1, "unknown", "gateway"),
        (2, None, None),
    ]
    assert [a.output_json for a in reader.attempts("t")] == [None, None]
    assert [a.output_json for a in reader.attempts("t", 0)] == [None, "{}"]
    assert [(e.answer, e.output_json) for e in reader.evidence("t", 0)] == [("exists", "{}")]
    call = reader.model_calls("t", 0)[0]
    assert (call.in_uncached, call.out_visible, call.raw_usage) == (0, None, "{}")
    assert [(run.run, run.served_through) for run in reader.runs("t")] == [(1, 4)]
    assert [(boot.boot, boot.pid) for boot in reader.boots()] == [(1, 4242)]


def test_a_pending_step_shows_the_approval_that_waits_to_be_used(path: Path, agent: sqlite3.Connection):
    a_task(agent)
    a_step(agent, status="pending")
    _decision(agent, "m1", outcome="refused", outcome_detail="too late")
    assert Reader(path).pending()[0].decision is None
    _decision(agent, "m2", dispatches=1)
    for step in (Reader(path).pending()[0], Reader(path).steps("t")[0], Reader(path).step("t", 0)):
        assert step is not None
        assert step.decision is not None
        assert (step.decision.message_id, step.decision.dispatches) == ("m2", 1)
    agent.execute("UPDATE agent_decision SET consumed_attempt = 2 WHERE message_id = 'm2'")
    assert Reader(path).pending()[0].decision is None
    assert [decision.message_id for decision in Reader(path).decisions("t")] == ["m1", "m2"]
    found = Reader(path).by_decision("m1")
    assert found is not None
    assert (found.outcome, found.outcome_detail) == ("refused", "too late")


def test_a_frozen_request_is_read_byte_for_byte(path: Path, agent: sqlite3.Connection):
    body = bytes(range(256))
    row: dict[str, object] = {
        "task_id": "t", "step_index": 0, "key_generation": 0, "method": "POST", "url": "https://forge.example/pulls",
        "headers_json": '[["Authorization", "${TOKEN}"]]', "refs_json": '[["header:0", 0, 8, "TOKEN", "raw"]]',
        "body": body, "sha256": "abc", "created_at": WHEN,
    }  # fmt: skip
    insert(agent, "agent_request", **row)
    request = Reader(path).request("t", 0)
    assert request is not None
    assert (request.body, request.body_bytes, request.odd) == (body, 256, ())
    assert request.headers == (("Authorization", "${TOKEN}"),)
    assert request.refs == (("header:0", 0, 8, "TOKEN", "raw", ""),)
    cut = Reader(path).request("t", 0, cap=10)
    assert cut is not None
    assert (cut.body, cut.body_bytes) == (body[:10], 256)
    agent.execute("UPDATE agent_request SET headers_json = '{', key_generation = 1")
    broken = Reader(path).request("t", 0)
    assert broken is not None
    assert (broken.headers, broken.odd) == ((), ("headers_json",))
    assert Reader(path).request("t", 1) is None


def test_counts_stop_past_their_cap(path: Path, agent: sqlite3.Connection):
    agent.execute("BEGIN")
    for number in range(COUNT_CAP + 5):
        a_step(agent, index=number, status="committed" if number else "pending")
    agent.execute("COMMIT")
    counts = Reader(path).counts()
    assert (counts["steps"], counts["pending"], counts["tasks"]) == (COUNT_CAP + 1, 1, 0)


def test_a_question_past_its_budget_is_given_up(path: Path, agent: sqlite3.Connection):
    agent.execute("BEGIN")
    for number in range(3000):
        a_task(agent, f"t{number}")
    agent.execute("COMMIT")
    with pytest.raises(JournalUnreadable) as caught:
        Reader(path, budget=0.0).tasks(text="nowhere")
    assert caught.value.kind == "too_slow"


def test_steps_of_a_million_are_found_by_key_and_never_by_scanning(path: Path, agent: sqlite3.Connection):
    statements: list[str] = []
    real = sqlite3.connect

    def tracing(*args: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = real(*args, **options)  # type: ignore[call-overload]
        connection.set_trace_callback(statements.append)
        return connection

    a_task(agent)
    a_step(agent, status="pending")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", tracing)
        reader = Reader(path)
        reader.steps("t")
        reader.step("t", 0)
        reader.pending()
        reader.attempts("t")
        reader.evidence("t")
        reader.decisions("t")
        reader.model_calls("t")
        reader.runs("t")
        reader.children("t")
        reader.changes(0)
    asked = [sql for sql in statements if sql.startswith("SELECT") and "agent_" in sql and "agent_boot" not in sql]
    plans = [
        (sql, str(row[3])) for sql in asked if "pragma" not in sql for row in agent.execute(f"EXPLAIN QUERY PLAN {sql}")
    ]
    assert len(asked) > 15
    assert [plan for plan in plans if plan[1].startswith("SCAN") and "USING" not in plan[1]] == []
