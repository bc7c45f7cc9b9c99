"""Our own journals: the questions about tasks, steps and all that happened to them.

A question about many tasks or steps is one statement. No statement reads more of a table than it answers with.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Final, TypeVar

from journal import ids
from journal.models import Attempt, Boot, Decision, Evidence, FrozenRequest, ModelCall, Run, Step, TaskRow
from journal.reader import payloads
from journal.reader.dialects import STEP_TABLE
from journal.reader.paging import Page, make_cursor, parse_cursor
from journal.reader.payloads import Payload
from journal.reader.rows import columns_of, fetch_rows, read_model
from journal.reader.untrusted_row import UntrustedRow

T = TypeVar("T", Attempt, Evidence, Decision, ModelCall)
P = TypeVar("P")
# One step, a range of steps, or all steps of a task.
Steps = int | range | None
# A step's task and index; the steps of a task from an index to another.
Place = tuple[str, int]
Span = tuple[str, int, int]

# A count past this is shown as "10,000+": counting further would read the whole table.
COUNT_CAP: Final = 10_000
HISTORY_LIMIT: Final = 5_000
# So many ids or places stand in one statement: SQLite takes 32,766 values.
MOST_AT_ONCE: Final = 1_000
_NO_END: Final = 2**63 - 1
_UNFINISHED: Final = "status IN ('queued', 'running', 'waiting')"
# The highest index is found in one step down the key. A step refused before it was written leaves its index unused.
_COUNTED_STEPS: Final = f"(SELECT max(step_index) + 1 FROM {STEP_TABLE} AS s WHERE s.task_id = t.task_id) AS steps"
_COUNTED_PENDING: Final = (
    f"(SELECT count(*) FROM {STEP_TABLE} AS s WHERE s.task_id = t.task_id AND s.status = 'pending') AS pending"
)
_COUNTED_TASK: Final = f"t.rowid AS number, {_COUNTED_STEPS}, {_COUNTED_PENDING}, {columns_of(TaskRow, of='t')}"
_TASK: Final = f"SELECT {_COUNTED_TASK} FROM agent_task AS t"
_STEP: Final = f"SELECT {columns_of(Step)} FROM {STEP_TABLE}"
_COUNTED: Final = {
    "tasks": "agent_task",
    "unfinished": f"agent_task WHERE {_UNFINISHED}",
    "steps": STEP_TABLE,
    "pending": f"{STEP_TABLE} WHERE status = 'pending'",
    "attempts": "agent_step_attempt",
    "model_calls": "agent_model_call",
    "decisions": "agent_decision",
    "boots": "agent_boot",
}
# Payload columns that may stand in agent_body, with the column that names the body.
_REFERENCED: Final = {"arguments_json": "arguments_ref", "output_json": "output_ref"}


def list_tasks(
    connection: sqlite3.Connection, *, after: str | None, limit: int, status: str | None, text: str | None
) -> Page[TaskRow]:
    """One page of tasks, newest first. A task keeps its place while it runs."""
    wheres, values = ["1"], list[object]()
    if after is not None:
        wheres.append("t.rowid < ?")
        values.extend(parse_cursor(after, int))
    if status is not None:
        wheres.append("t.status = ?")
        values.append(status)
    if text is not None:
        wheres.append("(instr(lower(t.task_id), lower(?)) OR instr(lower(coalesce(t.handler, '')), lower(?)))")
        values.extend((text, text))
    sql = f"{_TASK} WHERE {' AND '.join(wheres)} ORDER BY t.rowid DESC LIMIT ?"
    found = fetch_rows(connection, sql, (*values, limit + 1))
    tasks = tuple(read_model(TaskRow, row) for row in found[:limit])
    return Page(tasks, make_cursor(found[limit - 1].integer("number") or 0) if len(found) > limit else None)


def find_task(connection: sqlite3.Connection, task_id: str, *, cap: int | None) -> TaskRow | None:
    """One task with its error and, where `cap` says how much of each, its input and output."""
    found = fetch_rows(connection, f"{_TASK} WHERE t.task_id = ?", (task_id,))
    return _with_payloads(connection, found[0], cap=cap) if found else None


def find_tasks(connection: sqlite3.Connection, task_ids: Collection[str]) -> list[TaskRow]:
    """The tasks of these ids that there are, with their errors, without input and output."""
    found = chain.from_iterable(
        fetch_rows(connection, f"{_TASK} WHERE t.task_id IN ({_signs(some)})", tuple(some)) for some in _parts(task_ids)
    )
    return [_with_payloads(connection, row, cap=None) for row in found]


def _with_payloads(connection: sqlite3.Connection, row: UntrustedRow, *, cap: int | None) -> TaskRow:
    rowid, task = row.integer("number"), read_model(TaskRow, row)
    read: dict[str, Payload] = {}
    if cap is not None:
        references = "SELECT input_ref, output_ref FROM agent_task WHERE rowid = ?"
        bodies = connection.execute(references, (rowid,)).fetchone()
        for column, sha256 in zip(("input_json", "output_json"), bodies, strict=True):
            read[column] = (
                payloads.read_body(connection, sha256, cap=cap)
                if isinstance(sha256, str)
                else payloads.read_cell(connection, "agent_task", column, rowid, cap=cap)
            )
    if cap is not None or task.status == "failed":
        error_cap = payloads.CAP if cap is None else cap
        read["error_json"] = payloads.read_cell(connection, "agent_task", "error_json", rowid, cap=error_cap)
    return replace(
        task,
        input_json=read.get("input_json", payloads.NOTHING).text,
        output_json=read.get("output_json", payloads.NOTHING).text,
        error_json=read.get("error_json", payloads.NOTHING).text,
        odd=(*task.odd, *(column for column, payload in read.items() if payload.odd)),
        previewed=tuple(column for column, payload in read.items() if payload.previewed),
    )


def list_branches(connection: sqlite3.Connection, task_ids: Collection[str], *, limit: int) -> list[TaskRow]:
    """The branches of each of these tasks, oldest first, `limit` of them at most."""
    found = fetch_rows(
        connection,
        f"{_TASK} WHERE t.parent_id IN ({_signs(task_ids)}) ORDER BY t.rowid LIMIT ?",
        (*task_ids, limit),
    )
    return [read_model(TaskRow, row) for row in found]


def list_runs(connection: sqlite3.Connection, task_ids: Collection[str], *, limit: int) -> list[Run]:
    """The newest `limit` openings of each of these tasks, oldest of them first."""
    newest = "run > coalesce((SELECT max(run) FROM agent_task_run AS n WHERE n.task_id = r.task_id), 0) - ?"
    found = fetch_rows(
        connection,
        f"SELECT {columns_of(Run)} FROM agent_task_run AS r WHERE task_id IN ({_signs(task_ids)}) AND {newest} "
        "ORDER BY task_id, run",
        (*task_ids, limit),
    )
    return [read_model(Run, row) for row in found]


def list_boots(connection: sqlite3.Connection, *, limit: int) -> list[Boot]:
    """The newest takings of the writer's lock, oldest of them first."""
    sql = f"SELECT {columns_of(Boot)} FROM agent_boot ORDER BY boot DESC LIMIT ?"
    return [read_model(Boot, row) for row in reversed(fetch_rows(connection, sql, (limit,)))]


