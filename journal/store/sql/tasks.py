"""Statements on tasks and their runs. One statement per function; each takes the open transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from journal import clock
from journal.errors import TaskCancelled, TaskConflict, UsageError
from journal.models import TaskRow, WaitReason
from journal.store.sql import blobs
from journal.store.sql.rows import read_row

if TYPE_CHECKING:
    from datetime import datetime

    from journal.store.transaction import Transaction

_COLUMNS = (
    "task_id, handler, coalesce((SELECT body FROM agent_body b WHERE b.sha256 = input_ref), input_json) AS input_json,"
    " agent, parent_id, status, wait_kind, wait_step_task, wait_step_index, wait_hold, wait_detail,"
    " coalesce((SELECT body FROM agent_body b WHERE b.sha256 = output_ref), output_json) AS output_json,"
    " error_json, next_attempt_at, boot, conflict, conflict_at, cancel_reason, created_at, updated_at, ended_at,"
    " revision"
)
# The end of a run that SystemExit or a cancellation left while its process went on.
BROKEN_OFF: Final = "broken_off"
_NO_WAIT = "wait_kind = NULL, wait_step_task = NULL, wait_step_index = NULL, wait_hold = NULL, wait_detail = NULL"
# The task of the first parameter and all that is, directly or not, a branch of it.
_TREE = (
    "WITH RECURSIVE tree (task_id) AS"
    " (SELECT ? UNION SELECT t.task_id FROM agent_task t JOIN tree ON t.parent_id = tree.task_id)"
)
_UNRESOLVED = (
    "EXISTS (SELECT 1 FROM agent_step_journal s WHERE s.task_id = agent_task.task_id AND s.status = 'pending')"
)


def find_task(tx: Transaction, task_id: str) -> TaskRow | None:
    """The task, or None."""
    row = tx.one(f"SELECT {_COLUMNS} FROM agent_task WHERE task_id = ?", (task_id,))
    return None if row is None else read_row(TaskRow, row)


def require_uncancelled(tx: Transaction, task_id: str) -> TaskRow | None:
    """The task, or None. Raises TaskCancelled if the task or one of its ancestors was cancelled."""
    task = above = find_task(tx, task_id)
    while above is not None:
        if above.status == "cancelled":
            raise TaskCancelled(f"Task {above.task_id}: it was cancelled: {above.cancel_reason}")
        above = None if above.parent_id is None else find_task(tx, above.parent_id)
    return task


def is_cancelled(tx: Transaction, task_id: str) -> bool:
    """Whether the task, or what it is directly or not a branch of, was cancelled."""
    try:
        require_uncancelled(tx, task_id)
    except TaskCancelled:
        return True
    return False


def submit_task(tx: Transaction, task_id: str, handler: str, input_json: str, agent: str) -> TaskRow:
    """Queue a task; the same id with the same handler and input is the same task. Raises TaskConflict otherwise."""
    found = find_task(tx, task_id)
    if found is not None:
        if found.handler == handler and found.input_json == input_json:
            return found
        raise TaskConflict(
            f"Task {task_id!r}: it was submitted before with another handler or other input.",
            hint="Task ids are never reused: choose another one.",
        )
    _insert(tx, task_id, "queued", handler=handler, input_json=input_json, agent=agent)
    task = find_task(tx, task_id)
    assert task is not None
    return task


def note_conflict(tx: Transaction, task_id: str, text: str) -> None:
    """Record on the task that a later submission of its id said something else."""
    tx.execute(
        "UPDATE agent_task SET conflict = ?, conflict_at = ?, updated_at = ?, revision = ? WHERE task_id = ?",
        (text, tx.now, tx.now, tx.revision(), task_id),
    )


def start_task(tx: Transaction, task_id: str, *, agent: str, parent_id: str | None = None) -> int:
    """Mark the task running in this boot, making it if it is new, and open a run. Returns the run's number.

    An ended task may be opened: it is served from the journal, and a new step makes it run again. Raises UsageError
    for a cancelled one, and where a branch and a task of its own would share an id; TaskCancelled for a branch of a
    cancelled one.
    """
    if parent_id is not None:
        require_uncancelled(tx, parent_id)
    found = find_task(tx, task_id)
    if found is not None and found.parent_id != parent_id:
        owner = "a task of its own" if found.parent_id is None else f"a branch of {found.parent_id!r}"
        raise UsageError(f"Task {task_id!r}: it is {owner}.", hint="Choose another id or branch name.")
    if found is None:
        _insert(tx, task_id, "running", agent=agent, parent_id=parent_id)
    elif found.status == "cancelled":
        raise UsageError(
            f"Task {task_id!r}: it was cancelled ({found.cancel_reason}).", hint="Task ids are not reused."
        )
    elif found.status not in ("completed", "failed"):
        tx.execute(
            f"UPDATE agent_task SET status = 'running', {_NO_WAIT}, next_attempt_at = NULL, boot = ?,"
            " updated_at = ?, revision = ? WHERE task_id = ?",
            (tx.boot, tx.now, tx.revision(), task_id),
        )
    return begin_run(tx, task_id)


def reopen_task(tx: Transaction, task_id: str) -> None:
    """Make an ended task and its ancestors run again: it takes a new step, which recovery must find."""
    wanted: str | None = task_id
    while wanted is not None:
        tx.execute(
            "UPDATE agent_task SET status = 'running', ended_at = NULL, output_json = NULL, output_ref = NULL,"
            " error_json = NULL, boot = ?, updated_at = ?, revision = ?"
            " WHERE task_id = ? AND status IN ('completed', 'failed')",
            (tx.boot, tx.now, tx.revision(), wanted),
        )
        wanted = _parent(tx, wanted)


def complete_task(tx: Transaction, task_id: str, output_json: str) -> bool:
    """Complete the task and its open branches; False, and nothing done, while one of them has a pending step."""
    if find_pending_step(tx, task_id) is not None:
        return False
    text, reference = blobs.keep_blob(tx, output_json)
    for member in _tree(tx, task_id):
        own = (text, reference) if member == task_id else (None, None)
        tx.execute(
            f"UPDATE agent_task SET status = 'completed', {_NO_WAIT}, next_attempt_at = NULL, ended_at = ?,"
            " updated_at = ?, output_json = coalesce(?, output_json), output_ref = coalesce(?, output_ref),"
            " revision = ?"
            f" WHERE task_id = ? AND status IN ('queued', 'running', 'waiting') AND NOT {_UNRESOLVED}",
            (tx.now, tx.now, *own, tx.revision(), member),
        )
    return True


def find_pending_step(
    tx: Transaction, task_id: str, *, intents_only: bool = False
) -> tuple[str, int, str | None, str | None] | None:
    """(task, step, hold reason, due time) of a pending step of the task or of any of its branches.

    One that is not held, then one that only the clock holds, comes before what waits for a person, whichever branch it
    is of: the task is looked at again by itself.
    """
    row = tx.one(
        f"{_TREE} SELECT s.task_id, s.step_index, s.hold_reason, s.next_attempt_at FROM tree"
        " JOIN agent_step_journal s ON s.task_id = tree.task_id WHERE s.status = 'pending'"
        " AND (s.effect = 'mutating' OR NOT ?)"
        " ORDER BY s.hold_reason IS NOT NULL, s.hold_reason <> 'clock_suspect', s.next_attempt_at, s.task_id,"
        " s.step_index LIMIT 1",
        (task_id, intents_only),
    )
    return None if row is None else tuple(row)


def fail_task(tx: Transaction, task_id: str, error_json: str) -> None:
    """End the task, and its open branches with it, as failed with the stored error."""
    for member in _tree(tx, task_id):
        tx.execute(
            f"UPDATE agent_task SET status = 'failed', {_NO_WAIT}, next_attempt_at = NULL, ended_at = ?,"
            " updated_at = ?, error_json = ?, revision = ?"
            " WHERE task_id = ? AND status IN ('queued', 'running', 'waiting')",
            (tx.now, tx.now, error_json, tx.revision(), member),
        )


def put_task_aside(tx: Transaction, task_id: str, reason: WaitReason, until: datetime | None) -> None:
    """Put the task aside until a decision, or until `until`."""
    tx.execute(
        "UPDATE agent_task SET status = 'waiting', wait_kind = ?, wait_step_task = ?, wait_step_index = ?,"
        " wait_hold = ?, wait_detail = ?, next_attempt_at = ?, boot = ?, updated_at = ?, revision = ?"
        " WHERE task_id = ? AND status IN ('queued', 'running', 'waiting')",
        (
            *(reason.kind, reason.step_task, reason.step_index, reason.hold, reason.detail),
            *(None if until is None else clock.text(until), tx.boot, tx.now, tx.revision(), task_id),
        ),
    )


def cancel_task(tx: Transaction, task_id: str, reason: str) -> bool:
    """Cancel an unfinished task and its branches; pending intents stay what they are. False if it had ended."""
    task = find_task(tx, task_id)
    if task is None or task.status not in ("queued", "running", "waiting"):
        return False
    for member in _tree(tx, task_id):
        tx.execute(
            "UPDATE agent_task SET status = 'cancelled', cancel_reason = ?, next_attempt_at = NULL, ended_at = ?,"
            " updated_at = ?, revision = ? WHERE task_id = ? AND status IN ('queued', 'running', 'waiting')",
            (reason, tx.now, tx.now, tx.revision(), member),
        )
    return True


def requeue_task(tx: Transaction, task_id: str) -> None:
    """Make a waiting or crashed task and its ancestors due now, because a step was settled."""
    wanted: str | None = task_id
    while wanted is not None:
        tx.execute(
            f"UPDATE agent_task SET status = 'queued', {_NO_WAIT}, next_attempt_at = NULL, updated_at = ?,"
            " revision = ? WHERE task_id = ? AND (status = 'waiting' OR (status = 'running' AND boot < ?))",
            (tx.now, tx.revision(), wanted, tx.boot),
        )
        wanted = _parent(tx, wanted)


def list_due_tasks(tx: Transaction, limit: int) -> list[TaskRow]:
    """Unfinished root tasks with a handler that can run: queued, due, or running (the caller knows which it runs)."""
    found = tx.all(
        f"SELECT {_COLUMNS} FROM agent_task WHERE status IN ('queued', 'running', 'waiting')"
        " AND handler IS NOT NULL AND parent_id IS NULL AND (status IN ('queued', 'running')"
        " OR (status = 'waiting' AND next_attempt_at <= ?)"
        # New code or a new environment may have mended these.
        " OR (status = 'waiting' AND boot < ? AND wait_kind IN ('diverged', 'unset', 'no_handler')))"
        " ORDER BY created_at, task_id LIMIT ?",
        (tx.now, tx.boot, limit),
    )
    return [read_row(TaskRow, row) for row in found]


def _insert(
    tx: Transaction,
    task_id: str,
    status: str,
    *,
    agent: str,
    handler: str | None = None,
    input_json: str | None = None,
    parent_id: str | None = None,
) -> None:
    text, reference = (None, None) if input_json is None else blobs.keep_blob(tx, input_json)
    tx.execute(
        "INSERT INTO agent_task (task_id, handler, input_json, input_ref, agent, parent_id, status, boot, created_at,"
        " updated_at, revision) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (task_id, handler, text, reference, agent, parent_id, status, tx.boot, tx.now, tx.now, tx.revision()),
    )


def requeue_failed(tx: Transaction, task_id: str) -> list[str]:
    """Queue a failed task and its failed branches again; returns those that were queued."""
    queued = []
    for member in _tree(tx, task_id):
        done = tx.execute(
            "UPDATE agent_task SET status = 'queued', error_json = NULL, ended_at = NULL, next_attempt_at = NULL,"
            " updated_at = ?, revision = ? WHERE task_id = ? AND status = 'failed'",
            (tx.now, tx.revision(), member),
        )
        if done.rowcount == 1:
            queued.append(member)
    return queued


def _tree(tx: Transaction, task_id: str) -> list[str]:
    found = tx.all(f"{_TREE} SELECT task_id FROM tree", (task_id,))
    return [row["task_id"] for row in found]


def _parent(tx: Transaction, task_id: str) -> str | None:
    row = tx.one("SELECT parent_id FROM agent_task WHERE task_id = ?", (task_id,))
    return None if row is None else row["parent_id"]


def find_root(tx: Transaction, task_id: str) -> TaskRow | None:
    """The root of the task: its highest ancestor, or the task itself."""
    found = find_task(tx, task_id)
    while found is not None and found.parent_id is not None:
        parent = find_task(tx, found.parent_id)
        if parent is None:
            return found
        found = parent
    return found


def begin_run(tx: Transaction, task_id: str) -> int:
    """Open the next run of the task, in this boot; returns its number."""
    row = tx.one("SELECT coalesce(max(run), 0) + 1 AS run FROM agent_task_run WHERE task_id = ?", (task_id,))
    assert row is not None
    tx.execute(
        "INSERT INTO agent_task_run (task_id, run, boot, started_at, revision) VALUES (?, ?, ?, ?, ?)",
        (task_id, row["run"], tx.boot, tx.now, tx.revision()),
    )
    return int(row["run"])


def note_served(tx: Transaction, task_id: str, run: int, served_through: int) -> None:
    """Record up to which step this run was served from the journal."""
    tx.execute(
        "UPDATE agent_task_run SET served_through = ?, revision = ?"
        " WHERE task_id = ? AND run = ? AND served_through < ?",
        (served_through, tx.revision(), task_id, run, served_through),
    )


def end_run(tx: Transaction, task_id: str, run: int, ended: str) -> None:
    """Record how this run of the task ended."""
    tx.execute(
        "UPDATE agent_task_run SET ended_at = ?, ended = ?, revision = ? WHERE task_id = ? AND run = ?",
        (tx.now, ended, tx.revision(), task_id, run),
    )


def count_breaks(tx: Transaction, task_id: str) -> int:
    """How many of the task's newest runs were broken off, one after the other; killed ones are passed over."""
    row = tx.one(
        "SELECT count(*) AS n FROM agent_task_run WHERE task_id = ? AND ended = ? AND run >"
        " (SELECT coalesce(max(run), 0) FROM agent_task_run WHERE task_id = ? AND ended <> ?)",
        (task_id, BROKEN_OFF, task_id, BROKEN_OFF),
    )
    return 0 if row is None else int(row["n"])
