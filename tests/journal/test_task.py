"""A task as its handler sees it: steps in order, stored before they happen, served when they happened."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from journal import (
    InvalidArguments,
    NoEffect,
    OutcomeUnknown,
    Reply,
    StepFailed,
    StepWaiting,
    TaskClosed,
    UnorderedStep,
    UsageError,
    codec,
    tool,
)
from journal.keys import key
from tests.journal.agent import World, opened, python, rows, steps_of, task_row


@pytest.fixture
def path(tmp_path):
    return tmp_path / "j.db"


@pytest.fixture
def world():
    return World()


def test_a_resume_returns_what_was_stored_and_calls_nothing(path, world):
    def agent(task):
        issue = task.run(world.read, number=42)
        plan = task.ask(world.model, "what now?")
        done = task.run(world.write, "a.txt", text=plan.content["answer"])
        return issue, plan, done, task.run(world.once, "tag")

    results = []
    for _ in range(3):
        with opened(path, world) as journal:
            assert journal.recover().model_calls == 0
            with journal.task("t") as task:
                results.append(agent(task))
    assert world.names() == ["read", "model", "write", "once"]
    assert results[0] == results[1] == results[2]
    assert [run["served_through"] for run in rows(path, "SELECT * FROM agent_task_run ORDER BY run")] == [-1, 3, 3]


def test_arguments_are_bound_by_the_signature_and_defaults_are_filled_in(path, world):
    with opened(path, world) as journal, journal.task("t") as task:
        task.run(world.read, 5)
        task.run(world.write, "p", text="x")
    read, write = steps_of(path, "t")
    assert read["arguments_json"] == '{"note": "none", "number": 5}'
    assert write["arguments_json"] == '{"path": "p", "text": "x"}'  # without `call`
    assert write["idempotency_key"] == key("t", 1, write["arguments_json"])
    assert write["payload_sha256"] == write["args_hash"]


def test_an_intent_is_on_disk_before_its_tool_runs(path, world):
    seen: list[dict[str, Any]] = []

    @tool(effect="mutating")
    def look(call: Any, name: str) -> None:
        seen.extend(steps_of(path, call.task_id))
        seen.extend(rows(path, "SELECT * FROM agent_step_attempt"))
        assert call.key == seen[0]["idempotency_key"]

    with opened(path, world) as journal, journal.task("t") as task:
        assert task.run(look, "x") is None
    step, attempt = seen
    assert (step["status"], step["arguments_json"]) == ("pending", '{"name": "x"}')
    assert (attempt["attempt"], attempt["verdict"]) == (1, None)
    assert (steps_of(path, "t")[0]["status"], steps_of(path, "t")[0]["output_json"]) == ("committed", "null")


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


def test_another_thread_is_told_to_open_a_branch(path, world):
    with opened(path, world) as journal, journal.task("t") as task:
        caught: list[BaseException] = []

        def other() -> None:
            try:
                task.run(world.read, 1)
            except BaseException as error:
                caught.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert isinstance(caught[0], UnorderedStep)
        assert "task.branch(name)" in str(caught[0])
        assert task.run(world.read, 2)["number"] == 2
    assert world.calls == [("read", 2)]


def test_branches_have_steps_of_their_own_and_run_side_by_side(path, world):
    def work(task: Any, name: str) -> None:
        with task.branch(name) as child:
            child.run(world.read, 1)
            child.run(world.write, name)

    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            threads = [threading.Thread(target=work, args=(task, name)) for name in ("a", "b", "c")]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            task.run(world.read, 9)
    assert len(world.calls) == 7
    children = rows(path, "SELECT * FROM agent_task WHERE parent_id = 't' ORDER BY task_id")
    assert [(row["task_id"], row["status"]) for row in children] == [
        ("t/a", "completed"),
        ("t/b", "completed"),
        ("t/c", "completed"),
    ]


def test_a_branch_name_is_used_once_per_run(path, world):
    with opened(path, world) as journal, journal.task("t") as task:
        task.branch("a").leave(None)
        for name in ("a", ""):
            with pytest.raises(UsageError, match="used once"):
                task.branch(name)
        with pytest.raises(UsageError, match="surrogate"):
            task.branch("\ud83d")


def test_a_branch_and_a_task_of_its_own_never_share_an_id(path, world):
    with opened(path, world) as journal:
        journal.task("t/a").leave(None)
        with journal.task("t") as task:
            with pytest.raises(UsageError, match="a task of its own"):
                task.branch("a")
            with task.branch("b") as child, child.branch("c"):
                pass
        with pytest.raises(UsageError, match="a branch of 't'"):
            journal.task("t/b")
        with journal.task("t/b/c/d") as other:
            other.run(world.read, 1)
    assert task_row(path, "t/b/c")["parent_id"] == "t/b"
    assert task_row(path, "t/b/c/d")["parent_id"] is None


def test_a_task_completes_only_when_no_branch_has_a_pending_step(path, world):
    world.fail = RuntimeError("lost")
    with opened(path, world) as journal, journal.task("t") as task:
        with pytest.raises(OutcomeUnknown), task.branch("a") as child:
            child.run(world.blind, "x")
        task.run(world.read, 1)
    assert (task_row(path, "t")["status"], task_row(path, "t/a")["status"]) == ("waiting", "waiting")
    assert "unresolved" in task_row(path, "t")["wait_reason"]


def test_a_task_whose_branch_is_due_later_is_looked_at_again_by_itself(path, world):
    def down(call: Any) -> Any:
        raise ConnectionError("down")

    @tool(effect="mutating", status=down)
    def send(name: str) -> str:
        raise TimeoutError("lost")

    with (
        opened(path, world, max_wait=0) as journal,
        journal.task("t") as task,
        pytest.raises(StepWaiting),
        task.branch("a") as child,
    ):
        child.run(send, "x")
    row = task_row(path, "t")
    assert (row["status"], row["wait_reason"]) == ("waiting", "unresolved: step 0 of t/a is pending")
    assert row["next_attempt_at"] is not None


def test_a_step_that_is_held_closes_the_task_in_this_process(path, world):
    world.fail = TimeoutError("no answer")
    with opened(path, world) as journal, journal.task("t") as task:
        with pytest.raises(OutcomeUnknown) as held:
            task.run(world.blind, "x")
        assert (held.value.task_id, held.value.step_index, held.value.reason) == ("t", 0, "unknown_outcome")
        with pytest.raises(TaskClosed, match="held"):
            task.run(world.read, 1)
        with pytest.raises(TaskClosed):
            task.ask(world.model, "q")
    assert world.names() == ["blind"]
    assert (task_row(path, "t")["status"], task_row(path, "t")["wait_reason"]) == (
        "waiting",
        "held: step 0: unknown_outcome",
    )


def test_a_task_that_was_left_takes_no_step(path, world):
    with opened(path, world) as journal:
        with journal.task("t") as task:
            pass
        with pytest.raises(TaskClosed):
            task.run(world.read, 1)


def test_a_task_is_open_once(path, world):
    with opened(path, world) as journal, journal.task("t"), pytest.raises(UsageError, match="open"):
        journal.task("t")


def test_a_failure_is_stored_and_raised_again_with_its_type_message_and_chain(path, world):
    class Odd(Exception):
        pass

    @tool(effect="read_only")
    def broken() -> None:
        world.calls.append(("broken", None))
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise Odd("outer \ud83d") from error

    seen = []
    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task, pytest.raises(StepFailed) as caught:
            task.run(broken)
        seen.append(caught.value)
    assert world.names() == ["broken"]
    first, again = seen
    assert first.type == again.type
    assert first.type.endswith("Odd")
    assert first.chain == again.chain == ("KeyError: 'inner'",)
    assert "outer \\ud83d" in str(first)
    assert steps_of(path, "t")[0]["status"] == "failed"


def test_a_mutating_tool_that_surely_did_nothing_fails_its_step(path, world):
    world.fail = NoEffect("the branch exists")
    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            with pytest.raises(StepFailed, match="the branch exists"):
                task.run(world.blind, "x")
            task.run(world.read, 1)  # the task goes on
    assert world.names() == ["blind", "read"]


def test_a_tool_that_raised_after_its_effect_is_settled_by_its_status(path, world):
    world.fail = TimeoutError("no answer")  # raised after the effect stood in the world
    with opened(path, world) as journal, journal.task("t") as task:
        assert task.run(world.once, "tag") == {"name": "tag"}
    assert world.names() == ["once"]
    assert len(world.asked) == 1
    assert steps_of(path, "t")[0]["status"] == "committed"


def test_a_failed_task_that_is_opened_again_and_goes_on_is_running_again(path, world):
    with opened(path, world) as journal:
        task = journal.task("t")
        task.run(world.read, 1)
        task.leave(ZeroDivisionError("the handler's own"))
        assert task_row(path, "t")["status"] == "failed"
        with journal.task("t") as task:
            task.run(world.read, 1)
            assert task_row(path, "t")["status"] == "failed"  # served: nothing new happened
            task.run(world.write, "p")
            assert task_row(path, "t")["status"] == "running"
    assert task_row(path, "t")["status"] == "completed"
    assert task_row(path, "t")["error_json"] is None


def test_a_completed_task_that_takes_a_further_step_is_recovered_like_any_other(path, world):
    with opened(path, world) as journal:
        journal.task("t").leave(None)
        world.fail = RuntimeError("lost")
        with pytest.raises(OutcomeUnknown), journal.task("t") as task:
            task.run(world.blind, "x")
    with opened(path, world) as journal:
        assert journal.recover().held == 1
    assert task_row(path, "t")["status"] == "waiting"


@pytest.mark.parametrize(
    "task_id",
    ["a/b", "a?b", "a#b", "a%2Fb", "..", "a b ", "💡", "x" * 512, "a\\b", "a\nb", "t:0", "<img onerror=x>", "'; --"],
)
def test_any_text_is_a_task_id(path, world, task_id):
    for _ in range(2):
        with opened(path, world) as journal, journal.task(task_id) as task:
            task.run(world.write, "p")
    assert len(world.calls) == 1
    assert task_row(path, task_id)["status"] == "completed"


@pytest.mark.parametrize("task_id", ["", "x" * 513, "a\x00b", "\ud83d"])
def test_what_cannot_be_a_task_id_is_refused(path, world, task_id):
    with opened(path, world) as journal, pytest.raises(UsageError, match="Task id"):
        journal.task(task_id)


@pytest.mark.parametrize(
    "output",
    [
        (1, 2),
        {"when": datetime(2026, 11, 29, tzinfo=UTC)},
        None,
        "",
        {1: "a"},
        [float("nan")],
        {"big": "x" * 100_000},
        "é💡",
        b"bytes",
        object,
    ],
    ids=lambda output: type(output).__name__,
)
@pytest.mark.parametrize("effect", ["read_only", "mutating"])
def test_the_first_run_returns_what_a_resume_returns(path, world, output, effect):
    calls = []

    @tool(effect=effect)
    def produce() -> Any:
        calls.append(1)
        return output

    results = []
    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            results.append(task.run(produce))
    assert len(calls) == 1
    assert json.dumps(results[0]) == json.dumps(results[1])
    step = steps_of(path, "t")[0]
    assert step["status"] == "committed"
    stored = output == {1: "a"} or isinstance(output, list | bytes | type)
    assert step["output_complete"] == int(not stored)


def test_a_big_body_stands_once_beside_the_row_and_reads_back(path, world):
    big = "x" * 50_000
    with opened(path, world) as journal, journal.task("t") as task:
        for _ in range(3):
            assert task.run(world.read, 1, note=big)["note"] == big
    assert rows(path, "SELECT count(*) AS n FROM agent_body")[0]["n"] == 1  # input and output are one text
    assert all(len(step["arguments_json"]) < 200 for step in steps_of(path, "t"))
    with opened(path, world) as journal, journal.task("t") as task:
        assert task.run(world.read, 1, note=big)["note"] == big
    assert len(world.calls) == 3


def test_act_runs_every_call_of_a_reply_and_asks_the_model_once(path, world):
    def choose(question: str) -> Reply:
        world.calls.append(("choose", question))
        return Reply(
            "",
            calls=[
                {"name": "read", "arguments": {"number": 1}},
                {"tool": "write", "arguments": '{"path": "p"}'},
                ("once", {"name": "n"}),
                {"name": "missing", "arguments": {}},
                {"name": "read", "arguments": {"number": float("inf")}},
                {"name": "read", "arguments": {"wrong": 1}},
                {"name": "read", "arguments": "not json"},
                {"name": "\ud83d" * 500, "arguments": {}},
                7,
                {"name": "read", "arguments": {"number": 2}},
            ],
        )

    shown = []
    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            shown.append([str(output) for output in task.act(choose, "q")])
    assert world.names() == ["choose", "read", "write", "once", "read"]
    assert len(shown[0]) == 10
    assert shown[0] == shown[1]
    assert "$.arguments.number: is inf" in shown[0][4]
    statuses = [step["status"] for step in steps_of(path, "t")]
    assert statuses == ["committed"] * 4 + ["failed"] * 6 + ["committed"]


def test_a_reply_that_is_no_reply_and_a_reply_full_of_odd_values_are_kept(path, world):
    class Sdk:
        def __str__(self) -> str:
            return "model-\ud83d"

    def plain(question: str) -> Any:
        return {"text": question}

    def odd(question: str) -> Reply:
        return Reply(object(), usage=object(), model=Sdk(), response_id=7, calls=None)  # type: ignore[arg-type]

    results = []
    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            results.append((task.ask(plain, "q"), task.ask(odd, "q")))
    assert results[0] == results[1]
    assert results[0][0].content == {"text": "q"}
    assert (results[0][1].model, results[0][1].response_id) == ("model-\\ud83d", "7")
    calls = rows(path, "SELECT * FROM agent_model_call ORDER BY step_index")
    assert [call["state"] for call in calls] == ["unknown", "unknown"]


def test_a_model_that_fails_is_stored_and_not_asked_again(path, world):
    def broken(question: str) -> Reply:
        world.calls.append(("broken", question))
        raise ConnectionError("model is down")

    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task, pytest.raises(StepFailed, match="down"):
            task.ask(broken, "q")
    assert world.names() == ["broken"]
    (call,) = rows(path, "SELECT * FROM agent_model_call")
    assert (call["state"], call["in_uncached"]) == ("unknown", None)


def test_a_prompt_is_kept_as_size_hash_and_preview_unless_asked_otherwise(path, world):
    prompt = "p" * 5000
    for keep, index in ((False, 0), (True, 0)):
        file = path.with_name(f"{keep}.db")
        with opened(file, world, keep_prompt=keep) as journal, journal.task("t") as task:
            task.ask(world.model, prompt)
        stored = codec.loads(steps_of(file, "t")[index]["arguments_json"])
        text = codec.dumps({"question": prompt})
        assert (stored["prompt_bytes"], stored["preview"]) == (len(text), text[:200])
        assert stored.get("prompt") == (text if keep else None)


def test_a_pending_read_of_a_killed_process_is_simply_run_again(path, world):
    @tool(effect="read_only")
    def cut() -> int:
        world.calls.append(("cut", None))
        if len(world.calls) == 1:
            raise KeyboardInterrupt
        return 1

    with opened(path, world) as journal:
        with pytest.raises(KeyboardInterrupt), journal.task("t") as task:
            task.run(cut)
        step = steps_of(path, "t")[0]
        assert (step["status"], step["starts"], step["error_json"]) == ("pending", 0, None)
        with journal.task("t") as task:
            assert task.run(cut) == 1


def test_an_interrupt_in_a_mutating_tool_is_no_outcome(path, world):
    @tool(effect="mutating")
    def cut() -> None:
        raise SystemExit(3)

    with opened(path, world) as journal:
        with pytest.raises(SystemExit), journal.task("t") as task:
            task.run(cut)
        with pytest.raises(OutcomeUnknown), journal.task("t") as task:
            task.run(cut)
    (attempt,) = rows(path, "SELECT * FROM agent_step_attempt")
    assert (attempt["verdict"], attempt["kind"]) == ("unknown", "no_outcome")


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


def test_a_handler_that_fails_beside_an_open_step_does_not_end_its_task(path, world):
    def handler(task: Any) -> None:
        try:
            with task.branch("a") as child:
                child.run(world.blind, "x")
        except SystemExit:
            raise ValueError("the handler's own") from None

    world.fail = SystemExit()
    with opened(path, world) as journal, pytest.raises(ValueError, match="own"), journal.task("t") as task:
        handler(task)
    row = task_row(path, "t")
    assert (row["status"], row["wait_reason"]) == ("waiting", "unresolved: step 0 of t/a is pending")


def test_a_status_function_that_kills_its_process_is_quarantined_alone(path):
    code = """
        import os, sys
        from journal import Journal, tool

        def find(call):
            print("asked", flush=True)
            os.kill(os.getpid(), 9)

        @tool(effect="mutating", status=find)
        def send(name):
            raise TimeoutError("no answer")

        with Journal(sys.argv[1], agent="a", tools=[send]) as journal:
            journal.recover()
            with journal.task("t") as task:
                task.run(send, "x")
    """
    ended = [python(code, path) for _ in range(5)]
    assert [done.returncode for done in ended] == [-9, -9, -9, 75, 75]
    assert [done.stdout for done in ended] == ["asked\n"] * 3 + [""] * 2
    assert steps_of(path, "t")[0]["hold_reason"] == "quarantined"
    assert rows(path, "SELECT count(*) AS n FROM agent_step_attempt") == [{"n": 1}]