def find_next_due(connection: sqlite3.Connection) -> datetime | None:
    """The earliest time at which something of an unfinished task is due; reads only what is unfinished.

    A branch runs with its root: only its steps have times of their own.
    """
    found = fetch_rows(
        connection,
        "SELECT min(due) AS due FROM ("
        f"SELECT t.next_attempt_at AS due FROM agent_task AS t WHERE t.{_UNFINISHED} AND t.status = 'waiting'"
        " AND t.parent_id IS NULL"
        f" UNION ALL SELECT s.next_attempt_at FROM {STEP_TABLE} AS s"
        f" CROSS JOIN agent_task AS t ON t.task_id = s.task_id WHERE s.status = 'pending' AND t.{_UNFINISHED})",
    )
    return found[0].time("due")


def count_rows(connection: sqlite3.Connection) -> dict[str, int]:
    """How many rows there are of each thing; COUNT_CAP + 1 stands for more than COUNT_CAP."""
    return {
        name: int(
            connection.execute(f"SELECT count(*) FROM (SELECT 1 FROM {source} LIMIT {COUNT_CAP + 1})").fetchone()[0]
        )
        for name, source in _COUNTED.items()
    }


def list_steps(
    connection: sqlite3.Connection, task_id: str, *, after: int, limit: int, cap: int | None = None
) -> list[Step]:
    """Steps of a task past `after`, by index; with their payloads where `cap` says how much of each."""
    sql = f"{_STEP} WHERE task_id = ? AND step_index > ? ORDER BY step_index LIMIT ?"
    found = fetch_rows(connection, sql, (task_id, after, limit))
    listed = _with_approvals(connection, [read_model(Step, row) for row in found])
    if cap is None:
        return listed
    return [find_step(connection, task_id, one.step_index, cap=cap) or one for one in listed]


