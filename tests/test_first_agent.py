"""docs/tutorial: its agent is killed in the middle of a step and started again, and each command of its page runs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.looking import is_in_flight, steps, task_status, until

pytestmark = pytest.mark.crash

CHECKOUT = Path(__file__).resolve().parents[1]
SCRIPT = CHECKOUT / "docs" / "tutorial" / "first_agent.py"
PAGE = (CHECKOUT / "docs" / "tutorial" / "README.md").read_text(encoding="utf-8")
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


class Visitor:
    """Somebody who follows the tutorial's page in a folder that looks like the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".venv").symlink_to(sys.prefix)
        for name in ("docs", "Makefile", "pyproject.toml", "requirements.txt"):
            (folder / name).symlink_to(CHECKOUT / name)
        self._blocks = iter(re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
        self.agent: subprocess.Popen[bytes] | None = None

    def take(self, language: str) -> str:
        """The page's next block, which must be of this language."""
        found, block = next(self._blocks)
        assert found == language, block
        return str(block)

    def runs(self, **environment: str) -> str:
        """Run the next block of shell commands; returns what it prints."""
        ran = subprocess.run(
            ["sh", "-euc", self.take("sh")],
            cwd=self.folder,
            env={**self._environment, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def reads(self, output: str) -> None:
        """The next block is text: each line of it is a line of the output, and `…` stands for anything."""
        for line in self.take("text").splitlines():
            assert re.search("^" + ".*".join(map(re.escape, line.split("…"))) + "$", output, re.MULTILINE), (
                line,
                output,
            )

    def starts(self, *arguments: str) -> None:
        """Start the agent that the next block starts, in the background."""
        with (self.folder / "output").open("ab") as output:
            self.agent = subprocess.Popen(
                [*self.take("sh").split(), *arguments],
                cwd=self.folder,
                env=self._environment,
                stdout=output,
                stderr=output,
            )

    def has_read_all(self) -> bool:
        """Whether no block of the page is left."""
        return next(self._blocks, None) is None

    def output(self) -> str:
        return (self.folder / "output").read_text(encoding="utf-8")


@pytest.fixture
def visitor(tmp_path):
    visitor = Visitor(tmp_path)
    yield visitor
    if visitor.agent is not None:
        visitor.agent.kill()
        visitor.agent.wait(10)


def test_every_command_of_the_tutorial_runs_and_prints_what_the_page_says(visitor):
    journal = visitor.folder / "first-agent" / "journal.db"
    visitor.runs(MAKEFLAGS="n")  # make install: this environment is there, and a test fetches nothing
    visitor.starts()
    until(lambda: "filing under key" in visitor.output(), "the first effect")
    visitor.reads(visitor.output())
    kill = visitor.take("sh").replace("PID", str(visitor.agent.pid))
    subprocess.run(["sh", "-euc", kill], check=True)
    assert visitor.agent.wait(10) == -signal.SIGKILL
    visitor.reads(visitor.runs())

    visitor.starts("first-agent", "0")  # the page's two seconds before and after each effect are for people
    until(lambda: all(task_status(journal, task) == "completed" for task in TASKS), "completion of every task")
    visitor.agent.send_signal(signal.SIGINT)
    assert visitor.agent.wait(10) == 0, visitor.output()
    visitor.reads(visitor.output())
    visitor.reads(visitor.runs())
    assert len((visitor.folder / "first-agent" / "ledger.txt").read_text(encoding="utf-8").splitlines()) == 6

    visitor.runs(MAKEFLAGS="n")  # make up: tests of the dashboard start it
    (visitor.folder / "mail.py").write_text(visitor.take("python"), encoding="utf-8")
    visitor.reads(visitor.runs())
    visitor.reads(visitor.runs())
    assert visitor.has_read_all()


def test_git_ignores_what_the_tutorial_makes():
    (made,) = re.findall(r"`rm -r ([^`]+)`", PAGE)
    ignored = (CHECKOUT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {f"/{name}" for name in made.split()} <= {line.rstrip("/") for line in ignored}
