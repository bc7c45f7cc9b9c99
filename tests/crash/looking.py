"""Looking at a journal from outside while its agent lives or lies dead: waiting for a condition, never for a time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

# Far more than anything here takes; it is only reached by a test that fails.
_DEADLINE_SECONDS = 120.0


def until(condition: Callable[[], T], what: str = "it", *, seconds: float = _DEADLINE_SECONDS) -> T:
    """The first truthy value of `condition`; fails the test, naming `what`, when there is none for a long time."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen in time"
        time.sleep(0.01)
    return found


def rows(journal: Path, sql: str, *parameters: object) -> list[sqlite3.Row]:
    """What one query finds, read-only; nothing while the journal or its tables are not there yet."""
    if not journal.exists():
        return []
    with closing(sqlite3.connect(f"{journal.as_uri()}?mode=ro", uri=True, timeout=5)) as connection:
        connection.row_factory = sqlite3.Row
        try:
            return connection.execute(sql, parameters).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error) or "unable to open" in str(error):
                return []
            raise


def steps(journal: Path, task_id: str) -> list[sqlite3.Row]:
    """The task's steps in order."""
    return rows(journal, "SELECT * FROM agent_step_journal WHERE task_id = ? ORDER BY step_index", task_id)


def step(journal: Path, task_id: str, index: int) -> sqlite3.Row:
    """One step that is there."""
    [found] = [one for one in steps(journal, task_id) if one["step_index"] == index]
    return found


def attempts(journal: Path, task_id: str, index: int) -> list[sqlite3.Row]:
    """The step's attempts in order."""
    return rows(
        journal,
        "SELECT * FROM agent_step_attempt WHERE task_id = ? AND step_index = ? ORDER BY attempt",
        task_id,
        index,
    )


def task_status(journal: Path, task_id: str) -> str | None:
    """The task's stored status, or None."""
    found = rows(journal, "SELECT status FROM agent_task WHERE task_id = ?", task_id)
    return found[0]["status"] if found else None


def is_in_flight(journal: Path, task_id: str, index: int) -> bool:
    """Whether the step's newest attempt is a mark without an outcome."""
    found = attempts(journal, task_id, index)
    return bool(found) and found[-1]["verdict"] is None


def hold_reason(journal: Path, task_id: str, index: int) -> str | None:
    """Why the step is held, or None."""
    return next((one["hold_reason"] for one in steps(journal, task_id) if one["step_index"] == index), None)