def find_start_of_newest(connection: sqlite3.Connection, task_id: str, *, limit: int) -> int:
    """The index past which a task's newest `limit` steps begin; -1 where there are no more."""
    sql = f"SELECT step_index FROM {STEP_TABLE} WHERE task_id = ? ORDER BY step_index DESC LIMIT 1 OFFSET ?"
    found = fetch_rows(connection, sql, (task_id, limit))
    return max(-1, found[0].needed_integer("step_index", -1)) if found else -1


def find_steps(connection: sqlite3.Connection, places: Collection[Place]) -> list[Step]:
    """The steps at these places that there are, without payloads."""
    found = _fetch_in(connection, Step, STEP_TABLE, spans_of(places))
    return _with_approvals(connection, [read_model(Step, row) for row in found])


def list_first_steps(connection: sqlite3.Connection, task_ids: Collection[str], *, limit: int) -> dict[str, list[Step]]:
    """The first `limit` steps of each of these tasks, without payloads, by task."""
    # The index of the step past the last that is wanted is found in the key alone.
    beyond = (
        f"SELECT step_index FROM {STEP_TABLE} AS n WHERE n.task_id = t.task_id AND step_index > -1 ORDER BY step_index"
    )
    found = fetch_rows(
        connection,
        f"SELECT {columns_of(Step, of='s')} FROM agent_task AS t CROSS JOIN {STEP_TABLE} AS s "
        f"ON s.task_id = t.task_id AND s.step_index > -1 "
        f"AND s.step_index < coalesce(({beyond} LIMIT 1 OFFSET ?), {_NO_END}) "
        f"WHERE t.task_id IN ({_signs(task_ids)}) ORDER BY s.task_id, s.step_index",
        (limit, *task_ids),
    )
    by_task: dict[str, list[Step]] = {}
    for step in _with_approvals(connection, [read_model(Step, row) for row in found]):
        by_task.setdefault(step.task_id, []).append(step)
    return by_task


def list_pending(connection: sqlite3.Connection, *, after: str | None = None, limit: int) -> Page[Step]:
    """One page of the pending steps of all tasks, least recently changed first.

    A step that changes between two pages moves to the end: it is met again, never missed.
    """
    seek = "" if after is None else " AND (updated_at, task_id, step_index) > (?, ?, ?)"
    key = () if after is None else parse_cursor(after, str, str, int)
    found = fetch_rows(
        connection,
        f"{_STEP} WHERE status = 'pending'{seek} ORDER BY updated_at, task_id, step_index LIMIT ?",
        (*key, limit + 1),
    )
    steps = _with_approvals(connection, [read_model(Step, row) for row in found[:limit]])
    if len(found) <= limit:
        return Page(tuple(steps))
    last = (found[limit - 1].raw(name) for name in ("updated_at", "task_id", "step_index"))
    return Page(tuple(steps), make_cursor(*(cell if isinstance(cell, str | int) else "" for cell in last)))


