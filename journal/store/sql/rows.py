"""Rows of our own schema as models, for the writer. (Readers of strange files convert cell by cell: `reader`.)"""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime

from journal import clock
from journal.models import Attempt, Decision, Evidence, FrozenRequest, Step, TaskRow


def step(row: sqlite3.Row) -> Step:
    """A row of agent_step_journal with its bodies resolved by the query of `steps.find`."""
    return Step(
        task_id=row["task_id"],
        step_index=row["step_index"],
        tool_name=row["tool_name"],
        status=row["status"],
        effect=row["effect"],
        idempotency_key=row["idempotency_key"],
        arguments_json=row["arguments_json"],
        output_json=row["output_json"],
        created_at=_time(row["created_at"]),
        updated_at=_time(row["updated_at"]),
        args_hash=row["args_hash"],
        payload_sha256=row["payload_sha256"],
        key_generation=row["key_generation"],
        starts=row["starts"],
        hold_reason=row["hold_reason"],
        hold_detail=row["hold_detail"],
        next_attempt_at=_time(row["next_attempt_at"]),
        boot=row["boot"],
        revision=row["revision"],
        transport=row["transport"],
        provider=row["provider"],
        profile_version=row["profile_version"],
        output_complete=bool(row["output_complete"]),
        error_json=row["error_json"],
        drift_json=row["drift_json"],
        reference=row["reference"],
        committed_boot=row["committed_boot"],
        duration=row["duration"],
        arguments_bytes=row["arguments_bytes"],
        output_bytes=row["output_bytes"],
        alarm=row["alarm"],
    )


def attempt(row: sqlite3.Row) -> Attempt:
    """A row of agent_step_attempt."""
    return Attempt(
        task_id=row["task_id"],
        step_index=row["step_index"],
        attempt=row["attempt"],
        boot=row["boot"],
        started_at=_time(row["started_at"]),
        started_boottime=row["started_boottime"],
        os_boot_id=row["os_boot_id"],
        ended_at=_time(row["ended_at"]),
        verdict=row["verdict"],
        kind=row["kind"],
        http_status=row["http_status"],
        detail=row["detail"],
        retry_after_at=_time(row["retry_after_at"]),
        output_json=row["output_json"],
        key_generation=row["key_generation"],
        decision_id=row["decision_id"],
        duration=row["duration"],
    )


def evidence(row: sqlite3.Row) -> Evidence:
    """A row of agent_evidence."""
    return Evidence(
        task_id=row["task_id"],
        step_index=row["step_index"],
        attempt=row["attempt"],
        asked_at=_time(row["asked_at"]),
        asked_boottime=row["asked_boottime"],
        os_boot_id=row["os_boot_id"],
        answer=row["answer"],
        source=row["source"],
        http_status=row["http_status"],
        detail=row["detail"],
        output_json=row["output_json"],
        in_flight=bool(row["in_flight"]),
        id=row["id"],
    )


def decision(row: sqlite3.Row) -> Decision:
    """A row of agent_decision."""
    return Decision(
        message_id=row["message_id"],
        task_id=row["task_id"],
        step_index=row["step_index"],
        kind=row["kind"],
        actor=row["actor"],
        reason=row["reason"],
        key=row["key"],
        payload_sha256=row["payload_sha256"],
        dispatches=row["dispatches"],
        created_at=_time(row["created_at"]),
        expires_at=_time(row["expires_at"]),
        applied_at=_time(row["applied_at"]),
        outcome=row["outcome"],
        output_json=row["output_json"],
        reference=row["reference"],
        consumed_attempt=row["consumed_attempt"],
    )


def request(row: sqlite3.Row) -> FrozenRequest:
    """A row of agent_request."""
    return FrozenRequest(
        method=row["method"],
        url=row["url"],
        headers=tuple((name, text) for name, text in json.loads(row["headers_json"])),
        body=bytes(row["body"]),
        refs=tuple(
            (part, start, end, name, quoting, "".join(mark))
            for part, start, end, name, quoting, *mark in json.loads(row["refs_json"])
        ),
        sha256=row["sha256"],
    )


def task(row: sqlite3.Row) -> TaskRow:
    """A row of agent_task."""
    return TaskRow(
        task_id=row["task_id"],
        status=row["status"],
        handler=row["handler"],
        input_json=row["input_json"],
        parent_id=row["parent_id"],
        agent=row["agent"],
        wait_kind=row["wait_kind"],
        wait_step_task=row["wait_step_task"],
        wait_step_index=row["wait_step_index"],
        wait_hold=row["wait_hold"],
        wait_detail=row["wait_detail"],
        output_json=row["output_json"],
        error_json=row["error_json"],
        next_attempt_at=_time(row["next_attempt_at"]),
        boot=row["boot"],
        created_at=_time(row["created_at"]),
        updated_at=_time(row["updated_at"]),
        ended_at=_time(row["ended_at"]),
        conflict=row["conflict"],
        cancel_reason=row["cancel_reason"],
        revision=row["revision"],
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else clock.parse(text)
