"""A credential the runtime resolved never reaches the disk: not the file, its log, its messages."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import traceback
from contextlib import closing
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from journal import InvalidArguments, Reply, Request, StepFailed, env, http_tool, tool
from journal.http.secrets import Secrets
from tests.journal.agent import World, all_bytes, opened, rows, steps_of
from tests.journal.raw_server import json_answer, serving

SECRET = 's3cr3t-"quoted"-value/with+signs'


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "journal"
    folder.mkdir()
    return folder / "j.db"


@pytest.fixture
def world(monkeypatch):
    monkeypatch.setenv("FORGE_TOKEN", SECRET)
    monkeypatch.setenv("FORGE_PIN", "86420975")
    return World()


@http_tool(effect="mutating")
def post(where: str) -> Request:
    return Request("POST", where, headers={"Authorization": env("FORGE_TOKEN"), "X-Pin": env("FORGE_PIN")}, json={})


def on_disk(path, tmp_path) -> bytes:
    """All bytes of the live journal, read from a copy of its folder so that no lock of this process is dropped."""
    copied = tmp_path / "copy"
    # `cp` is another process: SQLite's locks here stay as they are.
    subprocess.run(["cp", "-r", path.parent, copied], check=True)
    found = all_bytes(copied / path.name)
    shutil.rmtree(copied)
    return found


def leaks(data: bytes) -> list[str]:
    forms = (SECRET, json.dumps(SECRET)[1:-1], "86420975", "s3cr3t")
    return [form for form in forms if form.encode() in data]


def test_a_resolved_credential_is_nowhere_in_the_journals_files(path, tmp_path, world):
    @tool(effect="read_only")
    def printenv() -> dict[str, Any]:
        return {"FORGE_TOKEN": SECRET, SECRET: 1, "pin": 86420975, "list": [f"x{SECRET}y", 1.5], "kept": "plain"}

    @tool(effect="read_only")
    def broken() -> None:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise ValueError(f"token {SECRET} was refused") from error

    @tool(effect="mutating", status=lambda call: {"token": SECRET})
    def lost() -> None:
        raise TimeoutError(f"with {SECRET}")

    def model(question: str) -> Reply:
        return Reply({"text": SECRET}, usage={"prompt_tokens": 1, "note": SECRET}, calls=[("x", {"a": SECRET})])

    def failing_model(question: str) -> Reply:
        raise ConnectionError(SECRET)

    with serving(json_answer(200, b"{}")) as server:
        results = []
        for _ in range(2):
            with opened(path, world) as journal, journal.task("t") as task:
                task.run(post, f"http://127.0.0.1:{server.port}/")
                found = [task.run(printenv), task.run(lost), task.ask(model, "q").content]
                with pytest.raises(StepFailed) as caught:
                    task.run(broken)
                found += [str(caught.value), caught.value.chain]
                with pytest.raises(StepFailed) as caught:
                    task.ask(failing_model, "q")
                found.append(str(caught.value))
                results.append(found)
                assert leaks(on_disk(path, tmp_path)) == []
        assert leaks(repr(results).encode()) == []
        assert results[0] == results[1]
        assert results[0][0]["FORGE_TOKEN"] == "${FORGE_TOKEN}"
        assert (results[0][0]["pin"], results[0][0]["kept"]) == ("${FORGE_PIN}", "plain")


def test_a_credential_in_arguments_is_refused_without_being_shown(path, tmp_path, world):
    with serving(json_answer(200, b"{}")) as server, opened(path, world) as journal:
        with journal.task("t") as task:
            task.run(post, f"http://127.0.0.1:{server.port}/")
            for use in (
                lambda: task.run(world.write, f"see {SECRET}"),
                lambda: task.run(world.read, 1, note=SECRET),
                lambda: task.ask(world.model, SECRET),
                lambda: task.run(post, f"http://127.0.0.1/?pin=86420975"),  # noqa: F541
            ):
                with pytest.raises(InvalidArguments, match=r"env\(") as caught:
                    use()
                assert leaks(str(caught.value).encode()) == []
        assert leaks(on_disk(path, tmp_path)) == []
    assert [step["tool_name"] for step in steps_of(path, "t")] == ["post"]
    assert world.calls == []


def test_a_resumed_process_knows_the_credentials_of_the_boots_before(path, tmp_path, world):
    @tool(effect="read_only")
    def printenv() -> str:
        return f"TOKEN={SECRET}"

    with serving(json_answer(200, b"{}")) as server:
        address = f"http://127.0.0.1:{server.port}/"
        with opened(path, world) as journal, journal.task("t") as task:
            task.run(post, address)
        with opened(path, world) as journal, journal.task("t") as task:
            task.run(post, address)  # served: nothing is resolved for it
            assert task.run(printenv) == "TOKEN=${FORGE_TOKEN}"
            assert leaks(on_disk(path, tmp_path)) == []


def test_a_credential_at_the_edge_of_what_is_cut_is_hidden_as_a_whole(path, tmp_path, world):
    class Odd:
        def __repr__(self) -> str:
            return "z" * 190 + SECRET

    @tool(effect="read_only")
    def broken() -> None:
        raise RuntimeError("y" * 3990 + SECRET)

    @tool(effect="read_only")
    def odd() -> dict[str, Any]:
        return {"odd": Odd()}

    usage = {"prompt_tokens": "p" * 20 + SECRET, "completion_tokens": 86420975, "total_tokens": 1}
    answer = json_answer(400, b'"' + b"x" * 280 + SECRET.encode() + b'"')
    with serving(answer) as server, opened(path, world) as journal, journal.task("t") as task:
        found: list[object] = []
        for step in (lambda: task.run(post, f"{server.url}/"), lambda: task.run(broken)):
            with pytest.raises(StepFailed) as caught:
                step()
            found.append(str(caught.value))
        found += [task.run(odd), task.ask(lambda: Reply("", usage=usage)).usage]
        assert leaks(repr(found).encode()) == []
        assert leaks(on_disk(path, tmp_path)) == []
    assert repr(found).count("${FORGE_") == 5


def test_the_names_in_a_reply_are_hidden_too(path, tmp_path, world):
    def model(question: str) -> Reply:
        return Reply("", model=SECRET, response_id=SECRET, request_model=SECRET, service_tier=SECRET)

    with serving(json_answer(200, b"{}")) as server, opened(path, world) as journal, journal.task("t") as task:
        task.run(post, f"{server.url}/")
        assert leaks(repr(task.ask(model, "q")).encode()) == []
        assert leaks(on_disk(path, tmp_path)) == []
    (call,) = rows(path, "SELECT * FROM agent_model_call")
    assert {call[name] for name in ("model", "response_id", "request_model", "service_tier")} == {"${FORGE_TOKEN}"}


def test_a_raised_failure_is_chained_to_its_cause_unless_that_shows_a_credential(path, world):
    @tool(effect="read_only")
    def broken(text: str) -> None:
        error = ValueError(f"token {text}")
        error.add_note(world.fail or "")
        raise KeyError("outer") from error

    def model(question: str) -> Reply:
        raise ConnectionError(SECRET)

    with serving(json_answer(200, b"{}")) as server, opened(path, world) as journal, journal.task("t") as task:
        task.run(post, f"{server.url}/")
        for note, is_chained in (("plain", True), (f"with {SECRET}", False)):
            world.fail = note
            with pytest.raises(StepFailed) as caught:
                task.run(broken, "t")
            assert isinstance(caught.value.__cause__, KeyError) == is_chained
            assert leaks("".join(traceback.format_exception(caught.value)).encode()) == []
        with pytest.raises(StepFailed) as caught:
            task.ask(model, "q")
        assert leaks("".join(traceback.format_exception(caught.value)).encode()) == []


def test_a_prompt_asked_before_its_word_became_a_credential_is_served_on_resume(path, world):
    with serving(json_answer(200, b"{}")) as server:
        for _ in range(2):
            with opened(path, world) as journal, journal.task("t") as task:
                task.ask(world.model, f"see {SECRET}")
                task.run(post, f"{server.url}/")
    assert world.names() == ["model"]


@pytest.mark.parametrize("escaped", [json.dumps, repr, quote, lambda text: quote(text, safe=""), quote_plus])
def test_each_way_to_escape_a_text_is_known(escaped):
    secrets = Secrets({"HOOK": 'T0/B0 +"\\ä'})
    secrets.learn(["HOOK"])
    text = escaped('T0/B0 +"\\ä')
    for shown in (text, re.sub("%..", lambda found: found[0].lower(), text)):
        assert "B0" not in secrets.hide(f"see {shown}!"), shown


def test_hiding_keeps_json_json():
    secrets = Secrets({"PIN": "123456", "QUOTED": 'a"b\\c\nd', "UNSET": ""})
    secrets.learn(["PIN", "QUOTED", "UNSET", "MISSING"])
    for value in ({"n": 1234567, "f": 0.123456, "s": "x123456y", "123456": None}, 'a"b\\c\nd', [123456, True]):
        hidden = json.loads(secrets.hide_json(json.dumps(value, sort_keys=True)))
        assert "123456" not in json.dumps(hidden)
        assert 'a"b' not in json.dumps(hidden)
    assert secrets.hide_json('{"b": 1, "a": 2}') == '{"b": 1, "a": 2}'
    with closing(sqlite3.connect(":memory:")) as connection:
        assert connection.execute("SELECT json_valid(?)", (secrets.hide_json('{"n": 123456}'),)).fetchone()[0] == 1


def test_a_reference_made_text_is_refused_before_the_intent_and_shown_by_its_name_elsewhere(path, world, monkeypatch):
    monkeypatch.setenv("WEBHOOK", "http://127.0.0.1:9/hook/of-nobody")
    # Only this process understands it: stored, it would be other text to the next one.
    made = env("WEBHOOK") + "/x"

    @tool(effect="read_only")
    def told() -> str:
        return f"see {env('WEBHOOK')}/y"

    with opened(path, world, handlers={"work": lambda task, **_: None}) as journal:
        journal.tools.update(post=post, told=told)
        with pytest.raises(InvalidArguments, match=r'the arguments hold env\("WEBHOOK"\) as text'):
            journal.submit("work", task_id="s", where=made)
        with journal.task("t") as task:
            for refused in (
                lambda: task.run(world.write, made),
                lambda: task.run(post, made),
                lambda: task.run(world.read, f"{env('WEBHOOK')}/x"),
                lambda: task.ask(lambda prompt: Reply("yes"), prompt=[made]),
            ):
                with pytest.raises(InvalidArguments, match=r'hold env\("WEBHOOK"\) as text'):
                    refused()
            assert task.run(told) == "see ${WEBHOOK}/y"
    assert world.calls == []
    assert [step["tool_name"] for step in steps_of(path, "t")] == ["told"]
    assert b"WEBHOOK.end" not in all_bytes(path)
