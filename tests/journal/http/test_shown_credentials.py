"""What people come to see of a failure: a log, a raised error, a name. No credential is in it."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from journal import InvalidArguments, Reply, Request, StepFailed, env, http_tool, tool
from tests.journal.agent import all_bytes, opened, rows, serving, soon, status, task_row
from tests.journal.raw_server import json_answer
from tests.journal.raw_server import serving as answering

SECRET = "s3cr3t/value+1"


@http_tool(effect="mutating")
def post(where: str) -> Request:
    return Request("POST", where, headers={"Authorization": env("FORGE_TOKEN")}, json={})


@tool(effect="read_only")
def broken() -> None:
    raise ConnectionError(f"token {SECRET} was refused")


@pytest.fixture
def address(monkeypatch):
    monkeypatch.setenv("FORGE_TOKEN", SECRET)
    with answering(json_answer(200, b"{}")) as server:
        yield f"{server.url}/"


def test_the_log_of_serve_shows_no_credential(path, world, address, caplog):
    def again(task: Any) -> None:
        task.run(post, address)
        try:
            task.run(broken)
        except StepFailed as error:
            raise RuntimeError("given up") from error

    def own(task: Any) -> None:
        task.run(post, address)
        raise ValueError(f"my own words: {SECRET}")

    def named(task: Any) -> None:
        task.run(post, address)
        task.run(world.read, {SECRET: float("nan")})

    handlers = {"again": again, "own": own, "named": named}
    with opened(path, world, handlers=handlers) as journal, caplog.at_level("INFO", logger="journal"):
        for name in handlers:
            journal.submit(name, task_id=name)
        with serving(journal):
            soon(lambda: all(status(path, name) == "failed" for name in handlers))
    shown = caplog.text + "".join(record.exc_text or "" for record in caplog.records)
    assert "ConnectionError: token ${FORGE_TOKEN} was refused" in shown
    assert "my own words: ${FORGE_TOKEN}" in shown
    assert "given up" in shown
    assert SECRET not in shown
    assert "s3cr3t" not in "".join(str(task_row(path, name)["error_json"]) for name in handlers)


def test_a_new_branch_that_is_named_by_a_credential_is_refused(path, world, address):
    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            # An ordinary word when this branch began, which a resume opens again.
            with task.branch(f"of {SECRET}") as child:
                child.run(world.read, 1)
            task.run(post, address)
            with pytest.raises(InvalidArguments, match="FORGE_TOKEN") as caught:
                task.branch(f"new {SECRET}")
            assert SECRET not in str(caught.value)
    assert [row["task_id"] for row in rows(path, "SELECT task_id FROM agent_task ORDER BY 1")] == [
        "t",
        f"t/of {SECRET}",
    ]
    assert world.calls == [("read", 1)]


def test_a_refused_call_does_not_show_the_models_words_in_its_traceback(path, world, address):
    def choose() -> Reply:
        return Reply("", calls=[{"name": SECRET, "arguments": {}}, {"name": "read", "arguments": {SECRET: 1}}])

    for _ in range(2):
        with opened(path, world) as journal, journal.task("t") as task:
            task.run(post, address)
            answers = task.act(choose)
        assert [type(answer) for answer in answers] == [StepFailed, StepFailed]
        shown = "".join("".join(traceback.format_exception(answer)) for answer in answers)
        assert "${FORGE_TOKEN}" in shown
        assert SECRET not in shown
    assert SECRET.encode() not in all_bytes(path)


def test_the_credential_of_a_status_query_is_known_to_the_next_boot(path, world, address, monkeypatch):
    monkeypatch.setenv("STATUS_TOKEN", f"{SECRET}/status")
    status = {
        "request": "GET /by/{key}",
        "headers": {"Authorization": {"env": "STATUS_TOKEN"}},
        "interpret": [{"status": 200, "is": "exists"}],
    }
    post_and_ask = http_tool(effect="mutating", provider="forge")(post.function)

    @tool(effect="read_only")
    def printenv() -> str:
        return f"STATUS_TOKEN={SECRET}/status"

    with opened(path, world, providers={"forge": {"status": status}}) as journal, journal.task("t") as task:
        task.run(post_and_ask, address)
    with opened(path, world) as journal, journal.task("u") as task:
        assert task.run(printenv) == "STATUS_TOKEN=${STATUS_TOKEN}"
