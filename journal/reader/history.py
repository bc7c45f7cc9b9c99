"""Rows of what happened to a step as models: attempts, evidence, decisions, model calls."""

from __future__ import annotations

import sqlite3
from typing import Final, get_args

from journal.models import Answer, Attempt, Decision, DecisionKind, Evidence, Kind, ModelCall, Verdict
from journal.reader.cells import Cells
from journal.reader.rows import fetch

_VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_ANSWERS: Final[tuple[Answer, ...]] = get_args(Answer)
_DECISIONS: Final[tuple[DecisionKind, ...]] = get_args(DecisionKind)
_CALL_STATES: Final = ("open", "exact", "partial", "unknown")

ATTEMPT: Final = (
    "task_id, step_index, attempt, boot, started_at, started_boottime, os_boot_id, ended_at, verdict, kind, "
    "http_status, detail, retry_after_at, key_generation, decision_id, duration, revision"
)
EVIDENCE: Final = (
    "id, task_id, step_index, attempt, asked_at, asked_boottime, os_boot_id, answer, source, http_status, detail, "
    "in_flight, revision"
)
DECISION: Final = (
    "message_id, task_id, step_index, kind, actor, reason, key, payload_sha256, dispatches, created_at, expires_at, "
    "applied_at, outcome, reference, consumed_attempt, revision"
)
MODEL_CALL: Final = (
    "id, task_id, step_index, call, boot, started_at, ended_at, state, api, model, request_model, response_id, "
    "in_uncached, in_cache_read, in_cache_write, out_visible, out_reasoning, service_tier, flags, revision"
)


# Of one step, of a range of steps, or of all steps of a task.
Place = int | range | None


def attempt(cells: Cells) -> Attempt:
    """One dispatch. A verdict that is no verdict proves nothing: it reads as unknown."""
    return Attempt(
        task_id=cells.needed_text("task_id"),
        step_index=cells.needed_integer("step_index", -1),
        attempt=cells.needed_integer("attempt", 0),
        boot=cells.needed_integer("boot", 0),
        started_at=cells.time("started_at"),
        started_boottime=cells.number("started_boottime"),
        os_boot_id=cells.text("os_boot_id"),
        ended_at=cells.time("ended_at"),
        verdict=cells.choice("verdict", _VERDICTS, "unknown"),
        kind=cells.choice("kind", _KINDS, "other"),
        http_status=cells.integer("http_status"),
        detail=cells.text("detail") or "",
        retry_after_at=cells.time("retry_after_at"),
        output_json=cells.text("output_json"),
        key_generation=cells.integer("key_generation") or 0,
        decision_id=cells.text("decision_id"),
        duration=cells.number("duration"),
        odd=cells.odd,
    )


def evidence(cells: Cells) -> Evidence:
    """One status query's answer; a word that is no answer reads as unknown."""
    return Evidence(
        task_id=cells.needed_text("task_id"),
        step_index=cells.needed_integer("step_index", -1),
        attempt=cells.needed_integer("attempt", 0),
        asked_at=cells.time("asked_at"),
        asked_boottime=cells.number("asked_boottime"),
        os_boot_id=cells.text("os_boot_id"),
        answer=cells.choice("answer", _ANSWERS, "unknown") or "unknown",
        source=cells.text("source") or "",
        http_status=cells.integer("http_status"),
        detail=cells.text("detail") or "",
        output_json=cells.text("output_json"),
        in_flight=cells.flag("in_flight"),
        id=cells.integer("id") or 0,
        odd=cells.odd,
    )


def decision(cells: Cells) -> Decision:
    """What an operator said about one step."""
    return Decision(
        message_id=cells.needed_text("message_id"),
        task_id=cells.needed_text("task_id"),
        step_index=cells.integer("step_index"),
        kind=cells.word("kind", _DECISIONS) or cells.needed_text("kind"),  # type: ignore[arg-type]
        actor=cells.needed_text("actor"),
        reason=cells.needed_text("reason"),
        key=cells.text("key"),
        payload_sha256=cells.text("payload_sha256"),
        dispatches=cells.integer("dispatches"),
        created_at=cells.time("created_at"),
        expires_at=cells.time("expires_at"),
        applied_at=cells.time("applied_at"),
        outcome=cells.text("outcome") or "",
        output_json=cells.text("output_json"),
        reference=cells.text("reference"),
        consumed_attempt=cells.integer("consumed_attempt"),
        odd=cells.odd,
    )