def list_diverged(connection: sqlite3.Connection, *, limit: int) -> list[Step]:
    """The steps, settled or not, instead of which the code of a waiting task asks for others."""
    # Starting from the unfinished tasks: the steps of ended tasks are never read.
    found = fetch_rows(
        connection,
        f"SELECT {columns_of(Step, of='s')} FROM agent_task AS t CROSS JOIN {STEP_TABLE} AS s ON s.task_id = t.task_id "
        "WHERE t.status = 'waiting' AND t.wait_kind = 'diverged' AND s.hold_reason = 'diverged' "
        f"AND t.{_UNFINISHED} ORDER BY t.created_at, t.task_id LIMIT ?",
        (limit,),
    )
    return [read_model(Step, row) for row in found]


def find_step(connection: sqlite3.Connection, task_id: str, index: int, *, cap: int) -> Step | None:
    """One step with its payloads, bodies resolved and proven."""
    found = fetch_rows(
        connection,
        f"SELECT rowid AS number, arguments_ref, output_ref, {columns_of(Step)} FROM {STEP_TABLE} "
        "WHERE task_id = ? AND step_index = ?",
        (task_id, index),
    )
    if not found:
        return None
    row = found[0]
    rowid = row.integer("number")
    read: dict[str, Payload] = {}
    for column in ("arguments_json", "output_json", "error_json", "drift_json"):
        reference = row.text(_REFERENCED[column]) if column in _REFERENCED else None
        if reference is None:
            read[column] = payloads.read_cell(connection, STEP_TABLE, column, rowid, cap=cap)
        else:
            read[column] = payloads.read_body(connection, reference, cap=cap)
    step = _with_approvals(connection, [read_model(Step, row)])[0]
    arguments, output = read["arguments_json"], read["output_json"]
    return replace(
        step,
        arguments_json=arguments.text,
        output_json=output.text,
        error_json=read["error_json"].text,
        drift_json=read["drift_json"].text,
        arguments_bytes=step.arguments_bytes if arguments.size is None else arguments.size,
        output_bytes=step.output_bytes if output.size is None else output.size,
        odd=(*step.odd, *(column for column, payload in read.items() if payload.odd)),
        previewed=tuple(column for column, payload in read.items() if payload.previewed),
    )


def _with_approvals(connection: sqlite3.Connection, steps: list[Step]) -> list[Step]:
    """The steps with the approvals that wait to be used."""
    places = [(step.task_id, step.step_index) for step in steps if step.status == "pending"]
    if not places:
        return steps
    unused = "kind = 'replay' AND outcome = 'applied' AND consumed_attempt IS NULL"
    found = find_decisions(connection, spans_of(places), where=f"WHERE {unused}")
    waiting = {(decision.task_id, decision.step_index): decision for decision in found}
    return [
        replace(step, decision=waiting.get((step.task_id, step.step_index))) if step.status == "pending" else step
        for step in steps
    ]


def find_profiles(connection: sqlite3.Connection, places: Collection[Place]) -> dict[Place, str]:
    """The provider profiles frozen with these steps, as JSON text."""
    found = _fetch_in(connection, Step, STEP_TABLE, spans_of(places), "", "profile_json")
    return {
        (row.needed_text("task_id"), row.needed_integer("step_index", -1)): text
        for row in found
        if isinstance(text := row.raw("profile_json"), str)
    }


def find_hosts(connection: sqlite3.Connection, places: Collection[Place]) -> dict[Place, str]:
    """The hosts that the newest frozen requests of these steps go to; a reference in one stays a reference."""
    hosts: dict[Place, str] = {}
    for some in _parts(places):
        sql = (
            f"WITH wanted (at_task, at_step) AS (VALUES {', '.join(['(?, ?)'] * len(some))}) "
            "SELECT task_id, step_index, substr(url, 1, 2000) AS url FROM wanted "
            "CROSS JOIN agent_request ON task_id = at_task AND step_index = at_step ORDER BY key_generation"
        )
        for row in fetch_rows(connection, sql, tuple(chain.from_iterable(some))):
            place = (row.needed_text("task_id"), row.needed_integer("step_index", -1))
            hosts[place] = (row.text("url") or "").partition("://")[2].partition("/")[0].partition("?")[0]
    return hosts


