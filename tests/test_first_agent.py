"""docs/tutorial/first_agent.py: started, killed in the middle of a step, started again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.looking import is_in_flight, steps, task_status, until

pytestmark = pytest.mark.crash

SCRIPT = Path(__file__).resolve().parents[1] / "docs" / "tutorial" / "first_agent.py"
TASKS = ("report-0", "report-1", "report-2")
# Far longer than the test: the agent never gets past the moment it is killed at.
DAWDLE = "60"


class FirstAgent:
    """The documented agent in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "agent"
        self.journal = self.folder / "journal.db"
        self._output = folder / "output"
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, dawdle: str) -> subprocess.Popen[bytes]:
        # Its folder is not the checkout: the script works from anywhere.
        with self._output.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, SCRIPT, self.folder, dawdle], cwd=self.folder.parent, stdout=output, stderr=output
            )
        self._processes.append(process)
        return process

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait(10)

    def output(self) -> str:
        return self._output.read_text(encoding="utf-8")

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def agent(tmp_path):
    agent = FirstAgent(tmp_path)
    yield agent
    agent.end()


def finish(agent: FirstAgent) -> None:
    """Start it again and let it work off its three tasks; then stop it as Ctrl-C does."""
    process = agent.start("0")
    until(lambda: all(task_status(agent.journal, task) == "completed" for task in TASKS), "completion of every task")
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0, agent.output()


def check_that_nothing_happened_twice(agent: FirstAgent) -> None:
    entries = [line.split()[0] for line in agent.lines("ledger.txt")]
    keys = [one["idempotency_key"] for task in TASKS for one in steps(agent.journal, task) if one["effect"] != "model"]
    assert len(entries) == len(set(entries)) == 6
    assert set(entries) < set(keys)
    # Two calls a task, none of them made again: what was committed cost nothing on resume.
    assert len(agent.lines("model-calls.txt")) == 6
    assert agent.output().count(": read\n") == 3


def test_killed_before_its_effect_it_makes_it_once_and_asks_the_model_nothing_again(agent):
    process = agent.start(DAWDLE)
    until(lambda: is_in_flight(agent.journal, "report-0", 2), "the intent of step 2")
    process.kill()
    process.wait(10)
    assert agent.lines("ledger.txt") == []
    assert [one["status"] for one in steps(agent.journal, "report-0")] == ["committed", "committed", "pending"]
    (said,) = [line for line in agent.output().splitlines() if "the model says" in line]

    finish(agent)
    check_that_nothing_happened_twice(agent)
    filed = [line.split(maxsplit=1)[1] for line in agent.lines("ledger.txt")]
    assert filed.count(said.partition("says: ")[2]) == 1


def test_killed_after_its_effect_it_finds_it_and_does_not_make_it_again(agent):
    # Two seconds of dawdling follow the entry: the effect is there, and the journal does not know.
    process = agent.start("2")
    until(lambda: len(agent.lines("ledger.txt")) == 1, "the first entry")
    process.kill()
    process.wait(10)
    assert [one["status"] for one in steps(agent.journal, "report-0")] == ["committed", "committed", "pending"]

    finish(agent)
    check_that_nothing_happened_twice(agent)
    assert "recovered: step 2 of report-0: committed" in agent.output()
