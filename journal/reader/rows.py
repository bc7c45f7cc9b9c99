"""Rows of steps, tasks, runs and boots as models: which columns each one reads, and how."""

from __future__ import annotations

import sqlite3
from typing import Final, get_args

from journal.models import Boot, Effect, Role, Run, Step, StepStatus, TaskRow, TaskStatus
from journal.reader.cells import Cells

_STATUSES: Final = get_args(StepStatus)
_EFFECTS: Final[tuple[Effect, ...]] = get_args(Effect)
_TASK_STATUSES: Final = get_args(TaskStatus)
_ROLES: Final = get_args(Role)

STEP: Final = (
    "task_id, step_index, tool_name, status, effect, idempotency_key, created_at, updated_at, args_hash, "
    "payload_sha256, key_generation, starts, hold_reason, hold_detail, next_attempt_at, boot, revision, transport, "
    "provider, profile_version, output_complete, reference, committed_boot, duration, arguments_bytes, output_bytes, "
    "alarm"
)
TASK: Final = (
    "task_id, status, handler, parent_id, agent, wait_kind, wait_step_task, wait_step_index, wait_hold, wait_detail, "
    "next_attempt_at, boot, created_at, updated_at, ended_at, conflict, cancel_reason, revision"
)
RUN: Final = "task_id, run, boot, started_at, ended_at, served_through, ended, revision"
BOOT: Final = (
    "boot, role, pid, host, os_boot_id, started_at, ended_at, ended, recovery_model_calls, clock_offset, revision"
)


def fetch(connection: sqlite3.Connection, sql: str, parameters: tuple[object, ...] = ()) -> list[Cells]:
    """All rows of a query, each cell still raw."""
    cursor = connection.execute(sql, parameters)
    names = [column[0] for column in cursor.description]
    return [Cells(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def step(cells: Cells) -> Step:
    """A step without payload; `payloads.fill` adds it."""
    return Step(
        task_id=cells.needed_text("task_id"),
        step_index=cells.needed_integer("step_index", -1),
        tool_name=cells.needed_text("tool_name"),
        status=cells.word("status", _STATUSES) or cells.needed_text("status"),
        effect=cells.choice("effect", _EFFECTS),
        idempotency_key=cells.text("idempotency_key"),
        arguments_json=None,
        output_json=None,
        created_at=cells.time("created_at"),
        updated_at=cells.time("updated_at"),
        args_hash=cells.text("args_hash"),
        payload_sha256=cells.text("payload_sha256"),
        key_generation=cells.integer("key_generation") or 0,
        starts=cells.integer("starts") or 0,
        hold_reason=cells.text("hold_reason"),
        hold_detail=cells.text("hold_detail"),
        next_attempt_at=cells.time("next_attempt_at"),
        boot=cells.integer("boot"),
        revision=cells.integer("revision") or 0,
        transport=cells.text("transport") or "python",
        provider=cells.text("provider"),
        profile_version=cells.text("profile_version"),
        output_complete=cells.flag("output_complete", True),
        reference=cells.text("reference"),
        committed_boot=cells.integer("committed_boot"),
        duration=cells.number("duration"),
        arguments_bytes=cells.integer("arguments_bytes"),
        output_bytes=cells.integer("output_bytes"),
        alarm=cells.text("alarm"),
        odd=cells.odd,
    )


def task(cells: Cells) -> TaskRow:
    """A task without its input, output and error."""
    return TaskRow(
        task_id=cells.needed_text("task_id"),
        status=cells.word("status", _TASK_STATUSES) or cells.needed_text("status"),
        handler=cells.text("handler"),
        parent_id=cells.text("parent_id"),
        agent=cells.text("agent"),
        wait_kind=cells.text("wait_kind"),
        wait_step_task=cells.text("wait_step_task"),
        wait_step_index=cells.integer("wait_step_index"),
        wait_hold=cells.text("wait_hold"),
        wait_detail=cells.text("wait_detail"),
        next_attempt_at=cells.time("next_attempt_at"),
        boot=cells.integer("boot"),
        created_at=cells.time("created_at"),
        updated_at=cells.time("updated_at"),
        ended_at=cells.time("ended_at"),
        conflict=cells.text("conflict"),
        cancel_reason=cells.text("cancel_reason"),
        revision=cells.integer("revision") or 0,
        steps=cells.integer("steps"),
        pending=cells.integer("pending"),
        odd=cells.odd,
    )


def run(cells: Cells) -> Run:
    """One opening of a task by a process."""
    return Run(
        task_id=cells.needed_text("task_id"),
        run=cells.needed_integer("run", 0),
        boot=cells.needed_integer("boot", 0),
        started_at=cells.time("started_at"),
        ended_at=cells.time("ended_at"),
        served_through=cells.needed_integer("served_through", -1),
        ended=cells.text("ended"),
        revision=cells.integer("revision") or 0,
    )


def boot(cells: Cells) -> Boot:
    """One taking of the writer's lock."""
    return Boot(
        boot=cells.needed_integer("boot", 0),
        role=cells.word("role", _ROLES) or cells.needed_text("role"),
        pid=cells.integer("pid"),
        host=cells.text("host"),
        os_boot_id=cells.text("os_boot_id"),
        started_at=cells.time("started_at"),
        ended_at=cells.time("ended_at"),
        ended=cells.text("ended"),
        recovery_model_calls=cells.integer("recovery_model_calls") or 0,
        clock_offset=cells.number("clock_offset") or 0.0,
        revision=cells.integer("revision") or 0,
    )
