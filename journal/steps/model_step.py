"""A model step: the model is asked once, its answer is stored, its tokens are counted."""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from journal import clock, codec, ids, stored_errors, usage
from journal.effects import Invoke, Program, Read, Sleep, Write
from journal.errors import InvalidArguments, StepWaiting, UsageError
from journal.http.secrets import Secrets
from journal.reply import Reply, store_calls
from journal.steps.divergence import hash_pieces
from journal.steps.read_step import decided, fail, repeat_step
from journal.steps.resume import resume_step
from journal.steps.task_run import TaskRun
from journal.store.sql import boots, intents, model_calls, steps
from journal.store.transaction import Transaction

_PREVIEW_CHARACTERS = 200
_NAMES = ("model", "request_model", "response_id", "service_tier")
_POLL = timedelta(seconds=0.2)


@dataclass(frozen=True, slots=True)
class Prompt:
    """All that a model is asked with: its canonical text, and copies of the arguments for the call."""

    text: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def build_prompt(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Prompt:
    """The prompt of one `ask`. Raises InvalidArguments for what cannot be stored or copied.

    The function gets copies: what it changes in place, such as a list of messages, is not seen by the caller. On a
    resume the function is not called, so the caller would otherwise go on with another list than the first time.
    """
    text = codec.dumps(_bind(function, args, kwargs), what="prompt")
    try:
        return Prompt(text, *copy.deepcopy((args, dict(kwargs))))
    except Exception as error:
        raise InvalidArguments(
            f"{_name(function)}: its arguments cannot be copied: {type(error).__name__}: {error}.",
            path="$",
            hint="Pass plain values: lists, dicts, texts, numbers.",
        ) from error


def model_step(
    task_run: TaskRun,
    function: Callable[..., Any],
    index: int,
    prompt: Prompt,
) -> Program[Reply]:
    """One `ask`: the Reply from the journal, or one call of the model."""
    new = _new_step(task_run, function, index, prompt.text)
    context = task_run.context
    resumed = yield from resume_step(task_run, context, new)
    if resumed is not None:
        if resumed.ended:
            return _reply(resumed.outcome(task_run))
        yield from _settled_first(task_run, index)
        return _reply((yield from repeat_step(task_run, resumed.step, _call(task_run, function, new, prompt))))
    context.secrets.refuse(prompt.text, new.label)
    yield from _settled_first(task_run, index)

    def begin(tx: Transaction) -> None:
        task_run.begin(tx)
        steps.insert_step(tx, new)

    yield Write(context.store, begin)
    return _reply((yield from _call(task_run, function, new, prompt)))


def _settled_first(task_run: TaskRun, index: int) -> Program[None]:
    """No model is called while the task has an intent of an older boot: a sibling step is settling it now."""
    context = task_run.context
    deadline = clock.wall() + context.max_wait
    while (yield Read(context.store, lambda tx: intents.has_older_intent(tx, task_run.task_id))):
        if task_run.is_closed() or clock.wall() > deadline:
            raise StepWaiting(
                f"Step {index} of {task_run.task_id}: an earlier intent is not resolved, so no model is called.",
                task_id=task_run.task_id,
                step_index=index,
                until=clock.wall() + context.max_wait,
            )
        yield Sleep(clock.wall() + _POLL, task_run.is_closed)


def _new_step(task_run: TaskRun, function: Callable[..., Any], index: int, prompt: str) -> steps.NewStep:
    described: dict[str, Any] = {
        "prompt_bytes": len(prompt.encode()),
        "prompt_sha256": ids.sha256_hex(prompt),
        "preview": prompt[:_PREVIEW_CHARACTERS],
    }
    if task_run.keep_prompt:
        described["prompt"] = prompt
    text = codec.dumps(described)
    return steps.NewStep(
        task_id=task_run.task_id,
        step_index=index,
        tool_name=_name(function),
        effect="model",
        key=ids.step_key(task_run.task_id, index, text),
        arguments_json=text,
        prompt=prompt,
        prompt_hashes=hash_pieces(prompt) if len(prompt) > _PREVIEW_CHARACTERS else None,
    )


def _call(task_run: TaskRun, function: Callable[..., Any], new: steps.NewStep, prompt: Prompt) -> Program[Any]:
    context = task_run.context
    recovering = boots.recovering.get()

    def opened(tx: Transaction) -> int:
        if recovering:
            boots.count_recovery_model_call(tx)
        return model_calls.open_call(tx, new.task_id, new.step_index)

    number: int = yield Write(context.store, opened)
    started = clock.boot_seconds()
    try:
        answer = yield Invoke(
            lambda: function(*prompt.args, **prompt.kwargs), blocking=not inspect.iscoroutinefunction(function)
        )
        _refuse_stream(answer)
    except Exception as error:
        text = stored_errors.dump_error(error, hide=context.secrets.hide)
        yield Write(context.store, lambda tx: _close_unknown(tx, new, number, "the call failed"), outcome=True)
        return (yield from fail(task_run, new, text, context.secrets.cause(error)))
    except GeneratorExit:
        raise
    except BaseException:

        def interrupted(tx: Transaction) -> None:
            _close_unknown(tx, new, number, "interrupted")
            steps.uncount_start(tx, new.task_id, new.step_index)

        yield Write(context.store, interrupted)
        raise
    stored, readable = _stored(answer if isinstance(answer, Reply) else Reply(answer), context.secrets)
    text, complete = context.secrets.stored(stored)
    counted, raw_usage = _counted(stored["usage"], context.secrets)
    duration = max(0.0, clock.boot_seconds() - started)

    def commit(tx: Transaction) -> bool:
        named = {name: stored[name] for name in _NAMES}
        model_calls.close_call(tx, new.task_id, new.step_index, number, counted, raw_usage=raw_usage, **named)
        return steps.commit_step(
            tx, new.task_id, new.step_index, text, complete=complete and readable, duration=duration
        )

    if (yield Write(context.store, commit, outcome=True)):
        return codec.loads(text)
    return (yield from decided(task_run, new.task_id, new.step_index))


def _refuse_stream(answer: object) -> None:
    """A stream has called nothing yet, and what is not read to its end here is not in the journal."""
    content = answer.content if isinstance(answer, Reply) else answer
    if isinstance(content, Iterator | AsyncIterator):
        raise UsageError(
            f"The model function returned a stream ({type(content).__name__}), and nothing was read from it.",
            hint="Read the stream to its end inside the function, and return the whole Reply.",
        )


def _counted(reported: object, secrets: Secrets) -> tuple[usage.TokenUsage, str | None]:
    """The tokens an answer reported, and the report as it is stored. May run an SDK's code: outside the store."""
    counted = usage.normalise_usage(reported)
    raw_usage = None if reported is None else secrets.stored(reported)[0]
    return replace(counted, flags=secrets.hide(counted.flags)), raw_usage


def _stored(reply: Reply, secrets: Secrets) -> tuple[dict[str, Any], bool]:
    """The reply's fields, its names as text and its calls as they can be stored, and whether all could be read."""
    calls, readable = store_calls(reply.calls)
    stored: dict[str, Any] = {"content": reply.content, "usage": reply.usage, "calls": calls}
    for name in _NAMES:
        value = getattr(reply, name)
        try:
            stored[name] = None if value is None else secrets.hide(codec.escaped(str(value)))
        except Exception as error:  # an SDK's object that has no text: the answer was paid and is kept all the same
            stored[name], readable = f"<{type(value).__name__}: its text raised {type(error).__name__}>", False
    return stored, readable


def _close_unknown(tx: Transaction, new: steps.NewStep, number: int, why: str) -> None:
    model_calls.close_call(
        tx, new.task_id, new.step_index, number, usage.TokenUsage(state="unknown", flags=why), raw_usage=None
    )


def _reply(stored: Any) -> Reply:
    if not isinstance(stored, dict) or "content" not in stored:
        # A reply too odd or too large to be stored (its stub), or the output that an operator gave instead.
        return Reply(stored)
    return Reply(**{**stored, "calls": tuple(stored.get("calls") or ())})


def _bind(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    try:
        signature = inspect.signature(function)
    except ValueError:
        return {"args": list(args), **kwargs}
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidArguments(f"{_name(function)}: {error}.", path="$", hint="Nothing was written.") from error
    bound.apply_defaults()
    return dict(bound.arguments)


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
