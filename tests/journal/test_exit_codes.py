"""How a script's process ends when nobody catches what only a supervisor can wait for."""

from __future__ import annotations

import pytest

from tests.journal.agent import World, opened, python, task_row

SCRIPT = """
    import atexit, sys
    from journal import Journal, StepHeld, tool
    atexit.register(lambda: print("left by atexit", flush=True))

    @tool(effect="mutating")
    def send(name):
        raise TimeoutError("no answer")

    @tool(effect="mutating", status=lambda call: (_ for _ in ()).throw(RuntimeError("down")))
    def ask(name):
        raise TimeoutError("no answer")

    with Journal(sys.argv[1], agent="a", tools=[send, ask], max_wait=0) as journal:
        journal.recover()
        with journal.task("t") as task:
            %s
    print("went on")
"""


@pytest.mark.parametrize(
    ("body", "code", "word"),
    [
        ('task.run(send, "x")', 75, "OutcomeUnknown"),
        ('task.run(ask, "x")', 75, "StepWaiting"),
        ("raise ValueError('its own')", 1, "ValueError"),
        ("sys.exit(3)", 3, ""),
    ],
)
def test_an_uncaught_wait_ends_the_process_with_75_and_its_exit_functions_run(tmp_path, body, code, word):
    done = python(SCRIPT % body, tmp_path / "j.db")
    assert (done.returncode, done.stdout) == (code, "left by atexit\n"), done.stderr
    assert word in done.stderr
    expected = {75: "waiting", 1: "failed", 3: "waiting"}
    assert task_row(tmp_path / "j.db", "t")["status"] == expected[code]


def test_a_caught_wait_is_no_exit_code(tmp_path):
    body = 'task.run(send, "x")'
    code = SCRIPT % body
    code = code.replace(
        "with journal.task", "from contextlib import suppress\n        with suppress(StepHeld), journal.task"
    )
    done = python(code, tmp_path / "j.db")
    assert (done.returncode, done.stdout) == (0, "went on\nleft by atexit\n"), done.stderr


def test_a_journal_held_by_another_process_ends_the_script_with_4(tmp_path):
    path = tmp_path / "j.db"
    with opened(path, World()):
        done = python("import sys; from journal import Journal; Journal(sys.argv[1], agent='a')", path)
    assert done.returncode == 4
    assert "JournalBusy" in done.stderr
    assert "held by pid" in done.stderr


def test_a_closed_standard_output_does_not_hide_the_exit_code(tmp_path):
    body = 'print("x" * 10); sys.stdout.close(); task.run(send, "x")'
    done = python(SCRIPT.replace('print("left by atexit", flush=True)', "None") % body, tmp_path / "j.db")
    assert done.returncode == 75, done.stderr
