"""Statements on model calls: one row per provider response, opened before the call."""

from __future__ import annotations

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
    """Record the usage that the answer reported."""
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
