"""A tool as it is declared and called: refused when it cannot be kept, its arguments stored by name."""

from __future__ import annotations

from typing import Any

import pytest

from journal import InvalidArguments, Journal, OutcomeUnknown, Request, StepWaiting, UsageError, codec, http_tool, tool
from journal.ids import step_key
from tests.journal.agent import World, opened, rows, steps_of
from tests.journal.raw_server import answer, serving


def test_arguments_are_bound_by_the_signature_and_defaults_are_filled_in(path, world):
    with opened(path, world) as journal, journal.task("t") as task:
        task.run(world.read, 5)
        task.run(world.write, "p", text="x")
    read, write = steps_of(path, "t")
    assert read["arguments_json"] == '{"note": "none", "number": 5}'
    assert write["arguments_json"] == '{"path": "p", "text": "x"}'  # without `call`
    assert write["idempotency_key"] == step_key("t", 1, write["arguments_json"])
    assert write["payload_sha256"] == write["args_hash"]


def test_parameters_may_have_the_names_that_run_and_submit_use_themselves(path, world):
    @tool(effect="read_only")
    def odd(tool: str, task_id: str, handler: str, function: str, args: str, kwargs: str) -> list[str]:
        return [tool, task_id, handler, function, args, kwargs]

    names = {"tool": "a", "task_id": "b", "handler": "c", "function": "d", "args": "e", "kwargs": "f"}
    with opened(path, world) as journal, journal.task("t") as task:
        assert task.run(odd, **names) == list("abcdef")

    def triage(task: Any, handler: str) -> str:
        return handler

    with opened(path, world, handlers={"triage": triage}) as journal:
        assert journal.submit("triage", task_id="u", handler="h").input_json == '{"handler": "h"}'


def test_extra_keywords_and_positional_only_parameters_are_stored_by_name(path, world):
    @tool(effect="mutating")
    def odd(first: int, /, second: int, **more: int) -> dict[str, int]:
        return {"first": first, "second": second, **more}

    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            assert task.run(odd, 1, 2, third=3) == {"first": 1, "second": 2, "third": 3}
    assert codec.loads(steps_of(path, "t")[0]["arguments_json"]) == {"first": 1, "second": 2, "third": 3}


def test_a_keyword_does_not_take_the_place_of_another_argument(path, world):
    @tool(effect="mutating")
    def odd(first: int, /, **more: int) -> int:
        raise AssertionError("called")

    @tool(effect="mutating")
    def called(call: Any, **more: int) -> int:
        raise AssertionError("called")

    with opened(path, world) as journal, journal.task("t") as task:
        with pytest.raises(InvalidArguments, match="odd: 'first' is given twice"):
            task.run(odd, 1, first=2)
        with pytest.raises(InvalidArguments, match="called: 'call' is given twice"):
            task.run(called, call=2)
    assert steps_of(path, "t") == []


def test_a_bare_function_is_refused_with_how_to_declare_it(path, world):
    def delete(name: str) -> None:
        raise AssertionError("called")

    with (
        opened(path, world) as journal,
        journal.task("t") as task,
        pytest.raises(UsageError, match=r'delete: not a declared tool\. Put @tool\(effect="read_only"\)'),
    ):
        task.run(delete, "x")
    with pytest.raises(UsageError, match="not a declared tool"):
        opened(path.with_name("other.db"), World()).__class__(path, agent="a", tools=[delete])


@pytest.mark.parametrize(
    "declare",
    [
        lambda: tool(effect="sometimes"),  # type: ignore[arg-type]
        lambda: tool(effect="read_only", status=print),
        lambda: tool(effect="mutating", name="\ud83d")(lambda: 1),
        lambda: tool(effect="mutating", name="a\x00")(lambda: 1),
        lambda: tool(effect="mutating")(lambda *many: 1),
        lambda: tool(effect="mutating", drift="maybe"),  # type: ignore[arg-type]
    ],
)
def test_a_tool_that_cannot_be_kept_is_refused_when_it_is_declared(declare):
    with pytest.raises(UsageError):
        declare()(lambda: 1)


@pytest.mark.parametrize(
    "declare",
    [
        tool(effect="mutating"),
        tool(effect="read_only"),
        http_tool(effect="mutating"),
        lambda function: tool(effect="mutating", status=function),
    ],
    ids=["mutating", "read_only", "http", "status"],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_function_that_yields_is_no_tool_since_a_call_of_it_runs_nothing(declare, asynchronous):
    def parts(amount: int) -> Any:
        yield amount

    async def parts_later(amount: int) -> Any:
        yield amount

    with pytest.raises(UsageError, match=r"parts(_later)?: it yields, .* Return the whole output instead"):
        declare(parts_later if asynchronous else parts)


def test_arguments_that_do_not_fit_or_cannot_be_stored_take_no_step(path, world):
    with opened(path, world) as journal, journal.task("t") as task:
        with pytest.raises(InvalidArguments, match="missing a required argument: 'number'"):
            task.run(world.read)
        with pytest.raises(InvalidArguments) as caught:
            task.run(world.write, {"items": [1, float("nan")]})
        assert caught.value.path == "$.path.items[1]"
        with pytest.raises(InvalidArguments):
            task.ask(world.model, object())
        task.run(world.read, 1)
    assert [(step["step_index"], step["tool_name"]) for step in steps_of(path, "t")] == [(0, "read")]
    assert world.names() == ["read"]


def test_a_tool_whose_provider_is_not_described_gets_the_strictest_profile_and_a_warning(path, caplog):
    with serving(answer(504)) as server:

        @http_tool(effect="mutating", provider="forge")
        def order(number: int) -> Request:
            return Request("POST", f"{server.url}/orders", json={"number": number})

        keyed = {"other": {"key": {"placement": "header", "name": "Idempotency-Key"}, "retention": {"for": "24h"}}}
        with Journal(path, agent="a", tools=[order], providers=keyed) as journal:
            (warning,) = caplog.messages
            assert "tool order: provider 'forge' is not in the profiles given" in warning
            assert "generic_none is used" in warning
            with pytest.raises(OutcomeUnknown), journal.task("t") as task:
                task.run(order, 1)
    (request,) = server.received
    assert b"idempotency-key" not in request.lower()
    step = steps_of(path, "t")[0]
    assert (step["provider"], step["hold_reason"]) == ("generic_none", "no_key_no_status")


def test_a_script_need_not_register_its_tools_to_resume(path, world):
    @tool(effect="mutating", status=lambda call: None)
    def lost(name: str) -> str:
        world.calls.append(("lost", name))
        if len(world.calls) == 1:
            raise SystemExit
        return name

    with pytest.raises(SystemExit), opened(path, world) as journal, journal.task("t") as task:
        task.run(lost, "x")
    # Absent so soon proves nothing: it waits for the horizon, in words that name no missing tool.
    with opened(path, world, max_wait=0.1) as journal, journal.task("t") as task, pytest.raises(StepWaiting):
        task.run(lost, "x")
    assert rows(path, "SELECT answer FROM agent_evidence") == [{"answer": "absent"}]
