"""The demo's servers over real HTTP: they are the oracles of the crash tests, so they are tested first."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

from agents.demo.forge import Forge
from agents.demo.hook import Hook
from agents.demo.ledger import read_effects
from agents.demo.model_server import ModelServer

PULL = {"title": "Fix the door", "head": "door-1"}


def call(server, method, path, body=None, *, key=None, token="demo-secret"):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if key:
        headers["Idempotency-Key"] = key
    try:
        connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read()), dict(response.getheaders())
    finally:
        connection.close()


@pytest.fixture
def forge():
    with Forge() as forge:
        yield forge


def test_the_same_bytes_under_one_key_are_one_pull_request(forge):
    first, pull, headers = call(forge, "POST", "/pulls", PULL, key="k1")
    again, same, marked = call(forge, "POST", "/pulls", PULL, key="k1")
    assert (first, again, pull) == (201, 201, same)
    assert "Idempotent-Replayed" not in headers
    assert marked["Idempotent-Replayed"] == "true"
    assert len(forge.effects("k1")) == 1
    assert len(forge.requests()) == 2


def test_other_bytes_under_a_known_key_are_refused(forge):
    call(forge, "POST", "/pulls", PULL, key="k1")
    status, _, _ = call(forge, "POST", "/pulls", PULL | {"title": "Another"}, key="k1")
    assert status == 422
    assert len(forge.effects()) == 1


def test_without_a_key_every_request_is_an_effect(forge):
    call(forge, "POST", "/pulls", PULL)
    call(forge, "POST", "/pulls", PULL)
    assert len(forge.effects()) == 2


def test_the_status_of_a_key_is_unknown_then_done_with_the_response(forge):
    assert call(forge, "GET", "/operations/k1")[0] == 404
    _, pull, _ = call(forge, "POST", "/pulls", PULL, key="k1")
    assert call(forge, "GET", "/operations/k1")[:2] == (200, {"state": "done", "response": pull})


def test_a_request_held_before_applying_is_in_progress(forge):
    forge.next(hold_before_apply=True)
    answers = []
    caller = threading.Thread(target=lambda: answers.append(call(forge, "POST", "/pulls", PULL, key="k1")[0]))
    caller.start()
    assert forge.script.wait_held()
    assert call(forge, "GET", "/operations/k1")[0] == 202
    assert call(forge, "POST", "/pulls", PULL, key="k1")[0] == 409
    assert forge.effects() == []
    forge.script.release()
    caller.join()
    assert answers == [201]
    assert len(forge.effects("k1")) == 1


def test_a_request_held_after_applying_has_its_effect(forge):
    forge.next(hold_after_apply=True)
    answers = []
    caller = threading.Thread(target=lambda: answers.append(call(forge, "POST", "/pulls", PULL, key="k1")[0]))
    caller.start()
    assert forge.script.wait_held()
    assert len(forge.effects("k1")) == 1
    assert call(forge, "POST", "/pulls", PULL, key="k1")[2]["Idempotent-Replayed"] == "true"
    forge.script.release()
    caller.join()
    assert answers == [201]


@pytest.mark.parametrize(("fault", "effects"), [("drop_before_apply", 0), ("drop_after_apply", 1)])
def test_a_dropped_request_answers_no_byte(forge, fault, effects):
    forge.next(**{fault: True})
    with pytest.raises(http.client.RemoteDisconnected):
        call(forge, "POST", "/pulls", PULL, key="k1")
    assert len(forge.effects("k1")) == effects


@pytest.mark.parametrize(("fault", "effects"), [("status_without_apply", 0), ("status_after_apply", 1)])
def test_a_gateway_timeout_says_nothing_about_the_effect(forge, fault, effects):
    forge.next(**{fault: 504, "retry_after": "1"})
    status, _, headers = call(forge, "POST", "/pulls", PULL, key="k1")
    assert (status, headers["Retry-After"]) == (504, "1")
    assert len(forge.effects("k1")) == effects


def test_a_fault_waits_for_the_request_it_names(forge):
    forge.next(status_without_apply=503, match="door-2")
    forge.next(status_without_apply=503, on="status")
    assert call(forge, "POST", "/pulls", PULL, key="k1")[0] == 201
    assert call(forge, "GET", "/operations/k1")[0] == 503
    assert call(forge, "POST", "/pulls", PULL | {"head": "door-2"}, key="k2")[0] == 503


def test_faults_can_be_set_over_http_and_an_unknown_one_is_named(forge):
    assert call(forge, "POST", "/control", {"next": [{"status_after_apply": 504}]})[0] == 200
    assert call(forge, "POST", "/pulls", PULL, key="k1")[0] == 504
    status, answer, _ = call(forge, "POST", "/control", {"next": [{"explode": True}]})
    assert status == 400
    assert "explode: unknown" in answer["error"]


def test_the_forge_wants_its_token_and_logs_it_nowhere(forge):
    assert call(forge, "POST", "/pulls", PULL, key="k1", token=None)[0] == 401
    call(forge, "POST", "/pulls", PULL, key="k1")
    assert forge.effects("k1")[0].request == 2
    raw = forge.requests()[1].raw
    assert b"demo-secret" not in raw
    assert b"Authorization: Bearer <secret>\r\n" in raw
    assert raw.endswith(json.dumps(PULL).encode())


def test_a_forgotten_key_is_a_new_effect(tmp_path, monkeypatch):
    offset = tmp_path / "clock"
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(offset))
    with Forge(keeps_keys=timedelta(hours=1)) as forge:
        call(forge, "POST", "/pulls", PULL, key="k1")
        offset.write_text("3601")
        assert call(forge, "POST", "/pulls", PULL, key="k1")[0] == 201
        assert len(forge.effects("k1")) == 2


def test_a_forge_started_again_remembers_its_keys(tmp_path):
    with Forge(data=tmp_path / "forge.db") as forge:
        port = forge.port
        call(forge, "POST", "/pulls", PULL, key="k1")
    with pytest.raises(ConnectionRefusedError):
        call(forge, "POST", "/pulls", PULL, key="k1")
    with Forge(data=tmp_path / "forge.db", port=port) as forge:
        assert call(forge, "POST", "/pulls", PULL, key="k1")[2]["Idempotent-Replayed"] == "true"
        assert [effect.key for effect in read_effects(tmp_path / "forge.db")] == ["k1"]


def test_the_hook_delivers_every_request_and_hides_its_address():
    with Hook(secret="s3cret-path") as hook:
        assert call(hook, "POST", "/hooks/wrong", {"text": "hi"}, token=None)[0] == 401
        for _ in range(2):
            assert call(hook, "POST", "/hooks/s3cret-path", {"text": "hi"}, key="k", token=None)[0] == 200
        assert len(hook.effects()) == 2
        assert hook.requests()[1].path == "/hooks/<secret>"
        assert b"s3cret-path" not in hook.requests()[1].raw


def test_the_model_never_says_the_same_twice_and_states_its_usage():
    prompt = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "the door squeaks " * 80}]}
    with ModelServer() as model:
        _, first, _ = call(model, "POST", "/v1/chat/completions", prompt, token=None)
        _, second, _ = call(model, "POST", "/v1/chat/completions", prompt, token=None)
        said = [json.loads(reply["choices"][0]["message"]["content"]) for reply in (first, second)]
        assert said[0] != said[1]
        assert set(said[0]) == {"title", "branch", "path", "text"}
        usage = second["usage"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        assert 0 < usage["prompt_tokens_details"]["cached_tokens"] < usage["prompt_tokens"]
        assert 0 < usage["completion_tokens_details"]["reasoning_tokens"] < usage["completion_tokens"]
        assert model.tokens() == first["usage"]["total_tokens"] + usage["total_tokens"]
        assert call(model, "GET", "/calls", token=None)[1] == {"calls": 2, "tokens": model.tokens()}


def test_a_forge_runs_as_a_process_until_sigterm(tmp_path):
    command = [sys.executable, "-m", "agents.demo.forge", "--data", str(tmp_path / "forge.db")]
    environ = {**os.environ, "FORGE_TOKEN": "t0ken"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("POST", "/pulls", json.dumps(PULL), {"Authorization": "Bearer t0ken"})
        assert connection.getresponse().status == 201
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert len(read_effects(tmp_path / "forge.db")) == 1
