"""A tool step: a generator of effects that either driver carries out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from journal import codec, ids
from journal.effects import Program, Write
from journal.http import frozen_request
from journal.models import Step
from journal.providers.parse import python_profile
from journal.settle.context import SettleContext
from journal.settle.dispatch import Dispatched, Intent, dispatch
from journal.settle.settle import settle_step
from journal.steps.read_step import read, repeat_step
from journal.steps.resume import resume_step
from journal.steps.task_run import TaskRun, settled_outcome
from journal.store.sql import attempts, boots, steps
from journal.store.transaction import Transaction
from journal.tools import Tool


def tool_step(task_run: TaskRun, tool: Tool, index: int, text: str) -> Program[Any]:
    """One `run`: serve the step from the journal, settle what is pending, or make it happen for the first time.

    `text` is the canonical text of the arguments. Each call gets values read from it: what the call changes in place
    is seen by nobody, as on a resume.
    """
    # The journal may not know this tool: a script need not register its tools.
    context = task_run.context
    if tool.name not in context.tools:
        context = replace(context, tools={**context.tools, tool.name: tool})
    new = _described(task_run, tool, index, text)
    resumed = yield from resume_step(task_run, context, new, defaults=tool.defaults())
    if resumed is not None and resumed.takes_stored:
        text = resumed.step.arguments_json or "{}"
    if resumed is not None and resumed.ended:
        return resumed.outcome(task_run)
    new = _prepared(task_run, tool, new, text)
    if resumed is not None:
        return (yield from repeat_step(task_run, resumed.step, read(task_run, tool, new, text)))
    if tool.effect == "mutating":
        return (yield from _first_dispatch(task_run, context, tool, new))
    yield Write(context.store, lambda tx: _insert(task_run, tx, new))
    return (yield from read(task_run, tool, new, text))


def _described(task_run: TaskRun, tool: Tool, index: int, text: str) -> steps.NewStep:
    return steps.NewStep(
        task_id=task_run.task_id,
        step_index=index,
        tool_name=tool.name,
        effect=tool.effect,
        key=ids.step_key(task_run.task_id, index, text),
        arguments_json=text,
        transport=tool.transport,
        drift=tool.drift,
    )


def _prepared(task_run: TaskRun, tool: Tool, new: steps.NewStep, text: str) -> steps.NewStep:
    """The step with its profile and its frozen request; every refusal comes before anything is written."""
    secrets = task_run.context.secrets
    request = None
    profile = None
    if tool.transport == "http":
        profile = task_run.profiles.get(tool.provider or "") or task_run.profiles["generic_none"]
        request = frozen_request.freeze_request(
            tool.request(codec.loads(text)), profile=profile, key=new.key, environ=secrets.environ
        )
        names = frozen_request.list_references(request)
        frozen_request.resolve_request(request, secrets.environ)
        secrets.learn(names)
    elif tool.effect == "mutating":
        profile = python_profile(tool.keyed, tool.status is not None, tool.horizon)
    secrets.refuse(new.arguments_json, f"Step {new.step_index} ({tool.name})")
    if profile is None:
        return new
    return replace(new, profile=profile, request=request)


def _insert(task_run: TaskRun, tx: Transaction, new: steps.NewStep) -> None:
    task_run.begin(tx)
    steps.insert_step(tx, new)


def _first_dispatch(task_run: TaskRun, context: SettleContext, tool: Tool, new: steps.NewStep) -> Program[Any]:
    def begin(tx: Transaction) -> tuple[attempts.Mark | None, Step]:
        _insert(task_run, tx, new)
        # Under a clock that went back (law 8), or from a restored file, nothing is sent, not even for the first time.
        may_send = tx.now >= tx.newest and boots.find_doubt(tx) is None
        mark = attempts.mark_dispatch(tx, new.task_id, new.step_index, generation=0) if may_send else None
        step = steps.find_step(tx, new.task_id, new.step_index)
        assert step is not None
        return mark, step

    # Payload, key and mark are on the platter when this returns; if they are not, the tool is not called.
    mark, step = yield Write(context.store, begin, sync=True)
    assert new.profile is not None
    intent = Intent(step=step, profile=new.profile, request=new.request)
    sent = Dispatched()
    if mark is not None:
        sent = yield from dispatch(context.store, context.secrets, tool, intent, mark)
        if sent.text is not None:
            return codec.loads(sent.text)
    settled = yield from settle_step(context, new.task_id, new.step_index, raised=sent.raised)
    return settled_outcome(task_run, settled)
