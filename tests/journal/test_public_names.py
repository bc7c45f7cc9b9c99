"""What `journal` offers, and what importing it costs."""

from __future__ import annotations

import importlib
import inspect
import json

import pytest

import journal
from tests.journal.agent import python

NAMES = [
    "Call",
    "Diverged",
    "ForkedTask",
    "InvalidArguments",
    "Journal",
    "JournalBusy",
    "JournalFailed",
    "JournalUnreadable",
    "NoEffect",
    "OutcomeUnknown",
    "ProfileError",
    "Reply",
    "Request",
    "StepAbandoned",
    "StepFailed",
    "StepHeld",
    "StepWaiting",
    "StepkeeperError",
    "Task",
    "TaskCancelled",
    "TaskClosed",
    "TaskConflict",
    "UnorderedStep",
    "UsageError",
    "__version__",
    "env",
    "http_tool",
    "post_submit",
    "tool",
]
NOT_AT_IMPORT = ("tomllib", "decimal", "uuid", "tempfile", "argparse", "asyncio", "ssl", "httpx2", "sqlite3", "inspect")


def test_the_public_names_are_these_and_no_others():
    assert sorted(journal.__all__) == sorted(NAMES)
    assert sorted(journal.__all__) == dir(journal)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there_with_its_docstring(name):
    found = getattr(journal, name)
    assert inspect.getdoc(found)
    assert getattr(journal, name) is found


def test_the_judge_of_a_pending_step_is_asked_with_these_five():
    judge = inspect.signature(importlib.import_module("journal.reconcile.decide").decide)
    assert list(judge.parameters) == ["step", "attempts", "evidence", "profile", "now"]
    assert {parameter.kind for parameter in judge.parameters.values()} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}
    assert judge.return_annotation == "Action"


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        getattr(journal, "nonsense")  # noqa: B009


def test_importing_journal_loads_nothing_but_a_few_modules_of_the_standard_library():
    code = "import sys; before = set(sys.modules); import journal, json; print(json.dumps(sorted(set(sys.modules))))"
    done = python(code)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert [name for name in NOT_AT_IMPORT if name in loaded] == []


def test_a_whole_agent_without_http_loads_no_http_client(tmp_path):
    done = python(
        """
        import sys
        from journal import Journal, tool

        @tool(effect="mutating")
        def write(path): return path

        with Journal(sys.argv[1], agent="a", tools=[write]) as journal:
            journal.recover()
            with journal.task("t") as task:
                assert task.run(write, "p") == "p"
        print([name for name in ("httpx2", "argparse", "django") if name in sys.modules])
        """,
        tmp_path / "j.db",
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_importing_journal_loads_no_third_party_module():
    code = "import sys, journal; [getattr(journal, n) for n in journal.__all__]; print('\\n'.join(sorted(sys.modules)))"
    done = python(code)
    allowed = set(json.loads(python("import sys, json; print(json.dumps(sorted(sys.stdlib_module_names)))").stdout))
    top = {name.partition(".")[0] for name in done.stdout.split()}
    # What the environment itself loads at every start (an editable install's finder, say) is not ours.
    at_start = {name.partition(".")[0] for name in python("import sys; print(*sys.modules, sep='\\n')").stdout.split()}
    assert top - allowed - at_start - {"journal"} == set()


def test_every_error_is_a_sentence_with_its_hint():
    errors = importlib.import_module("journal.errors")
    error = errors.UsageError("Tool x: is odd.", hint="Do y.")
    assert (str(error), error.message, error.hint) == ("Tool x: is odd. Do y.", "Tool x: is odd.", "Do y.")
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__module__ == errors.__name__]
    raised = [kind for kind in classes if issubclass(kind, BaseException) and not kind.__name__.startswith("_")]
    assert all(issubclass(kind, errors.StepkeeperError | errors.TaskStop) and kind.__doc__ for kind in raised)
    stop = errors.TaskClosed("Task t: is closed.", hint="Do y.")
    assert (str(stop), stop.message, stop.hint) == ("Task t: is closed. Do y.", "Task t: is closed.", "Do y.")
