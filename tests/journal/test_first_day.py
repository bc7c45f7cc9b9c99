"""A first day: what a newcomer tries in the first hours works, or is refused in one sentence with a next step."""

from __future__ import annotations

import copy
import functools
import importlib.metadata
import inspect
import pickle
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import journal
from journal import (
    InvalidArguments,
    Journal,
    JournalBusy,
    UsageError,
    errors,
    http_tool,
    post_submit,
    tool,
)  # fmt: skip
from journal.cli import main
from journal.errors import StepDropped
from tests.journal.agent import python

VALUES: dict[str, Any] = {
    "path": "$.a", "pid": 7, "role": "agent", "kind": "folder", "task_id": "t", "step_index": 3, "reason": "tls",
    "until": datetime(2026, 12, 1, tzinfo=UTC), "type": "ValueError", "chain": ("OSError: gone",), "hint": "Do this.",
}  # fmt: skip
ERRORS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, BaseException)
    if kind.__module__ == "journal.errors"
]


def made(kind: Any) -> Any:
    names = inspect.signature(kind).parameters
    return kind("What failed.", **{name: value for name, value in VALUES.items() if name in names})


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_each_error_is_the_same_after_pickle_and_copy(kind, again):
    error = made(kind)
    found = again(error)
    assert (type(found), str(found), found.args, vars(found)) == (kind, str(error), error.args, vars(error))


@pytest.mark.parametrize("name", [":memory:", "file:x.db", "file:x.db?mode=memory&cache=shared", "file:///x/y.db"])
def test_a_path_that_sqlite_would_read_otherwise_is_refused_and_nothing_is_made(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="a journal is a file on disk"):
        Journal(name, agent="a")
    with pytest.raises(UsageError, match="a journal is a file on disk"):
        post_submit(name, "h", task_id="t")
    assert list(tmp_path.iterdir()) == []


def test_a_tilde_is_refused_by_its_name():
    with pytest.raises(UsageError, match="`~` is not expanded"):
        Journal("~no-such-user/x.db", agent="a")


def test_a_journal_that_this_process_has_open_says_so(path):
    with Journal(path, agent="a"), pytest.raises(JournalBusy, match="has it open already"):
        Journal(path, agent="a")


class Box:
    def __call__(self, x: int) -> int:
        return x

    def look(self, x: int) -> int:
        return x


@pytest.mark.parametrize("declare", [tool, http_tool])
def test_a_declaration_without_an_effect_says_what_to_write(declare):
    with pytest.raises(UsageError, match=r'Write @(http_)?tool\(effect="read_only"\)'):
        declare(Box.look)
    for effect in (None, "write"):
        with pytest.raises(UsageError, match="not one of read_only, mutating"):
            declare(effect=effect)


@pytest.mark.parametrize("function", [functools.partial(max, 1), Box()])
def test_a_callable_without_a_name_is_asked_for_one(function):
    with pytest.raises(UsageError):
        tool(effect="read_only")(function)


def test_a_partial_an_object_and_a_bound_method_are_tools_under_a_name(path):
    box = Box()
    tools = [
        tool(effect="read_only", name="part")(functools.partial(box.look)),
        tool(effect="read_only", name="box")(box),
        tool(effect="read_only")(box.look),
    ]
    with Journal(path, agent="a", tools=tools) as opened, opened.task("t") as task:
        assert [task.run(one, x=2) for one in tools] == [2, 2, 2]


def test_a_method_that_was_declared_in_its_class_says_how_to_declare_it(path):
    class Desk:
        @tool(effect="read_only")
        def look(self, x: int) -> int:
            return x

    method = "It is a method: declare the bound one"
    with Journal(path, agent="a") as opened, opened.task("t") as task, pytest.raises(InvalidArguments, match=method):
        task.run(Desk().look, 1)


DIES = """
    import os, sys
    from journal import Journal, tool

    @tool(effect="mutating")
    def die():
        os.kill(os.getpid(), 9)

    with Journal(sys.argv[1], agent="a", tools=[die]) as journal, journal.task("t") as task:
        task.run(die)
"""


def test_show_says_crashed_of_a_killed_agents_task(path, capsys):
    assert python(DIES, path).returncode == -9
    for words in ([], ["t"]):
        assert main(["show", str(path), *words]) == 0
        shown = capsys.readouterr().out
        assert "crashed" in shown
        assert "running" not in shown
    main(["show", str(path), "--json"])
    assert '"state": "crashed"' in capsys.readouterr().out


def test_show_says_running_of_a_living_agents_task(path, capsys):
    @tool(effect="read_only")
    def look() -> int:
        main(["show", str(path)])
        return 1

    with Journal(path, agent="a", tools=[look]) as opened, opened.task("t") as task:
        task.run(look)
    assert "running" in capsys.readouterr().out


ZIPPED = """
    import sys
    sys.path[:] = [sys.argv[1]] + [p for p in sys.path if not p.endswith("-checkout")]
    import journal
    from journal.providers.load import load_profiles
    from journal.schema import MIGRATIONS
    assert journal.__file__.startswith(sys.argv[1]), journal.__file__
    print(sorted(load_profiles(None)), len(MIGRATIONS[0]) > 1000)
"""


def test_the_profiles_and_the_tables_are_found_where_the_package_is_no_folder(tmp_path):
    root = Path(journal.__file__).parent
    packed = tmp_path / "app.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in root.rglob("*"):
            if file.suffix in (".py", ".toml", ".sql"):
                archive.write(file, Path("journal") / file.relative_to(root))
    code = "\n".join(line[4:] for line in ZIPPED.splitlines())
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(packed)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "generic_none" in done.stdout
    assert "True" in done.stdout


def test_an_await_outside_asyncio_is_refused_in_words(path):
    @tool(effect="read_only")
    async def look() -> int:
        return 1

    def swallow_the_refusal() -> None:
        with Journal(path, agent="a", tools=[look]) as opened, opened.task("t") as task:
            step = task.run(look)
            with pytest.raises(UsageError, match="trio is not supported"):
                step.send(None)

    # The task never ran its step, so it does not complete.
    with pytest.raises(StepDropped):
        swallow_the_refusal()


def test_the_version_and_the_console_script_are_those_of_the_package():
    assert journal.__version__ == importlib.metadata.version("stepkeeper")
    text = Path(journal.__file__).parent.parent.joinpath("pyproject.toml").read_text()
    assert 'stepkeeper = "journal.cli:main"' in text
