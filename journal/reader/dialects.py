"""The dialects of other makers' journals: which column holds which field of a step.

A dialect is one dataclass: each field named like a field of `models.Step` holds the SQL expression that yields it.
"""

from __future__ import annotations

from dataclasses import dataclass

STEP_TABLE = "agent_step_journal"
OURS = "stepkeeper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How to read a step table of another maker. `needs` are the columns that identify it."""

    name: str
    needs: frozenset[str]
    replayable: bool = True
    reason: str = ""
    task_id: str = "task_id"
    step_index: str = "step_index"
    tool_name: str = "tool_name"
    status: str = "status"
    idempotency_key: str = "NULL"
    arguments_json: str = "NULL"
    args_hash: str = "NULL"
    output_json: str = "NULL"
    created_at: str = "NULL"
    updated_at: str = "NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimal(Dialect):
    """The nine columns of the design's table and nothing else."""

    name: str = "minimal"
    needs: frozenset[str] = frozenset(
        {
            "task_id",
            "step_index",
            "tool_name",
            "idempotency_key",
            "arguments_json",
            "status",
            "output_json",
            "created_at",
            "updated_at",
        }
    )
    idempotency_key: str = "idempotency_key"
    arguments_json: str = "arguments_json"
    output_json: str = "output_json"
    created_at: str = "created_at"
    updated_at: str = "updated_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class HashOnly(Dialect):
    """A hash of the arguments instead of the arguments: shown, never replayable."""

    name: str = "hash_only"
    needs: frozenset[str] = frozenset(
        {"task_id", "step_index", "tool_name", "args_hash", "status", "output", "created_at"}
    )
    replayable: bool = False
    reason: str = "the payload was never stored, only its hash"
    args_hash: str = "args_hash"
    output_json: str = "output"
    created_at: str = "created_at"


# The first whose columns are all there.
FOREIGN: tuple[Dialect, ...] = (Minimal(), HashOnly())


def of(columns: frozenset[str]) -> Dialect | None:
    """The dialect of a step table with these columns; None where none fits."""
    return next((dialect for dialect in FOREIGN if dialect.needs <= columns), None)
