"""The step of a model's call. One that is refused is committed as failed, so that it has an answer on resume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from journal import codec, ids, stored_errors
from journal.effects import Program, Write
from journal.errors import InvalidArguments
from journal.models import Step
from journal.reply import call_arguments, call_name, read_arguments
from journal.steps.resume import resume_step
from journal.steps.task_run import TaskRun
from journal.steps.tool_step import tool_step
from journal.store.sql import steps
from journal.store.transaction import Transaction
from journal.tools import Tool

# A model may answer with any text where a tool's name should be.
_NAME_CHARACTERS = 200


def called_step(task_run: TaskRun, tool: Tool | None, index: int, call: Any) -> Program[Any]:
    """Run one call of a Reply; an unknown tool or refused arguments fail the step it would have been."""
    name, given = call_name(call), call_arguments(call)
    try:
        if isinstance(call, Mapping) and "refused" in call:
            raise InvalidArguments(str(call["refused"]), path=str(call.get("path", "$")))
        if tool is None:
            raise InvalidArguments(f"Tool {name!r}: not among this agent's tools.", path="$")
        text = codec.dumps(tool.bind((), read_arguments(given)))
        return (yield from tool_step(task_run, tool, index, text))
    except InvalidArguments as error:
        refusal = error
    # Not inside the `except`: the failure's traceback would show the refusal as the model worded it.
    return (yield from _refused_step(task_run, name, tool, index, given, refusal))


def _refused_step(
    task_run: TaskRun, name: str, tool: Tool | None, index: int, arguments: Any, error: InvalidArguments
) -> Program[Any]:
    """Store the refusal as this step's failure and raise it; a resume raises the same from the journal."""
    context = task_run.context
    text = context.secrets.stored(arguments)[0]
    name = context.secrets.hide(codec.escaped(name))[:_NAME_CHARACTERS] or "(no name)"
    failure = stored_errors.dump_error(error, hide=context.secrets.hide)
    new = steps.NewStep(
        task_id=task_run.task_id,
        step_index=index,
        tool_name=name,
        effect="read_only" if tool is None else tool.effect,
        key=ids.step_key(task_run.task_id, index, text),
        arguments_json=text,
    )

    def hide_credentials(step: Step) -> Step:
        # A value that became a credential later is hidden in new text, but not in the stored text.
        return replace(step, arguments_json=context.secrets.hide_json(step.arguments_json or "{}"))

    resumed = yield from resume_step(task_run, context, new, registered=tool is not None, shown=hide_credentials)
    if resumed is not None and resumed.ended:
        return resumed.outcome(task_run)

    def commit(tx: Transaction) -> None:
        task_run.begin(tx)
        if resumed is None:
            steps.insert_step(tx, new)
        steps.end_step(tx, new.task_id, index, "failed", failure)

    yield Write(context.store, commit)
    raise stored_errors.load_step_failed(failure, new.label)
