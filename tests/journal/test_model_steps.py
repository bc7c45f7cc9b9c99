"""A model is asked once: its reply, its failure and its prompt are kept."""

from __future__ import annotations

from typing import Any

import pytest

from journal import Journal, OutcomeUnknown, Reply, Request, StepFailed, StepWaiting, codec, http_tool, tool
from journal.inbox import mailbox
from tests.journal.agent import opened, rows, steps_of


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


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_call_whose_request_is_refused_fails_alone(path, world, asynchronous):
    def made(subject: str, place: str) -> Request:
        return Request("POST", f"http://127.0.0.1/{place}", headers={"X-Subject": subject}, json={})

    async def made_later(subject: str, place: str) -> Request:
        return made(subject, place)

    mail = http_tool(effect="mutating", name="mail")(made_later if asynchronous else made)

    def choose(question: str) -> Reply:
        world.calls.append(("choose", question))
        return Reply(
            "",
            calls=[
                ("mail", {"subject": "a\nb", "place": "x"}),
                ("mail", {"subject": "a", "place": "ä b"}),
                ("read", {"number": 2}),
            ],
        )

    shown = []
    for _ in range(2):
        with Journal(path, agent="triage", tools=[*world.tools(), mail]) as journal, journal.task("t") as task:
            shown.append([str(output) for output in task.act(choose, "q")])
    assert shown[0] == shown[1]
    assert "'X-Subject': its value holds a control character" in shown[0][0]
    assert "non-ASCII" in shown[0][1]
    assert world.names() == ["choose", "read"]
    assert [step["status"] for step in steps_of(path, "t")] == ["committed", "failed", "failed", "committed"]


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


class Mute:
    """Raises whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Deaf(dict[str, Any]):
    """A mapping that cannot be read."""

    def get(self, *_: object) -> Any:
        raise RuntimeError("get")


@pytest.mark.parametrize(
    "odd",
    [
        {"calls": 5},
        {"calls": Mute()},
        {"calls": [Mute()]},
        {"calls": [Deaf(a=object())]},
        {"model": Mute()},
        {"service_tier": Mute()},
        {"response_id": Mute()},
        {"usage": Mute()},
        {"usage": Deaf(prompt_tokens=Mute())},
        {"usage": {"prompt_tokens": 10**5000}},
    ],
    ids=lambda odd: next(iter(odd)),
)
def test_an_answer_is_kept_and_paid_once_however_odd_its_reply_is(path, world, odd):
    def choose(question: str) -> Reply:
        world.calls.append(("choose", question))
        return Reply("kept", **odd)

    shown = []
    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            shown.append(task.ask(choose, "q"))
    assert world.names() == ["choose"]
    assert shown[0] == shown[1]
    assert shown[0].content == "kept"
    (step,) = steps_of(path, "t")
    assert (step["status"], step["output_complete"]) == ("committed", 0)
    (call,) = rows(path, "SELECT * FROM agent_model_call")
    assert call["state"] in ("unknown", "partial")


def test_calls_that_cannot_be_read_are_a_failed_step_of_act(path, world):
    with opened(path, world) as journal, journal.task("t") as task:
        (failed,) = task.act(lambda: Reply("", calls=5))  # type: ignore[arg-type]
    assert isinstance(failed, StepFailed)
    assert "cannot be read" in str(failed)


def recovery_calls(path):
    return [boot["recovery_model_calls"] for boot in rows(path, "SELECT * FROM agent_boot ORDER BY boot")]


def asked_by_a_person(journal: Journal) -> None:
    mailbox.post_message(journal.path, {"kind": "status", "task_id": "t", "step_index": 0, "actor": "ann"})
    journal.context.apply_inbox()


@pytest.mark.parametrize(
    "recover", [Journal.recover, lambda journal: journal.context.recover_task("t"), asked_by_a_person]
)
def test_a_model_call_that_recovery_makes_is_counted_against_the_promise(path, world, recover, tmp_path, monkeypatch):
    moved = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    asking: list[Any] = []

    def asks(call: Any) -> Any:
        if not asking:
            raise TimeoutError
        asking[0].ask(world.model, "q")

    @tool(effect="mutating", status=asks)
    def once(name: str) -> None:
        raise TimeoutError

    for boot in range(2):
        with Journal(path, agent="triage", tools=[once], max_wait=0) as journal, journal.task("other") as task:
            if boot:
                assert recovery_calls(path) == [0, 0]
                asking.append(task)
                moved.write_text("600")
                recover(journal)
                task.ask(world.model, "again")
            else:
                with pytest.raises((OutcomeUnknown, StepWaiting)), journal.task("t") as lost:
                    lost.run(once, "x")
    assert recovery_calls(path) == [0, 1], "what a task asks beside it is no part of it"


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
