"""Statements on steps. One statement per function; each takes the open transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from journal import clock, stored_errors
from journal.ids import sha256_hex
from journal.models import FrozenRequest, Step
from journal.providers.profile import Profile
from journal.store.sql import blobs, requests
from journal.store.sql.rows import read_row
from journal.store.transaction import note_newest

if TYPE_CHECKING:
    from datetime import datetime

    from journal.store.transaction import Transaction

# Bodies are resolved here, so that nothing above knows of agent_body.
_COLUMNS = (
    "s.task_id, s.step_index, s.tool_name, s.idempotency_key,"
    " coalesce((SELECT body FROM agent_body b WHERE b.sha256 = s.arguments_ref), s.arguments_json) AS arguments_json,"
    " s.status, coalesce((SELECT body FROM agent_body b WHERE b.sha256 = s.output_ref), s.output_json) AS output_json,"
    " s.created_at, s.updated_at, s.args_hash, s.effect, s.key_generation, s.starts, s.hold_reason, s.hold_detail,"
    " s.hold_parameter, s.prompt_hashes,"
    " s.next_attempt_at, s.boot, s.revision, s.transport, s.payload_sha256, s.provider, s.profile_version,"
    " s.output_complete, s.error_json, s.drift_json, s.reference, s.alarm, s.committed_boot, s.duration,"
    " s.arguments_bytes, s.output_bytes"
)


@dataclass(frozen=True, slots=True)
class NewStep:
    """A step before its first attempt: the row as it is first written."""

    task_id: str
    step_index: int
    tool_name: str
    effect: str
    key: str
    arguments_json: str
    transport: str = "python"
    profile: Profile | None = None
    request: FrozenRequest | None = None
    drift: str = "refuse"
    prompt: str | None = None  # of a model step: all that the model is asked with
    prompt_hashes: str | None = None

    @property
    def label(self) -> str:
        """The name of the step in errors."""
        return f"Step {self.step_index} of {self.task_id} ({self.tool_name})"


def find_step(tx: Transaction, task_id: str, step_index: int) -> Step | None:
    """The step with its bodies, or None."""
    row = tx.one(
        f"SELECT {_COLUMNS} FROM agent_step_journal s WHERE s.task_id = ? AND s.step_index = ?", (task_id, step_index)
    )
    return None if row is None else read_row(Step, row)


def count_steps(tx: Transaction, task_id: str) -> int:
    """One more than the highest stored index of the task."""
    row = tx.one("SELECT coalesce(max(step_index), -1) + 1 AS n FROM agent_step_journal WHERE task_id = ?", (task_id,))
    assert row is not None
    return int(row["n"])


def insert_step(tx: Transaction, new: NewStep) -> None:
    """Write the step as pending, with its frozen request where it has one."""
    text, reference = blobs.keep_blob(tx, new.arguments_json)
    digest = sha256_hex(new.arguments_json)
    request, profile = new.request, new.profile
    tx.execute(
        "INSERT INTO agent_step_journal (task_id, step_index, tool_name, idempotency_key, arguments_json, status,"
        " created_at, updated_at, args_hash, effect, starts, boot, revision, transport, payload_sha256, provider,"
        " profile_version, profile_json, arguments_ref, arguments_bytes, prompt_hashes)"
        " VALUES (?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new.task_id,
            new.step_index,
            new.tool_name,
            new.key,
            text,
            tx.now,
            tx.now,
            digest,
            new.effect,
            tx.boot,
            tx.revision(),
            new.transport,
            digest if request is None else request.sha256,
            None if profile is None else profile.name,
            None if profile is None else profile.version,
            None if profile is None else profile.canonical,
            reference,
            len(new.arguments_json.encode()),
            new.prompt_hashes,
        ),
    )
    if request is not None:
        asked_with = () if profile is None else profile.references
        requests.insert_request(tx, new.task_id, new.step_index, request, asked_with=asked_with)


def commit_step(
    tx: Transaction,
    task_id: str,
    step_index: int,
    output_json: str,
    *,
    complete: bool = True,
    duration: float | None = None,
    reference: str | None = None,
    alarm: str | None = None,
) -> bool:
    """Commit a pending step with its output; False, and nothing done, when it is pending no more."""
    text, body = blobs.keep_blob(tx, output_json)
    done = tx.execute(
        "UPDATE agent_step_journal SET status = 'committed', output_json = ?, output_ref = ?, output_bytes = ?,"
        " output_complete = ?, hold_reason = NULL, hold_detail = NULL, next_attempt_at = NULL, committed_boot = ?,"
        " duration = ?, reference = ?, alarm = ?, updated_at = ?, revision = ?"
        " WHERE task_id = ? AND step_index = ? AND status = 'pending'",
        (
            text,
            body,
            len(output_json.encode()),
            int(complete),
            tx.boot,
            duration,
            reference,
            alarm,
            tx.now,
            tx.revision(),
            task_id,
            step_index,
        ),
    )
    return done.rowcount == 1


def end_step(tx: Transaction, task_id: str, step_index: int, status: str, error_json: str) -> bool:
    """End a pending step as `failed` or `abandoned` with the stored error; False when it is pending no more."""
    done = tx.execute(
        "UPDATE agent_step_journal SET status = ?, error_json = ?, hold_reason = NULL, hold_detail = NULL,"
        " next_attempt_at = NULL, committed_boot = ?, updated_at = ?, revision = ?"
        " WHERE task_id = ? AND step_index = ? AND status = 'pending'",
        (status, error_json, tx.boot, tx.now, tx.revision(), task_id, step_index),
    )
    return done.rowcount == 1


def reopen_last(tx: Transaction, task_id: str) -> int | None:
    """Make the task's last step pending again if it failed; returns its index if a person's approval must send it.

    A call whose arguments were refused never was a step to carry out: it stays failed.
    """
    row = tx.one(
        "SELECT step_index, status, effect, error_json, (SELECT count(*) FROM agent_step_attempt a"
        " WHERE a.task_id = s.task_id AND a.step_index = s.step_index) AS attempts FROM agent_step_journal s"
        " WHERE task_id = ? ORDER BY step_index DESC LIMIT 1",
        (task_id,),
    )
    if row is None or row["status"] != "failed" or (row["effect"] == "mutating" and not row["attempts"]):
        return None
    if stored_errors.describe_failure(row["error_json"])[0] == stored_errors.REFUSED_ARGUMENTS:
        return None
    tx.execute(
        "UPDATE agent_step_journal SET status = 'pending', error_json = NULL, committed_boot = NULL, starts = 0,"
        " hold_reason = NULL, hold_detail = NULL, next_attempt_at = NULL, updated_at = ?, revision = ?"
        " WHERE task_id = ? AND step_index = ?",
        (tx.now, tx.revision(), task_id, row["step_index"]),
    )
    return int(row["step_index"]) if row["effect"] == "mutating" else None


def hold_step(tx: Transaction, task_id: str, step_index: int, reason: str, detail: str) -> None:
    """Hold a pending step for a person; unchanged when it is held for the same reason already."""
    tx.execute(
        "UPDATE agent_step_journal SET hold_reason = ?, hold_detail = ?, next_attempt_at = NULL, updated_at = ?,"
        " revision = ? WHERE task_id = ? AND step_index = ? AND status = 'pending'"
        " AND (hold_reason IS NOT ? OR hold_detail IS NOT ?)",
        (reason, detail, tx.now, tx.revision(), task_id, step_index, reason, detail),
    )


def list_held(tx: Transaction, reason: str) -> list[tuple[str, int]]:
    """(task, step) of the pending steps that are held for this reason."""
    found = tx.all(
        "SELECT task_id, step_index FROM agent_step_journal WHERE status = 'pending' AND hold_reason = ?"
        " ORDER BY task_id, step_index",
        (reason,),
    )
    return [(row["task_id"], row["step_index"]) for row in found]


def is_held(tx: Transaction, task_id: str, step_index: int) -> bool:
    """Whether the step still waits for a person."""
    return (
        tx.one(
            "SELECT 1 FROM agent_step_journal WHERE task_id = ? AND step_index = ? AND status = 'pending'"
            " AND hold_reason IS NOT NULL",
            (task_id, step_index),
        )
        is not None
    )


def mark_diverged(tx: Transaction, task_id: str, step_index: int, place: str, parameter: str) -> None:
    """Note at the stored step that the code asked for another one."""
    note_newest(tx)
    tx.execute(
        "UPDATE agent_step_journal SET hold_reason = 'diverged', hold_detail = ?, hold_parameter = ?,"
        " revision = ? WHERE task_id = ? AND step_index = ?",
        (place, parameter, tx.revision(), task_id, step_index),
    )


def clear_divergence(tx: Transaction, task_id: str, step_index: int) -> None:
    """Take the note back: the code asks for the stored step again."""
    note_newest(tx)
    tx.execute(
        "UPDATE agent_step_journal SET hold_reason = NULL, hold_detail = NULL, hold_parameter = NULL, revision = ?"
        " WHERE task_id = ? AND step_index = ? AND hold_reason = 'diverged'",
        (tx.revision(), task_id, step_index),
    )


def note_drift(tx: Transaction, task_id: str, step_index: int, drift_json: str) -> None:
    """Record that the code's arguments differ from the stored ones, which were taken (`drift="stored"`)."""
    note_newest(tx)
    tx.execute(
        "UPDATE agent_step_journal SET drift_json = ?, revision = ? WHERE task_id = ? AND step_index = ?",
        (drift_json, tx.revision(), task_id, step_index),
    )


