"""Asking the world about a key: one status query, kept as evidence."""

from __future__ import annotations

from journal import clock, stored_errors
from journal.effects import Call, Steps, Write
from journal.http import frozen_request
from journal.http.secrets import Secrets
from journal.models import Evidence, Step
from journal.providers.status_answer import StatusAnswer
from journal.settle.context import QUARANTINE_STARTS, AskFirst, Desk, NotHere, Snapshot, hold, tool_lacks
from journal.settle.dispatch import Intent
from journal.settle.quarantine import turn
from journal.store.sql import evidence, steps
from journal.store.transaction import Transaction
from journal.tools import Call as ToolCall
from journal.tools import Tool


def query(desk: Desk, seen: Snapshot) -> Steps[None]:
    """Ask the world about the key and append the answer as evidence."""
    step, profile = seen.step, seen.intent.profile
    if desk.mode == "visit":
        if profile.status is not None and profile.status.by_tool:
            raise NotHere(f"Step {step.step_index} of {step.task_id}: only its agent can ask for its status.")
        raise AskFirst(f"Step {step.step_index} of {step.task_id}: a status query comes next.")
    if profile.status is None or not profile.status.by_tool:
        yield from _query(desk, seen, by_tool=False)
        return
    lacks = tool_lacks(desk, seen.intent, asks=True)
    if lacks is not None:
        yield from hold(desk, step, "tool_missing", lacks)
    deaths = step.starts - 1
    if deaths >= QUARANTINE_STARTS:
        yield from hold(desk, step, "quarantined", f"Its status= function ended its process {deaths} times.")
    with (yield from turn(desk, step, deaths)):
        # On disk before the agent's code runs: what kills the process here is counted too.
        yield Write(desk.store, lambda tx: steps.count_start(tx, step.task_id, step.step_index))
        yield from _query(desk, seen, by_tool=True)


def _query(desk: Desk, seen: Snapshot, *, by_tool: bool) -> Steps[None]:
    step = seen.step
    newest = max((attempt.attempt for attempt in seen.attempts if attempt.verdict != "not_sent"), default=0)
    asked = clock.moment()
    try:
        answer = yield from _ask(seen.intent, desk.tools.get(step.tool_name), desk.secrets, newest)
    except GeneratorExit:
        raise
    except frozen_request.MissingReference as error:
        answer = yield from _not_asked(desk, step, error)
    except BaseException:
        if by_tool:
            yield Write(desk.store, lambda tx: steps.uncount_start(tx, step.task_id, step.step_index))
        raise
    answered = clock.wall()
    found = Evidence(
        task_id=step.task_id,
        step_index=step.step_index,
        attempt=newest,
        asked_at=asked.wall,
        asked_boottime=asked.boot,
        os_boot_id=asked.os_boot_id,
        answer=answer.answer,
        source="tool" if by_tool else "status",
        http_status=answer.http_status,
        detail=desk.secrets.hide(answer.detail),
        output_json=desk.secrets.stored(answer.output)[0] if answer.has_output else None,
    )

    def keep(tx: Transaction) -> None:
        evidence.append_evidence(tx, found, answered_at=answered)
        if by_tool:
            steps.uncount_start(tx, step.task_id, step.step_index)

    yield Write(desk.store, keep)


def _not_asked(desk: Desk, step: Step, error: frozen_request.MissingReference) -> Steps[StatusAnswer]:
    """Hold a step whose provider this process cannot ask. Where a person approved a replay, nothing was learned."""
    if step.decision is not None and isinstance(error, frozen_request.ChangedReference):
        return StatusAnswer(answer="unknown", detail=error.message)
    yield from hold(desk, step, error.hold_reason, str(error))
    raise AssertionError("a hold is raised")


def _ask(intent: Intent, tool: Tool | None, secrets: Secrets, attempt: int) -> Steps[StatusAnswer]:
    """Ask the provider, or the tool's `status=`, about the key. Never raises for an answer it cannot read."""
    step, profile = intent.step, intent.profile
    assert step.idempotency_key is not None
    key = step.idempotency_key
    if profile.status is not None and profile.status.by_tool:
        assert tool is not None
        call = ToolCall(key, step.task_id, step.step_index, attempt)
        try:
            output = yield Call(lambda: tool.ask_status(call, step.arguments_json or "{}"))
        except Exception as error:
            shown = stored_errors.error_text(error, hide=secrets.hide)
            return StatusAnswer(answer="unknown", detail=f"status= raised {type(error).__name__}: {shown}")
        if output is None:
            return StatusAnswer(answer="absent", detail="status= found nothing under this key")
        return StatusAnswer(answer="exists", detail="status= found the effect", output=output, has_output=True)
    request = intent.request
    assert request is not None

    def over_http() -> StatusAnswer:
        from journal.http import client

        return client.ask_status(request, profile=profile, key=key, secrets=secrets)

    answer: StatusAnswer = yield Call(over_http)
    return answer
