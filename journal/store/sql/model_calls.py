"""Statements on model calls: one row per provider response, opened before the call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from journal.store.transaction import Transaction
    from journal.usage import TokenUsage


def open_call(tx: Transaction, task_id: str, step_index: int) -> int:
    """Open a row before the call; a kill leaves it open, and the next start of the step marks it unknown."""
    tx.execute(
        "UPDATE agent_model_call SET state = 'unknown', flags = 'the process ended before the answer was recorded',"
        " revision = ? WHERE task_id = ? AND step_index = ? AND state = 'open'",
        (tx.revision(), task_id, step_index),
    )
    row = tx.one(
        "SELECT coalesce(max(call), 0) + 1 AS n FROM agent_model_call WHERE task_id = ? AND step_index = ?",
        (task_id, step_index),
    )
    assert row is not None
    tx.execute(
        "INSERT INTO agent_model_call (task_id, step_index, call, boot, started_at, state, revision)"
        " VALUES (?, ?, ?, ?, ?, 'open', ?)",
        (task_id, step_index, row["n"], tx.boot, tx.now, tx.revision()),
    )
    return int(row["n"])


def close_call(
    tx: Transaction,
    task_id: str,
    step_index: int,
    call: int,
    usage: TokenUsage,
    *,
    raw_usage: str | None,
    model: str | None = None,
    request_model: str | None = None,
    response_id: str | None = None,
    service_tier: str | None = None,
) -> None:
    """Record the usage that the answer reported.

    A gateway's cache may give out the response of an earlier call again. Whether such a call was billed is not known,
    so its usage is partial.
    """
    if response_id and usage.state == "exact" and _is_known(tx, task_id, step_index, call, response_id):
        usage = replace(usage, state="partial", flags="another call has the same response id")
    tx.execute(
        "UPDATE agent_model_call SET ended_at = ?, state = ?, api = ?, model = ?, request_model = ?, response_id = ?,"
        " raw_usage = ?, in_uncached = ?, in_cache_read = ?, in_cache_write = ?, out_visible = ?, out_reasoning = ?,"
        " service_tier = ?, flags = ?, revision = ? WHERE task_id = ? AND step_index = ? AND call = ?",
        (
            tx.now,
            usage.state,
            usage.api,
            model,
            request_model,
            response_id,
            raw_usage,
            usage.in_uncached,
            usage.in_cache_read,
            usage.in_cache_write,
            usage.out_visible,
            usage.out_reasoning,
            service_tier,
            usage.flags,
            tx.revision(),
            task_id,
            step_index,
            call,
        ),
    )


def _is_known(tx: Transaction, task_id: str, step_index: int, call: int, response_id: str) -> bool:
    return (
        tx.one(
            "SELECT 1 FROM agent_model_call WHERE response_id = ?"
            " AND (task_id, step_index, call) IS NOT (?, ?, ?) LIMIT 1",
            (response_id, task_id, step_index, call),
        )
        is not None
    )
