"""The searches of `check`: each is a function that yields findings."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from journal import clock
from journal.hold_reasons import describe_doubt
from journal.http import frozen_request
from journal.ids import sha256_hex, step_key
from journal.models import Step
from journal.reader import native
from journal.reader.dialects import STEP_TABLE
from journal.reader.rows import fetch_rows
from journal.store.high_water import HighWater, find_doubt, identify_file
from journal.store.transaction import highest_revision

# Payloads are read whole here, one at a time: a hash of half a payload proves nothing.
_WHOLE = 1 << 30
_PROBLEMS_SHOWN = 20
_BOOT_SHIFT = 32


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: a word, where, and a sentence."""

    kind: str
    where: str
    sentence: str


Question = Callable[[sqlite3.Connection], Iterator[Finding]]


def of_the_file(connection: sqlite3.Connection) -> Iterator[Finding]:
    """SQLite's own check of every page."""
    for (line,) in connection.execute(f"PRAGMA quick_check({_PROBLEMS_SHOWN})"):
        if line != "ok":
            yield Finding("file", "file", str(line))


def of_the_origin(connection: sqlite3.Connection, path: Path, mark: HighWater | None) -> Iterator[Finding]:
    """Whether the file is the one its last writer left. `mark` was read before the connection was opened."""
    meta = {str(key): str(value) for key, value in connection.execute("SELECT key, value FROM journal_meta")}
    doubt = meta.get("doubt") or find_doubt(
        mark,
        uuid=meta.get("uuid", ""),
        file=identify_file(path),
        known_as=meta.get("file", ""),
        revision=highest_revision(connection),
        os_boot_id=clock.os_boot_id(),
    )
    if doubt:
        yield Finding("restored", "file", f"{describe_doubt(doubt)} Its agent sends nothing until a person accepts it.")


Place = tuple[object, object]


def of_steps(connection: sqlite3.Connection, after: Place | None, *, limit: int) -> tuple[list[Finding], Place | None]:
    """Key, hashes, outputs and cells of up to `limit` steps past a place, and the place to go on from."""
    where = "1" if after is None else "(task_id, step_index) > (?, ?)"
    found = fetch_rows(
        connection,
        f"SELECT task_id, step_index FROM {STEP_TABLE} WHERE {where} ORDER BY task_id, step_index LIMIT ?",
        (*(after or ()), limit),
    )
    findings: list[Finding] = []
    for cells in found:
        task_id, index = cells.needed_text("task_id"), cells.needed_integer("step_index", -1)
        name = f"step {index} of {task_id}"
        step = None if cells.odd else native.find_step(connection, task_id, index, cap=_WHOLE)
        if step is None:
            findings.append(Finding("cell", name, f"its key cannot be read ({', '.join(cells.odd)})."))
        else:
            findings += _of_step(connection, step, name)
    if len(found) < limit:
        return findings, None
    return findings, (found[-1].raw("task_id"), found[-1].raw("step_index"))


def _of_step(connection: sqlite3.Connection, step: Step, where: str) -> Iterator[Finding]:
    for column in step.odd:
        yield Finding("cell", where, f"{column} holds what it should not.")
    text = step.arguments_json
    if text is None:
        yield Finding("payload", where, "its payload is missing.")
    else:
        if step_key(step.task_id, step.step_index, text, generation=step.key_generation) != step.idempotency_key:
            yield Finding("key", where, "its key is not the one its payload makes.")
        if sha256_hex(text) != step.args_hash:
            yield Finding("hash", where, "args_hash is not the hash of its arguments.")
        if step.transport == "python" and sha256_hex(text) != step.payload_sha256:
            yield Finding("hash", where, "payload_sha256 is not the hash of its arguments.")
    if step.transport == "http":
        yield from _of_request(connection, step, where)
    if step.status == "committed" and not _is_json(step.output_json):
        yield Finding("output", where, "committed, but it has no output that can be read.")


