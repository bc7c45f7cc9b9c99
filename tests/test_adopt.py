"""docs/guides/adopt.md: its blocks run with the real SDKs against local servers, and resume when they are killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agents.demo.model_server import ModelServer
from tests.crash.looking import rows, steps, task_status, until
from tests.model_api import ModelApi

pytestmark = pytest.mark.crash

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "guides" / "adopt.md").read_text(encoding="utf-8")
LOOP = ("The tools", "A result for every call", "A model call that fails")
OPENAI = (*LOOP, "With the OpenAI SDK", "Serving it")
ANTHROPIC = (*LOOP, "With the Anthropic SDK", "Serving it")
ASYNC = ("The tools", "From asyncio")
ALONE = ("One question, one action",)
SDKS = pytest.mark.parametrize("sections", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])


def blocks(*titles: str) -> str:
    """The Python of these sections, in order, as one script."""
    found = []
    for title in titles:
        section = re.search(rf"^##+ {re.escape(title)}$(.*?)(?=^##+ |\Z)", PAGE, re.MULTILINE | re.DOTALL)
        assert section is not None, title
        code = re.findall(r"^```python\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)
        assert code, title
        found += code
    return "\n".join(found)


class Script:
    """Some of the page's sections as an agent's process."""

    def __init__(self, folder: Path, source: str, url: str) -> None:
        self._folder = folder
        self._path = folder / "agent.py"
        # The pauses between failed model calls are the page's; a test need not sit through them.
        self._path.write_text(source.replace("for pause in (0, 2, 20):", "for pause in (0, 0, 0):"), encoding="utf-8")
        # Nor is it measured: an SDK takes twice as long to import under measurement.
        ours = ("OPENAI_", "ANTHROPIC_", "COVERAGE_")
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": f"{url}/v1",
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": url,
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        with (self._folder / "output").open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, self._path], cwd=self._folder, env=self._environment, stdout=output, stderr=output
            )
        self._processes.append(process)
        return process

    def output(self) -> str:
        return (self._folder / "output").read_text(encoding="utf-8")

    def serve(self, journal: str, *tasks: str) -> None:
        """Run it until these tasks are completed, then stop it as a service manager does."""
        process = self.start()
        path = self._folder / journal
        ended = ("completed", "failed")
        until(lambda: all(task_status(path, task) in ended for task in tasks), f"the end of {tasks}")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0, self.output()
        assert [task_status(path, task) for task in tasks] == ["completed"] * len(tasks), self.output()

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait(10)


@pytest.fixture
def script(tmp_path):
    made: list[Script] = []

    def make(titles: tuple[str, ...], url: str) -> Script:
        made.append(Script(tmp_path, blocks(*titles), url))
        return made[-1]

    yield make
    for one in made:
        one.end()


def test_every_block_of_the_page_is_run():
    written = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    run = "\n".join(blocks(*titles) for titles in (OPENAI, ANTHROPIC, ASYNC, ALONE))
    assert [block for block in written if block not in run] == []


def test_one_question_and_one_action_cost_one_call_however_often_the_script_runs(script, tmp_path):
    with ModelServer(secret="no-secret-of-this-name") as server:
        agent = script(ALONE, server.url)
        for _ in range(2):
            assert agent.start().wait(30) == 0, agent.output()
        assert len(server.calls()) == 1
    first, second = agent.output().splitlines()
    assert first == second
    assert len((tmp_path / "notes.txt").read_text(encoding="utf-8").splitlines()) == 1
    (call,) = rows(tmp_path / "notes.db", "SELECT * FROM agent_model_call")
    assert (call["state"], call["model"]) == ("exact", "gpt-5-mini")


@SDKS
def test_a_conversation_answers_every_tool_call_and_keeps_what_each_response_cost(script, tmp_path, sections):
    with ModelApi() as api:
        script(sections, api.url).serve("clerk.db", "report-7")
        assert (len(api.bodies), api.refusals) == (3, [])
    done = steps(tmp_path / "clerk.db", "report-7")
    assert [one["tool_name"] for one in done] == ["call_model", "read_report", "call_model", "file_entry", "call_model"]
    assert "Draft 2: mend the door." in (tmp_path / "ledger.txt").read_text(encoding="utf-8")
    assert "There is no tool paint_door." in json.dumps(api.bodies[1])
    (task,) = rows(tmp_path / "clerk.db", "SELECT output_json FROM agent_task")
    assert json.loads(task["output_json"]) == "Answer 3: done."
    call = rows(tmp_path / "clerk.db", "SELECT * FROM agent_model_call ORDER BY id")[0]
    if sections is OPENAI:
        assert (call["model"], call["response_id"], call["state"]) == ("gpt-5-mini-2025-08-07", "chatcmpl-1", "exact")
        assert (call["in_uncached"], call["out_visible"]) == (50, 9)
    else:
        assert (call["model"], call["response_id"]) == ("claude-sonnet-5-5", "msg_1")
        assert json.loads(call["raw_usage"])["input_tokens"] == 50


@SDKS
def test_a_killed_conversation_goes_on_with_the_same_messages_and_asks_nothing_twice(script, tmp_path, sections):
    with ModelApi(hold_at=3) as api:
        agent = script(sections, api.url)
        process = agent.start()
        assert api.held.wait(30), agent.output()
        process.kill()
        process.wait(10)
        agent.serve("clerk.db", "report-7")
        # The third call never got its answer, so it is made again; the first two are not.
        assert len(api.bodies) == 4
        assert api.bodies[3] == api.bodies[2]
    calls = rows(tmp_path / "clerk.db", "SELECT raw_usage IS NOT NULL AS told FROM agent_model_call ORDER BY id")
    assert [call["told"] for call in calls] == [1, 1, 0, 1]
    assert len((tmp_path / "ledger.txt").read_text(encoding="utf-8").splitlines()) == 1


@SDKS
def test_a_failed_model_call_is_asked_again_by_the_handler_and_never_by_the_sdk(script, tmp_path, sections):
    with ModelApi(failures=2) as api:
        script(sections, api.url).serve("clerk.db", "report-7")
        assert (api.failed, len(api.bodies)) == (2, 3)
    found = [(one["tool_name"], one["status"]) for one in steps(tmp_path / "clerk.db", "report-7")]
    assert found[:3] == [("call_model", "failed"), ("call_model", "failed"), ("call_model", "committed")]


def test_asynchronous_handlers_work_side_by_side(script, tmp_path):
    with ModelApi() as api:
        script(ASYNC, api.url).serve("scribe.db", "report-7", "report-8")
        assert len(api.bodies) == 2
    assert len((tmp_path / "ledger.txt").read_text(encoding="utf-8").splitlines()) == 2