def model_call(cells: Cells) -> ModelCall:
    """One provider response of a model step."""
    return ModelCall(
        task_id=cells.needed_text("task_id"),
        step_index=cells.needed_integer("step_index", -1),
        call=cells.needed_integer("call", 0),
        boot=cells.needed_integer("boot", 0),
        started_at=cells.time("started_at"),
        ended_at=cells.time("ended_at"),
        state=cells.word("state", _CALL_STATES) or "unknown",
        api=cells.text("api"),
        model=cells.text("model"),
        request_model=cells.text("request_model"),
        response_id=cells.text("response_id"),
        raw_usage=cells.text("raw_usage"),
        in_uncached=cells.integer("in_uncached"),
        in_cache_read=cells.integer("in_cache_read"),
        in_cache_write=cells.integer("in_cache_write"),
        out_visible=cells.integer("out_visible"),
        out_reasoning=cells.integer("out_reasoning"),
        service_tier=cells.text("service_tier"),
        flags=cells.text("flags") or "",
        id=cells.integer("id") or 0,
        revision=cells.integer("revision") or 0,
        odd=cells.odd,
    )


def attempts(connection: sqlite3.Connection, task_id: str, index: Place, limit: int) -> list[Attempt]:
    """Dispatches of a step (with output) or of all steps of a task (without), in order."""
    order = "step_index, attempt"
    return [attempt(cells) for cells in _of(connection, "agent_step_attempt", ATTEMPT, order, task_id, index, limit)]


def all_evidence(connection: sqlite3.Connection, task_id: str, index: Place, limit: int) -> list[Evidence]:
    """Status answers about a step (with output) or about all steps of a task (without), in order."""
    return [evidence(cells) for cells in _of(connection, "agent_evidence", EVIDENCE, "id", task_id, index, limit)]


def decisions(connection: sqlite3.Connection, task_id: str, index: Place, limit: int) -> list[Decision]:
    """Decisions about a step (with output) or about a task and all its steps (without), in order of application."""
    order = "applied_at, rowid"
    return [decision(cells) for cells in _of(connection, "agent_decision", DECISION, order, task_id, index, limit)]


def model_calls(connection: sqlite3.Connection, task_id: str, index: Place, limit: int) -> list[ModelCall]:
    """Provider responses of a step (with the usage as reported) or of all steps of a task (without), in order."""
    order, raw = "step_index, call", "raw_usage"
    found = _of(connection, "agent_model_call", MODEL_CALL, order, task_id, index, limit, payload=raw)
    return [model_call(cells) for cells in found]


def by_message(connection: sqlite3.Connection, message_id: str) -> Decision | None:
    """The decision with this message id."""
    found = fetch(connection, f"SELECT {DECISION} FROM agent_decision WHERE message_id = ?", (message_id,))
    return decision(found[0]) if found else None


def _of(
    connection: sqlite3.Connection,
    table: str,
    columns: str,
    order: str,
    task_id: str,
    index: Place,
    limit: int,
    *,
    payload: str = "output_json",
) -> list[Cells]:
    if index is None:
        sql = f"SELECT {columns} FROM {table} WHERE task_id = ? ORDER BY {order} LIMIT ?"
        return fetch(connection, sql, (task_id, limit))
    if isinstance(index, range):
        sql = f"SELECT {columns} FROM {table} WHERE task_id = ? AND step_index >= ? AND step_index < ?"
        return fetch(connection, f"{sql} ORDER BY {order} LIMIT ?", (task_id, index.start, index.stop, limit))
    where = f"FROM {table} WHERE task_id = ? AND step_index = ? ORDER BY {order} LIMIT ?"
    try:
        return fetch(connection, f"SELECT {columns}, {payload} {where}", (task_id, index, limit))
    except sqlite3.DataError:  # one output is over the cell limit: show the rest
        found = fetch(connection, f"SELECT {columns} {where}", (task_id, index, limit))
        for cells in found:
            cells.mark(payload)
        return found