def _of_request(connection: sqlite3.Connection, step: Step, where: str) -> Iterator[Finding]:
    request = native.find_request(connection, step.task_id, step.step_index, cap=_WHOLE)
    if request is None:
        yield Finding("request", where, "its frozen request is missing.")
        return
    digest = frozen_request.digest_request(request.method, request.url, request.headers, request.body, request.refs)
    if request.odd or not digest == request.sha256 == step.payload_sha256:
        yield Finding("hash", where, "payload_sha256 is not the hash of its frozen request.")


def _is_json(text: str | None) -> bool:
    try:
        json.loads(text or "")
    except (ValueError, RecursionError):
        return False
    return True


def _by_query(kind: str, sentence: str, sql: str) -> Question:
    def ask(connection: sqlite3.Connection) -> Iterator[Finding]:
        for row in connection.execute(sql):
            yield Finding(kind, str(row[0]), sentence)

    return ask


_STEP_NAME = "'step ' || s.step_index || ' of ' || s.task_id"
_ATTEMPT_NAME = "'attempt ' || a.attempt || ' of step ' || a.step_index || ' of ' || a.task_id"
_TRACES = " UNION ALL ".join(
    f"SELECT task_id, step_index FROM {table}" for table in ("agent_request", "agent_model_call", "agent_evidence")
)
_REVISED = " UNION ALL ".join(
    f"SELECT '{table} row ' || rowid AS name, revision FROM {table}"
    for table in ("agent_task", STEP_TABLE, "agent_step_attempt", "agent_task_run", "agent_evidence")
)

QUESTIONS: tuple[Question, ...] = (
    _by_query(
        "attempt",
        "dispatched without an intent on disk.",
        f"SELECT {_ATTEMPT_NAME} FROM agent_step_attempt AS a LEFT JOIN {STEP_TABLE} AS s "
        "USING (task_id, step_index) WHERE s.task_id IS NULL",
    ),
    _by_query(
        "attempt",
        "stamped before its intent: the clock went back, or the row was made by hand.",
        f"SELECT {_ATTEMPT_NAME} FROM agent_step_attempt AS a JOIN {STEP_TABLE} AS s USING (task_id, step_index) "
        "WHERE a.started_at < s.created_at",
    ),
    _by_query(
        "attempt",
        "committed as a mutating step, but no dispatch of it is on disk.",
        f"SELECT {_STEP_NAME} FROM {STEP_TABLE} AS s WHERE s.status = 'committed' AND s.effect = 'mutating' "
        "AND NOT EXISTS (SELECT 1 FROM agent_step_attempt AS a WHERE a.task_id = s.task_id "
        "AND a.step_index = s.step_index) AND NOT EXISTS (SELECT 1 FROM agent_decision AS d "
        "WHERE d.task_id = s.task_id AND d.step_index = s.step_index AND d.kind = 'mark_committed')",
    ),
    _by_query(
        "task",
        "completed, but a step of it is pending.",
        f"SELECT DISTINCT 'task ' || t.task_id FROM {STEP_TABLE} AS s JOIN agent_task AS t USING (task_id) "
        "WHERE s.status = 'pending' AND t.status = 'completed'",
    ),
    _by_query(
        "task",
        "it belongs to no task.",
        f"SELECT {_STEP_NAME} FROM {STEP_TABLE} AS s LEFT JOIN agent_task AS t USING (task_id) WHERE t.task_id IS NULL",
    ),
    # An index alone proves nothing: a step that was refused before anything was written leaves it unused.
    _by_query(
        "order",
        "a request, an answer or evidence of it is on disk, but the step is not.",
        f"SELECT DISTINCT {_STEP_NAME} FROM ({_TRACES}) AS s LEFT JOIN {STEP_TABLE} AS o USING (task_id, step_index) "
        "WHERE o.task_id IS NULL",
    ),
    _by_query(
        "order",
        "its revision belongs to a boot that is not on record.",
        f"SELECT r.name FROM ({_REVISED}) AS r LEFT JOIN agent_boot AS b ON b.boot = r.revision >> {_BOOT_SHIFT} "
        "WHERE b.boot IS NULL",
    ),
    _by_query(
        "order",
        "committed in a boot later than the one that wrote it last.",
        f"SELECT {_STEP_NAME} FROM {STEP_TABLE} AS s WHERE s.committed_boot > s.revision >> {_BOOT_SHIFT}",
    ),
)
