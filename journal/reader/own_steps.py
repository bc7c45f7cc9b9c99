"""Steps of our own journals, and the frozen requests behind them."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from typing import Final

from journal import ids
from journal.models import Decision, FrozenRequest, Step
from journal.reader import history, payloads, rows
from journal.reader.dialects import STEP_TABLE
from journal.reader.payloads import Payload

# Payload columns that may stand in agent_body, with the column that names the body.
_REFERENCED: Final = {"arguments_json": "arguments_ref", "output_json": "output_ref"}
_SENDS: Final = "('replay', 'replay_as_new', 'approve')"


def steps(
    connection: sqlite3.Connection, task_id: str, *, after: int, limit: int, cap: int | None = None
) -> list[Step]:
    """Steps of a task past `after`, by index; with their payloads where `cap` says how much of each."""
    found = rows.fetch(
        connection,
        f"SELECT {rows.STEP} FROM {STEP_TABLE} WHERE task_id = ? AND step_index > ? ORDER BY step_index LIMIT ?",
        (task_id, after, limit),
    )
    listed = _decided(connection, [rows.step(cells) for cells in found])
    if cap is None:
        return listed
    return [step(connection, task_id, one.step_index, cap=cap) or one for one in listed]


def pending(connection: sqlite3.Connection, *, limit: int) -> list[Step]:
    """Pending steps of all tasks, least recently changed first."""
    found = rows.fetch(
        connection,
        f"SELECT {rows.STEP} FROM {STEP_TABLE} WHERE status = 'pending' "
        "ORDER BY updated_at, task_id, step_index LIMIT ?",
        (limit,),
    )
    return _decided(connection, [rows.step(cells) for cells in found])


def diverged(connection: sqlite3.Connection, *, limit: int) -> list[Step]:
    """The steps, settled or not, instead of which the code of a waiting task asks for others."""
    columns = ", ".join(f"s.{column}" for column in rows.STEP.split(", "))
    # Starting from the unfinished tasks: the steps of ended ones are never read.
    found = rows.fetch(
        connection,
        f"SELECT {columns} FROM agent_task AS t CROSS JOIN {STEP_TABLE} AS s ON s.task_id = t.task_id "
        "WHERE t.status = 'waiting' AND t.wait_kind = 'diverged' AND s.hold_reason = 'diverged' "
        "AND t.status IN ('queued', 'running', 'waiting') ORDER BY t.created_at, t.task_id LIMIT ?",
        (limit,),
    )
    return [rows.step(cells) for cells in found]


def step(connection: sqlite3.Connection, task_id: str, index: int, *, cap: int) -> Step | None:
    """One step with its payloads, bodies resolved and proven."""
    found = rows.fetch(
        connection,
        f"SELECT rowid AS number, arguments_ref, output_ref, {rows.STEP} FROM {STEP_TABLE} "
        "WHERE task_id = ? AND step_index = ?",
        (task_id, index),
    )
    if not found:
        return None
    cells = found[0]
    rowid = cells.integer("number")
    read: dict[str, Payload] = {}
    for column in ("arguments_json", "output_json", "error_json", "drift_json"):
        reference = cells.text(_REFERENCED[column]) if column in _REFERENCED else None
        if reference is None:
            read[column] = payloads.cell(connection, STEP_TABLE, column, rowid, cap=cap)
        else:
            read[column] = payloads.body(connection, reference, cap=cap)
    built = _decided(connection, [rows.step(cells)])[0]
    arguments, output = read["arguments_json"], read["output_json"]
    return replace(
        built,
        arguments_json=arguments.text,
        output_json=output.text,
        error_json=read["error_json"].text,
        drift_json=read["drift_json"].text,
        arguments_bytes=built.arguments_bytes if arguments.size is None else arguments.size,
        output_bytes=built.output_bytes if output.size is None else output.size,
        odd=(*built.odd, *(column for column, payload in read.items() if payload.odd)),
        previewed=tuple(column for column, payload in read.items() if payload.previewed),
    )


def _decided(connection: sqlite3.Connection, found: list[Step]) -> list[Step]:
    """The steps with the approvals that wait to be used."""
    tasks = {step.task_id for step in found if step.status == "pending"}
    if not tasks:
        return found
    waiting: dict[tuple[str, int | None], Decision] = {}
    # Starting from the pending steps keeps this a walk over two indexes; decisions of old steps are never read.
    for cells in rows.fetch(
        connection,
        "SELECT {columns} FROM {steps} AS s CROSS JOIN agent_decision AS d "
        "ON d.task_id = s.task_id AND d.step_index = s.step_index WHERE s.status = 'pending' "
        "AND d.kind IN {sends} AND d.outcome = 'applied' AND d.consumed_attempt IS NULL "
        "ORDER BY d.applied_at, d.rowid".format(
            columns=", ".join(f"d.{column}" for column in history.DECISION.split(", ")), steps=STEP_TABLE, sends=_SENDS
        ),
    ):
        decision = history.decision(cells)
        waiting[decision.task_id, decision.step_index] = decision
    return [
        replace(step, decision=waiting.get((step.task_id, step.step_index))) if step.status == "pending" else step
        for step in found
    ]


def profile_json(connection: sqlite3.Connection, task_id: str, index: int) -> str | None:
    """The provider profile frozen with the step."""
    row = connection.execute(
        f"SELECT profile_json FROM {STEP_TABLE} WHERE task_id = ? AND step_index = ?", (task_id, index)
    ).fetchone()
    return row[0] if row and isinstance(row[0], str) else None


def request(connection: sqlite3.Connection, task_id: str, index: int, *, cap: int) -> FrozenRequest | None:
    """The frozen request of the step's newest key; beyond `cap` only the beginning of its body."""
    found = rows.fetch(
        connection,
        "SELECT rowid AS number, method, url, headers_json, refs_json, sha256 FROM agent_request "
        "WHERE task_id = ? AND step_index = ? ORDER BY key_generation DESC LIMIT 1",
        (task_id, index),
    )
    if not found:
        return None
    cells = found[0]
    headers, refs = _lists(cells.text("headers_json"), 2, 2), _lists(cells.text("refs_json"), 5, 6)
    odd = [name for name, value in (("headers_json", headers), ("refs_json", refs)) if value is None]
    body, size = _bytes(connection, cells.integer("number"), cap)
    if body is None:
        odd.append("body")
    return FrozenRequest(
        method=cells.needed_text("method"),
        url=cells.needed_text("url"),
        headers=tuple((str(name), str(text)) for name, text in headers or ()),
        body=body or b"",
        refs=tuple(_ref(*one) for one in refs or ()),
        sha256=cells.needed_text("sha256"),
        body_bytes=size,
        odd=(*cells.odd, *odd),
    )