def schedule_step(tx: Transaction, task_id: str, step_index: int, until: datetime) -> None:
    """Put on disk when a pending step is due again."""
    tx.execute(
        "UPDATE agent_step_journal SET next_attempt_at = ?, hold_reason = NULL, hold_detail = NULL, updated_at = ?,"
        " revision = ? WHERE task_id = ? AND step_index = ? AND status = 'pending' AND next_attempt_at IS NOT ?",
        (clock.text(until), tx.now, tx.revision(), task_id, step_index, clock.text(until)),
    )


def release_step(tx: Transaction, task_id: str, step_index: int) -> None:
    """Lift a hold and a due time: recovery decides anew."""
    tx.execute(
        "UPDATE agent_step_journal SET hold_reason = NULL, hold_detail = NULL, next_attempt_at = NULL, updated_at = ?,"
        " revision = ? WHERE task_id = ? AND step_index = ? AND status = 'pending'",
        (tx.now, tx.revision(), task_id, step_index),
    )


def find_profile_json(tx: Transaction, task_id: str, step_index: int) -> str | None:
    """The provider profile stored with the intent: recovery uses this one, even if the file has changed."""
    row = tx.one(
        "SELECT profile_json FROM agent_step_journal WHERE task_id = ? AND step_index = ?", (task_id, step_index)
    )
    return None if row is None else row["profile_json"]


