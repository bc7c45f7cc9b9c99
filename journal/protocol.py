"""What happens at one step, written once: generators of `ops` that either driver runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from journal import attempts, clock, codec, failures, freeze, keys, steps, tasks
from journal.dispatch import Intent, dispatch
from journal.divergence import difference
from journal.errors import Diverged, TaskCancelled
from journal.models import Step
from journal.ops import Call, Read, Sleep, Steps, Write
from journal.providers.classify import Outcome
from journal.providers.profile import Profile, python_profile
from journal.settle import QUARANTINE_STARTS, Desk, hold, settle, waiting
from journal.tools import Call as ToolCall
from journal.tools import Tool
from journal.transaction import Transaction

# Read-only requests are repeated under the same back-off as intents, without an attempt on disk.
_RETRIED_KINDS = frozenset({"dns", "not_connected", "lost_answer", "gateway", "rate_limited", "stale"})


@dataclass(slots=True)
class Session:
    """One opening of a task: which steps the journal already holds, and how far they were served."""

    desk: Desk
    task_id: str
    run: int
    stored: int
    profiles: Mapping[str, Profile]
    keep_prompt: bool = False
    served_through: int = -1
    flushed_through: int = -1
    is_closed: Callable[[], bool] = field(default=lambda: False)
    is_recovering: Callable[[], bool] = field(default=lambda: False)

    def begin(self, tx: Transaction) -> None:
        """What every first write of a step does: refuse a cancelled task, note how far the journal served."""
        task = tasks.find(tx, self.task_id)
        if task is not None and task.status == "cancelled":
            raise TaskCancelled(f"Task {self.task_id}: it was cancelled: {task.cancel_reason}")
        if task is not None and task.status in ("completed", "failed"):
            tasks.reopen(tx, self.task_id)
        self.note_served(tx)

    def note_served(self, tx: Transaction) -> None:
        """Note on disk how far the journal served this run."""
        if self.served_through > self.flushed_through:
            tasks.note_served(tx, self.task_id, self.run, self.served_through)
            self.flushed_through = self.served_through


def tool_step(session: Session, tool: Tool, index: int, arguments: dict[str, Any], text: str) -> Steps[Any]:
    """One `run`: serve the step from the journal, settle what is pending, or make it happen for the first time.

    `text` is the canonical text of `arguments`.
    """
    # The tool at hand may be none of the journal's own: a script need not register what it runs.
    desk = session.desk if tool.name in session.desk.tools else replace(session.desk, tools=_with(session.desk, tool))
    stored: Step | None = None
    was_pending = False
    if index < session.stored:
        stored = yield Read(desk.store, lambda tx: steps.find(tx, session.task_id, index))
        was_pending = stored is not None and stored.status == "pending"
        if stored is not None and was_pending and stored.effect == "mutating":
            # From its stored bytes first, whatever the code now says.
            stored = yield from settle(desk, session.task_id, index)
    new = _described(session, tool, index, text)
    if stored is not None:
        if (yield from check_divergence(session, stored, new, tool.defaults())):
            arguments = codec.loads(stored.arguments_json or "{}")
        if stored.status != "pending":
            return _without_serving(session, stored) if was_pending else stored_outcome(session, stored)
        new = _prepared(session, tool, new, arguments)
        yield from start_again(session, stored)
        return (yield from _read(session, tool, new, arguments))
    new = _prepared(session, tool, new, arguments)
    if tool.effect == "mutating":
        return (yield from _first_dispatch(session, desk, tool, new))
    yield Write(desk.store, lambda tx: _insert(session, tx, new))
    return (yield from _read(session, tool, new, arguments))


def _with(desk: Desk, tool: Tool) -> Mapping[str, Tool]:
    return {**desk.tools, tool.name: tool}


def stored_outcome(session: Session, step: Step) -> Any:
    """What an ended step gives its caller: the output, or its stored error raised."""
    what = f"Step {step.step_index} of {step.task_id} ({step.tool_name})"
    session.served_through = max(session.served_through, step.step_index)
    if step.status == "failed":
        raise failures.to_error(step.error_json, what)
    if step.status == "abandoned":
        raise failures.to_abandoned(step.error_json, what)
    return codec.loads(step.output_json or "null")


def check_divergence(session: Session, step: Step, new: steps.NewStep, defaults: Mapping[str, Any]) -> Steps[bool]:
    """Raise Diverged, naming the first difference, unless the code asks for the step the journal holds.

    True where the arguments differ and the tool takes the stored ones (`drift="stored"`).
    """
    found = difference(step, new, defaults)
    if found is None:
        if step.hold_reason == "diverged":
            yield Write(session.desk.store, lambda tx: steps.clear_divergence(tx, step.task_id, step.step_index))
        return False
    if found.arguments_only and new.drift == "stored":
        if step.drift_json != found.json:
            yield Write(session.desk.store, lambda tx: steps.note_drift(tx, step.task_id, step.step_index, found.json))
        return True
    yield Write(session.desk.store, lambda tx: steps.mark_diverged(tx, step.task_id, step.step_index, found.place))
    raise Diverged(
        f"Step {step.step_index} of {step.task_id}: the code and the journal disagree: {found.sentence}",
        hint="Nothing was sent. Restore the code this task began with, or submit a new task.",
    )


def _described(session: Session, tool: Tool, index: int, text: str) -> steps.NewStep:
    return steps.NewStep(
        task_id=session.task_id,
        step_index=index,
        tool_name=tool.name,
        effect=tool.effect,
        key=keys.key(session.task_id, index, text),
        arguments_json=text,
        transport=tool.transport,
        drift=tool.drift,
    )


def _prepared(session: Session, tool: Tool, new: steps.NewStep, arguments: dict[str, Any]) -> steps.NewStep:
    """The step with its profile and its frozen request; every refusal comes before anything is written."""
    secrets = session.desk.secrets
    request = None
    profile = None
    if tool.transport == "http":
        profile = session.profiles.get(tool.provider or "") or session.profiles["generic_none"]
        request = freeze.freeze(tool.request(arguments), profile=profile, key=new.key)
        names = freeze.references(request)
        freeze.require(names, secrets.environ)
        secrets.learn(names)
    elif tool.effect == "mutating":
        profile = python_profile(tool.keyed, tool.status is not None, tool.horizon)
    secrets.refuse(new.arguments_json, f"Step {new.step_index} ({tool.name})")
    if profile is None:
        return new
    return replace(new, profile=profile, request=request)


def _insert(session: Session, tx: Transaction, new: steps.NewStep) -> None:
    session.begin(tx)
    steps.insert(tx, new)


def _first_dispatch(session: Session, desk: Desk, tool: Tool, new: steps.NewStep) -> Steps[Any]:
    def begin(tx: Transaction) -> tuple[attempts.Mark, Step]:
        _insert(session, tx, new)
        mark = attempts.mark(tx, new.task_id, new.step_index, generation=0)
        step = steps.find(tx, new.task_id, new.step_index)
        assert step is not None
        return mark, step

    # Payload, key and mark are on the platter when this returns; if they are not, the tool is not called.
    mark, step = yield Write(desk.store, begin, sync=True)
    assert new.profile is not None
    intent = Intent(step=step, profile=new.profile, request=new.request)
    text = yield from dispatch(desk.store, desk.secrets, tool, intent, mark)
    if text is not None:
        return codec.loads(text)
    settled = yield from settle(desk, new.task_id, new.step_index)
    return _without_serving(session, settled)


def _without_serving(session: Session, step: Step) -> Any:
    before = session.served_through
    try:
        return stored_outcome(session, step)
    finally:
        session.served_through = before


def start_again(session: Session, step: Step) -> Steps[None]:
    """Count one more start of a pending read-only or model step; hold it when it keeps killing its process."""
    desk = session.desk
    if step.starts >= QUARANTINE_STARTS:
        yield from hold(desk, step, "quarantined", f"This step was started {step.starts} times and never ended.")
    if step.next_attempt_at is not None and step.next_attempt_at > clock.wall():
        yield from _wait(session, step, step.next_attempt_at, clock.wall() + desk.max_wait)

    def restart(tx: Transaction) -> None:
        session.begin(tx)
        steps.restart(tx, step.task_id, step.step_index)

    yield Write(desk.store, restart)


def _read(session: Session, tool: Tool, new: steps.NewStep, arguments: dict[str, Any]) -> Steps[Any]:
    started = clock.boot_seconds()
    if new.request is not None:
        return (yield from _fetch(session, new, started))
    try:
        call = ToolCall(new.key, new.task_id, new.step_index, 1)
        value = yield Call(lambda: tool.invoke(arguments, call), blocking=not tool.is_async)
    except Exception as error:
        yield from end_failed(session, new.task_id, new.step_index, failures.to_json(error))
        raise failures.to_error(
            session.desk.secrets.hide(failures.to_json(error)), f"Step {new.step_index} ({new.tool_name})"
        ) from error
    except GeneratorExit:
        raise
    except BaseException:
        yield Write(session.desk.store, lambda tx: steps.uncount_start(tx, new.task_id, new.step_index))
        raise
    return (yield from commit_output(session, new.task_id, new.step_index, value, started))


def commit_output(session: Session, task_id: str, index: int, value: object, started: float) -> Steps[Any]:
    """Commit a read-only output, unsynced, and return it as a resume will."""
    text, complete = codec.dumps_output(value)
    text = session.desk.secrets.hide_json(text)
    duration = max(0.0, clock.boot_seconds() - started)
    yield Write(
        session.desk.store,
        lambda tx: steps.commit(tx, task_id, index, text, complete=complete, duration=duration),
        outcome=True,
    )
    return codec.loads(text)


def end_failed(session: Session, task_id: str, index: int, error_json: str) -> Steps[None]:
    """Store the failure of a step that changed nothing outside."""
    text = session.desk.secrets.hide(error_json)
    yield Write(session.desk.store, lambda tx: steps.end(tx, task_id, index, "failed", text), outcome=True)


def _fetch(session: Session, new: steps.NewStep, started: float) -> Steps[Any]:
    """A read-only HTTP request: repeated with back-off while the provider cannot be reached."""
    desk = session.desk
    assert new.request is not None
    assert new.profile is not None
    request, profile = new.request, new.profile
    deadline = clock.wall() + desk.max_wait
    tries = 0
    while True:

        def send() -> Outcome:
            from journal import http

            return http.send(
                request, profile=profile, redispatch=False, guard=lambda: None, environ=desk.secrets.environ
            )

        outcome: Outcome = yield Call(send)
        if outcome.verdict == "applied":
            return (yield from commit_output(session, new.task_id, new.step_index, outcome.output, started))
        if outcome.kind not in _RETRIED_KINDS:
            status = f"HTTP {outcome.http_status}: " if outcome.http_status is not None else ""
            text = failures.make("Rejected", f"{status}{outcome.detail}")
            yield from end_failed(session, new.task_id, new.step_index, text)
            raise failures.to_error(text, f"Step {new.step_index} ({new.tool_name})")
        until = outcome.retry_after_at or clock.wall() + timedelta(seconds=min(2.0**tries, 300.0))
        tries += 1
        step = yield Read(desk.store, lambda tx: steps.find(tx, new.task_id, new.step_index))
        yield from _wait(session, step, until, deadline)


def _wait(session: Session, step: Step, until: datetime, deadline: datetime) -> Steps[None]:
    desk = session.desk
    if until > deadline or session.is_closed():

        def put_off(tx: Transaction) -> None:
            steps.uncount_start(tx, step.task_id, step.step_index)
            steps.schedule(tx, step.task_id, step.step_index, until)

        yield Write(desk.store, put_off)
        raise waiting(step, until)
    epoch = desk.epoch()
    yield Sleep(until, lambda: desk.epoch() != epoch)
