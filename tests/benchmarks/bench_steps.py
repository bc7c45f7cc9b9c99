"""Steps a second of the runtime, beside a bare SQLite loop that does the same two writes with one fsync."""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from journal import Journal, Reply, tool

STEPS = 300
ROUNDS = 3
WHEN = "2026-11-29T00:00:00.000000Z"


def rows() -> list[tuple[str, float, str]]:
    """Both loops in turn, three times, on the same disk; the median of each, and their ratio."""
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as name:
        folder = Path(name)
        kinds: dict[str, Callable[[Path], float]] = {
            "bare SQLite loop, two writes, one fsync": bare,
            "mutating step, keyed for a day": lambda path: run_steps(path, keyed=timedelta(days=1)),
            "mutating step, status=": lambda path: run_steps(path, status=lambda call: None),
            "mutating step, neither (two fsyncs)": run_steps,
            "read_only step (no fsync)": lambda path: run_steps(path, effect="read_only"),
            "model step (no fsync)": ask_steps,
            "step served from the journal": serve_steps,
        }
        found: dict[str, list[float]] = {kind: [] for kind in kinds}
        for number in range(ROUNDS):
            for place, (kind, measure) in enumerate(kinds.items()):
                found[kind].append(measure(folder / f"{number}-{place}.db"))
    medians = {kind: statistics.median(values) for kind, values in found.items()}
    reference = medians["bare SQLite loop, two writes, one fsync"]
    ratio = medians["mutating step, keyed for a day"] / reference
    return [
        *((kind, value, "steps/s") for kind, value in medians.items()),
        ("keyed mutating step against the bare loop", ratio, "ratio"),
    ]


def bare(path: Path) -> float:
    """What anybody would write: insert pending and sync, then update to committed, one connection, no checks."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA page_size = 8192")
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute(
            "CREATE TABLE agent_step_journal (task_id TEXT NOT NULL, step_index INTEGER NOT NULL, tool_name TEXT,"
            " idempotency_key TEXT, arguments_json TEXT, status TEXT, output_json TEXT, created_at TEXT,"
            " updated_at TEXT, PRIMARY KEY (task_id, step_index))"
        )

        def step(index: int) -> None:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "INSERT INTO agent_step_journal VALUES ('t', ?, 'write', ?, ?, 'pending', NULL, ?, ?)",
                (index, "k" * 64, '{"path": "p"}', WHEN, WHEN),
            )
            connection.execute("COMMIT")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "UPDATE agent_step_journal SET status = 'committed', output_json = '\"p\"', updated_at = ?"
                " WHERE task_id = 't' AND step_index = ?",
                (WHEN, index),
            )
            connection.execute("COMMIT")

        return _rate(step)


def run_steps(path: Path, *, effect: Any = "mutating", **options: Any) -> float:
    """One Python tool, run again and again in one task."""

    @tool(effect=effect, **options)
    def write(path: str) -> str:
        return path

    with Journal(path, agent="bench", tools=[write]) as journal, journal.task("t") as task:
        return _rate(lambda index: task.run(write, "p"))


def ask_steps(path: Path) -> float:
    """One model that answers at once."""

    def model(question: str) -> Reply:
        return Reply(question, usage={"prompt_tokens": 1, "completion_tokens": 1})

    with Journal(path, agent="bench") as journal, journal.task("t") as task:
        return _rate(lambda index: task.ask(model, "q"))


def serve_steps(path: Path) -> float:
    """The same task once more: every step comes from the journal."""

    @tool(effect="read_only")
    def read(number: int) -> int:
        return number

    with Journal(path, agent="bench", tools=[read]) as journal:
        with journal.task("t") as task:
            for number in range(STEPS):
                task.run(read, number)
        with journal.task("t") as task:
            return _rate(lambda index: task.run(read, index))


def _rate(step: Callable[[int], object]) -> float:
    started = time.perf_counter()
    for index in range(STEPS):
        step(index)
    return STEPS / (time.perf_counter() - started)