def restart_step(tx: Transaction, task_id: str, step_index: int) -> bool:
    """Count one more start of a read-only or model step, in this boot; False when it is pending no more."""
    done = tx.execute(
        "UPDATE agent_step_journal SET starts = starts + 1, boot = ?, hold_reason = NULL, hold_detail = NULL,"
        " updated_at = ?, revision = ? WHERE task_id = ? AND step_index = ? AND status = 'pending'",
        (tx.boot, tx.now, tx.revision(), task_id, step_index),
    )
    return done.rowcount == 1


def count_start(tx: Transaction, task_id: str, step_index: int) -> None:
    """Count one more start of the agent's own code for a pending step."""
    tx.execute(
        "UPDATE agent_step_journal SET starts = starts + 1, updated_at = ?, revision = ?"
        " WHERE task_id = ? AND step_index = ? AND status = 'pending'",
        (tx.now, tx.revision(), task_id, step_index),
    )


def uncount_start(tx: Transaction, task_id: str, step_index: int) -> None:
    """Take a start back: the step was interrupted, it did not kill its process."""
    tx.execute(
        "UPDATE agent_step_journal SET starts = max(starts - 1, 0), updated_at = ?, revision = ?"
        " WHERE task_id = ? AND step_index = ? AND status = 'pending'",
        (tx.now, tx.revision(), task_id, step_index),
    )


def reset_starts(tx: Transaction, task_id: str, step_index: int) -> None:
    """Let a quarantined step start afresh."""
    tx.execute(
        "UPDATE agent_step_journal SET starts = 0, updated_at = ?, revision = ? WHERE task_id = ? AND step_index = ?"
        " AND status = 'pending'",
        (tx.now, tx.revision(), task_id, step_index),
    )
