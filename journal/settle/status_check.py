"""One status check of an intent, stored as evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from journal import clock, stored_errors
from journal.effects import Invoke, Program, Write
from journal.http import frozen_request
from journal.http.secrets import Secrets
from journal.models import Attempt, Evidence, Step
from journal.providers.status_answer import StatusAnswer
from journal.settle.context import QUARANTINE_STARTS, AskFirst, IntentSnapshot, NotHere, SettleContext, hold, tool_lacks
from journal.settle.dispatch import Intent
from journal.settle.quarantine import take_turn
from journal.store.sql import evidence, steps
from journal.store.transaction import Transaction
from journal.tools import Call, Tool


def query_status(context: SettleContext, seen: IntentSnapshot) -> Program[None]:
    """Ask the world about the key and append the answer as evidence."""
    step, profile = seen.step, seen.intent.profile
    if context.mode == "visit":
        if profile.status is not None and profile.status.by_tool:
            raise NotHere(f"Step {step.step_index} of {step.task_id}: only its agent can ask for its status.")
        raise AskFirst(f"Step {step.step_index} of {step.task_id}: a status query comes next.")
    if profile.status is None or not profile.status.by_tool:
        yield from _query(context, seen, by_tool=False)
        return
    lacks = tool_lacks(context, seen.intent, asks=True)
    if lacks is not None:
        yield from hold(context, step, "tool_missing", lacks)
    deaths = step.starts - 1
    if deaths >= QUARANTINE_STARTS:
        yield from hold(context, step, "quarantined", f"Its status= function ended its process {deaths} times.")
    with (yield from take_turn(context, step, deaths)):
        # On disk before the agent's code runs: what kills the process here is counted too.
        yield Write(context.store, lambda tx: steps.count_start(tx, step.task_id, step.step_index))
        yield from _query(context, seen, by_tool=True)


def _query(context: SettleContext, seen: IntentSnapshot, *, by_tool: bool) -> Program[None]:
    step = seen.step
    asked = clock.moment()
    try:
        answer = yield from _ask(
            seen.intent, context.tools.get(step.tool_name), context.secrets, newest_dispatch(seen.attempts)
        )
    except GeneratorExit:
        raise
    except frozen_request.MissingReference as error:
        answer = yield from _not_asked(context, step, error)
    except BaseException:
        if by_tool:
            yield Write(context.store, lambda tx: steps.uncount_start(tx, step.task_id, step.step_index))
        raise
    answered = clock.wall()
    found = build_evidence(step, seen.attempts, asked, answer, context.secrets, source="tool" if by_tool else "status")

    def keep(tx: Transaction) -> None:
        evidence.append_evidence(tx, found, answered_at=answered)
        if by_tool:
            steps.uncount_start(tx, step.task_id, step.step_index)

    yield Write(context.store, keep)


def newest_dispatch(attempts: Sequence[Attempt]) -> int:
    """The number of the newest attempt that may have arrived; a status check is about it. 0 if there is none."""
    return max((attempt.attempt for attempt in attempts if attempt.verdict != "not_sent"), default=0)


def build_evidence(
    step: Step,
    attempts: Sequence[Attempt],
    asked: clock.Moment,
    answer: StatusAnswer,
    secrets: Secrets,
    *,
    source: Literal["status", "tool", "worker"],
    in_flight: bool = False,
) -> Evidence:
    """One status answer as the journal keeps it. `attempts` were read before `asked`."""
    return Evidence(
        task_id=step.task_id,
        step_index=step.step_index,
        attempt=newest_dispatch(attempts),
        asked_at=asked.wall,
        asked_boottime=asked.boot,
        os_boot_id=asked.os_boot_id,
        answer=answer.answer,
        source=source,
        http_status=answer.http_status,
        detail=secrets.hide(answer.detail),
        output_json=secrets.stored(answer.output)[0] if answer.has_output else None,
        in_flight=in_flight,
    )


def evidence_message(found: Evidence) -> dict[str, object]:
    """The body of the message that brings an answer, just received, to the journal's writer."""
    assert found.asked_at is not None
    return {
        "kind": "evidence",
        "task_id": found.task_id,
        "step_index": found.step_index,
        "attempt": found.attempt,
        "asked_at": clock.text(found.asked_at),
        "asked_boottime": found.asked_boottime,
        "os_boot_id": found.os_boot_id,
        "answered_at": clock.now_text(),
        "answer": found.answer,
        "http_status": found.http_status,
        "detail": found.detail,
        "output_json": found.output_json,
        "in_flight": found.in_flight,
        "source": found.source,
    }


def _not_asked(context: SettleContext, step: Step, error: frozen_request.MissingReference) -> Program[StatusAnswer]:
    """Hold a step whose provider this process cannot ask. Where a person approved a replay, nothing was learned."""
    if step.decision is not None and isinstance(error, frozen_request.ChangedReference):
        return StatusAnswer(answer="unknown", detail=error.message)
    yield from hold(context, step, error.hold_reason, str(error))
    raise AssertionError("a hold is raised")


def _ask(intent: Intent, tool: Tool | None, secrets: Secrets, attempt: int) -> Program[StatusAnswer]:
    """Ask the provider, or the tool's `status=`, about the key. Never raises for an answer it cannot read."""
    step, profile = intent.step, intent.profile
    assert step.idempotency_key is not None
    key = step.idempotency_key
    if profile.status is not None and profile.status.by_tool:
        assert tool is not None
        call = Call(key, step.task_id, step.step_index, attempt)
        try:
            output = yield Invoke(lambda: tool.ask_status(call, step.arguments_json or "{}"))
        except Exception as error:
            shown = stored_errors.error_text(error, hide=secrets.hide)
            return StatusAnswer(answer="unknown", detail=f"status= raised {type(error).__name__}: {shown}")
        if output is None:
            return StatusAnswer(answer="absent", detail="status= found nothing under this key")
        return StatusAnswer(answer="exists", detail="status= found the effect", output=output, has_output=True)
    answer: StatusAnswer = yield Invoke(lambda: ask_over_http(intent, secrets))
    return answer


def ask_over_http(intent: Intent, secrets: Secrets) -> StatusAnswer:
    """Ask the provider by one HTTP query. Raises MissingReference where this process lacks a credential."""
    from journal.http import client

    assert intent.request is not None
    assert intent.step.idempotency_key is not None
    return client.ask_status(intent.request, profile=intent.profile, key=intent.step.idempotency_key, secrets=secrets)