def find_request(connection: sqlite3.Connection, task_id: str, index: int, *, cap: int) -> FrozenRequest | None:
    """The frozen request of the step's newest key; beyond `cap` only the beginning of its body."""
    found = fetch_rows(
        connection,
        "SELECT rowid AS number, method, url, headers_json, refs_json, sha256 FROM agent_request "
        "WHERE task_id = ? AND step_index = ? ORDER BY key_generation DESC LIMIT 1",
        (task_id, index),
    )
    if not found:
        return None
    row = found[0]
    headers, refs = _lists(row.text("headers_json"), 2, 2), _lists(row.text("refs_json"), 5, 6)
    odd = [name for name, value in (("headers_json", headers), ("refs_json", refs)) if value is None]
    body, size = payloads.read_bytes(connection, "agent_request", "body", row.integer("number"), cap=cap)
    if body is None:
        odd.append("body")
    return FrozenRequest(
        method=row.needed_text("method"),
        url=row.needed_text("url"),
        headers=tuple((str(name), str(text)) for name, text in headers or ()),
        body=body or b"",
        refs=tuple(_ref(*one) for one in refs or ()),
        sha256=row.needed_text("sha256"),
        body_bytes=size,
        odd=(*row.odd, *odd),
    )


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


def find_sent_marks(connection: sqlite3.Connection, task_id: str, index: int, attempt: int) -> dict[str, str]:
    """The marks of the variables that an attempt was sent with, where the request was made with others."""
    row = connection.execute(
        "SELECT value FROM journal_meta WHERE key = ?", (ids.sent_marks_key(task_id, index, attempt),)
    ).fetchone()
    try:
        value = json.loads(row[0]) if row else {}
    except (ValueError, TypeError, RecursionError):
        return {}
    return {str(name): str(mark) for name, mark in value.items()} if isinstance(value, dict) else {}


def read_stored_bytes(connection: sqlite3.Connection, task_id: str, index: int, name: payloads.Name) -> bytes | None:
    """All bytes of one payload of a step, or of its frozen request's body; None where there is none."""
    if name == "body":
        sql = (
            "SELECT CAST(body AS BLOB) FROM agent_request WHERE task_id = ? AND step_index = ? "
            "ORDER BY key_generation DESC LIMIT 1"
        )
    else:
        sql = (
            f"SELECT CAST(CASE WHEN {name}_ref IS NULL THEN {name}_json ELSE body END AS BLOB) FROM {STEP_TABLE} "
            f"LEFT JOIN agent_body ON sha256 = {name}_ref WHERE task_id = ? AND step_index = ?"
        )
    return payloads.read_whole(connection, sql, (task_id, index), name)


def list_attempts(connection: sqlite3.Connection, task_id: str, steps: Steps) -> list[Attempt]:
    """Dispatches of one step (with output) or of several (without), in order."""
    return _list_history(connection, Attempt, "agent_step_attempt", "step_index, attempt", task_id, steps)


def list_evidence(connection: sqlite3.Connection, task_id: str, steps: Steps) -> list[Evidence]:
    """Status answers about one step (with output) or about several (without), in order."""
    return _list_history(connection, Evidence, "agent_evidence", "id", task_id, steps)


def list_decisions(connection: sqlite3.Connection, task_id: str, steps: Steps) -> list[Decision]:
    """Decisions about one step (with output) or about a task and all its steps (without), in order of application."""
    return _list_history(connection, Decision, "agent_decision", "applied_at, rowid", task_id, steps)


def list_model_calls(connection: sqlite3.Connection, task_id: str, steps: Steps) -> list[ModelCall]:
    """Provider responses of one step (with the usage as reported) or of several (without), in order."""
    order, payload = "step_index, call", "raw_usage"
    return _list_history(connection, ModelCall, "agent_model_call", order, task_id, steps, payload=payload)


