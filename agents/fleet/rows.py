"""Rows of the index as the values that pages show."""

from __future__ import annotations

from agents.fleet.summaries import IntentLine, JournalLine, TaskLine
from agents.models import IndexedTask, JournalFile, PendingIntent
from agents.models.job import DECISION, QUERY_STATUS
from agents.money import Money
from journal.models import WaitReason

# By journal, task, step and kind: the job's uuid.
OpenJobs = dict[tuple[int | None, str, int | None, str], str]


def task_line(row: IndexedTask) -> TaskLine:
    return TaskLine(
        journal_id=row.journal_id,
        task_id=row.task_id,
        parent_id=row.parent_id,
        agent=row.agent,
        handler=row.handler,
        status=row.status,
        state=row.state,
        wait=_wait(row),
        steps=row.steps,
        pending=row.pending,
        tokens_in=row.tokens_in,
        tokens_out=row.tokens_out,
        cost=None if row.journal.is_foreign else Money.of(row.cost_pico, unpriced_calls=row.unpriced_calls),
        saved_tokens=row.saved_tokens,
        saved=Money.of(row.saved_pico, unpriced_calls=row.saved_unpriced_calls),
        started_at=row.started_at,
        updated_at=row.updated_at if row.dated else None,
        ended_at=row.ended_at,
        last_boot=row.last_boot,
        error_type=row.error_type,
        error_message=row.error_message,
    )


def _wait(row: IndexedTask) -> WaitReason | None:
    if row.wait_kind is None:
        return None
    return WaitReason(row.wait_kind, row.wait_step_task, row.wait_step_index, row.wait_hold, row.wait_detail)


def intent_line(row: PendingIntent, jobs: OpenJobs) -> IntentLine:
    place = (row.journal_id, row.task_id, row.step_index)
    return IntentLine(
        journal_id=row.journal_id,
        task_id=row.task_id,
        step_index=row.step_index,
        agent=row.agent,
        tool_name=row.tool_name,
        effect=row.effect,
        transport=row.transport,
        provider=row.provider,
        key=row.key,
        payload_sha256=row.payload_sha256,
        arguments_bytes=row.arguments_bytes,
        dispatches=row.dispatches,
        state=row.state,
        hold_reason=row.hold_reason,
        why=row.why,
        next_action=row.next_action,
        next_sentence=row.next_sentence,
        next_attempt_at=row.next_attempt_at,
        since=row.since if row.dated else None,
        window_left_until=row.window_left_until,
        window_text=row.window_text,
        task_status=row.task_status,
        asks=row.asks,
        detail=row.detail,
        job_uuid=jobs.get((*place, DECISION)),
        question_uuid=jobs.get((*place, QUERY_STATUS)),
    )


def journal_line(row: JournalFile, tasks: dict[int, int], waiting: dict[int, int]) -> JournalLine:
    return JournalLine(
        journal_id=row.pk,
        path=row.path,
        agent=row.agent,
        uuid=row.uuid,
        kind=row.kind,
        sentence=row.sentence,
        hint=row.hint,
        warnings=tuple(row.warnings),
        dialect=row.dialect,
        journal_mode=row.journal_mode,
        tasks=tasks.get(row.pk, 0),
        pending=waiting.get(row.pk, 0),
        writer_pid=row.writer_pid,
        writer_role=row.writer_role,
        file_bytes=row.file_bytes,
        wal_bytes=row.wal_bytes,
        inbox_messages=row.inbox_messages,
        highest_boot=row.highest_boot,
        highest_revision=row.highest_revision,
        copy_of_id=row.copy_of_id,
        found_at=row.found_at,
        seen_at=row.seen_at,
        read_at=row.read_at,
    )