def sent_with(connection: sqlite3.Connection, task_id: str, index: int, attempt: int) -> dict[str, str]:
    """The marks of what an attempt was sent with, where those are others than the request was made with."""
    row = connection.execute(
        "SELECT value FROM journal_meta WHERE key = ?", (ids.sent_marks_key(task_id, index, attempt),)
    ).fetchone()
    try:
        value = json.loads(row[0]) if row else {}
    except (ValueError, TypeError, RecursionError):
        return {}
    return {str(name): str(mark) for name, mark in value.items()} if isinstance(value, dict) else {}


def _ref(
    part: object, start: object, end: object, name: object, quoting: object, mark: object = ""
) -> tuple[str, int, int, str, str, str]:
    return str(part), _int(start), _int(end), str(name), str(quoting), str(mark)


def _lists(text: str | None, shortest: int, longest: int) -> list[list[object]] | None:
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, list):
        return None
    if any(not isinstance(item, list) or not shortest <= len(item) <= longest for item in value):
        return None
    return value


def _int(value: object) -> int:
    return value if isinstance(value, int) else -1


def _bytes(connection: sqlite3.Connection, rowid: int | None, cap: int) -> tuple[bytes | None, int | None]:
    if rowid is None:
        return None, None
    try:
        blob = connection.blobopen("agent_request", "body", rowid, readonly=True)
    except sqlite3.OperationalError:
        return None, None
    with blob:
        size = len(blob)
        return blob.read(size if size <= cap else min(payloads.PREVIEW, cap)), size