def find_decision(connection: sqlite3.Connection, message_id: str) -> Decision | None:
    """The decision with this message id."""
    sql = f"SELECT {columns_of(Decision)} FROM agent_decision WHERE message_id = ?"
    found = fetch_rows(connection, sql, (message_id,))
    return read_model(Decision, found[0]) if found else None


def _list_history(
    connection: sqlite3.Connection,
    model: type[T],
    table: str,
    order: str,
    task_id: str,
    steps: Steps,
    *,
    payload: str = "output_json",
) -> list[T]:
    where, end = f"FROM {table} WHERE task_id = ?", f"ORDER BY {order} LIMIT {HISTORY_LIMIT}"
    if steps is None:
        found = fetch_rows(connection, f"SELECT {columns_of(model)} {where} {end}", (task_id,))
    elif isinstance(steps, range):
        some = f"SELECT {columns_of(model)} {where} AND step_index >= ? AND step_index < ? {end}"
        found = fetch_rows(connection, some, (task_id, steps.start, steps.stop))
    else:
        where += f" AND step_index = ? {end}"
        try:
            found = fetch_rows(connection, f"SELECT {columns_of(model, payload)} {where}", (task_id, steps))
        except sqlite3.DataError:  # one payload is over the cell limit: show the rest
            found = fetch_rows(connection, f"SELECT {columns_of(model)} {where}", (task_id, steps))
            for row in found:
                row.mark(payload)
    return [read_model(model, row) for row in found]


def find_attempts(connection: sqlite3.Connection, spans: Collection[Span]) -> list[Attempt]:
    """The dispatches of the steps in these spans, without output, in order."""
    found = _fetch_in(connection, Attempt, "agent_step_attempt", spans, "ORDER BY task_id, step_index, attempt")
    return [read_model(Attempt, row) for row in found]


def find_evidence(connection: sqlite3.Connection, spans: Collection[Span]) -> list[Evidence]:
    """The status answers about the steps in these spans, without output, in order."""
    found = _fetch_in(connection, Evidence, "agent_evidence", spans, "ORDER BY id")
    return [read_model(Evidence, row) for row in found]


def find_decisions(connection: sqlite3.Connection, spans: Collection[Span], *, where: str = "") -> list[Decision]:
    """The decisions about the steps in these spans, without output, in order of application."""
    order = f"{where} ORDER BY applied_at, agent_decision.rowid"
    return [read_model(Decision, row) for row in _fetch_in(connection, Decision, "agent_decision", spans, order)]


def find_model_calls(connection: sqlite3.Connection, spans: Collection[Span]) -> list[ModelCall]:
    """The provider responses of the steps in these spans, in order."""
    found = _fetch_in(connection, ModelCall, "agent_model_call", spans, "ORDER BY task_id, step_index, call")
    return [read_model(ModelCall, row) for row in found]


def spans_of(places: Collection[Place]) -> list[Span]:
    """Each place as a span of one step."""
    return [(task_id, index, index) for task_id, index in dict.fromkeys(places)]


def _fetch_in(
    connection: sqlite3.Connection, model: type, table: str, spans: Collection[Span], rest: str = "", *more: str
) -> list[UntrustedRow]:
    """The rows of a table about the steps in these spans, each span sought by the table's own index."""
    found: list[UntrustedRow] = []
    for some in _parts(spans):
        # A comparison with a list of pairs would walk through the table; a join from the list seeks each.
        sql = (
            f"WITH wanted (at_task, first, last) AS (VALUES {', '.join(['(?, ?, ?)'] * len(some))}) "
            f"SELECT {columns_of(model, *more)} FROM wanted "
            f"CROSS JOIN {table} ON task_id = at_task AND step_index BETWEEN first AND last {rest}"
        )
        found += fetch_rows(connection, sql, tuple(chain.from_iterable(some)))
    return found


def _parts(items: Collection[P]) -> list[list[P]]:
    listed = list(dict.fromkeys(items))
    return [listed[start : start + MOST_AT_ONCE] for start in range(0, len(listed), MOST_AT_ONCE)]


def _signs(items: Collection[object]) -> str:
    return ", ".join("?" * len(items))
