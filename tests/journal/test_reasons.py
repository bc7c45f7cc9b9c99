"""The reason reaches the person: in the error, its cause, the log of serve, show, and on a resume."""

from __future__ import annotations

import logging
import sys
import traceback
from typing import Any

import pytest

from journal import Diverged, Journal, NoEffect, Reply, StepFailed, StepHeld, StepWaiting, tool
from journal.cli import main
from tests.journal.agent import serving, soon, status, steps_of, wait_of


@tool(effect="mutating")
def silent(city: Any) -> str:
    return str(city.name)


@tool(effect="mutating", status=lambda call: None)
def asked(city: Any) -> str:
    return str(city.name)


def group() -> None:
    cause = ConnectionError("401: token expired")
    try:
        raise cause
    except ConnectionError:
        inner = RuntimeError("the session ended")
        inner.__cause__ = cause
    raise ExceptionGroup("unhandled errors", [ExceptionGroup("inner", [inner, ValueError("no such city")])])


@tool(effect="read_only")
def look() -> None:
    group()


@tool(effect="mutating")
def change() -> None:
    try:
        group()
    except ExceptionGroup as error:
        raise NoEffect("sure") from error


@tool(effect="mutating")
def lost() -> None:
    group()


WORDS = "AttributeError: 'dict' object has no attribute 'name'"


def run(path, used: Any, *args: Any, **options: Any) -> None:
    tools = [silent, asked, look, change, lost]
    with Journal(path, agent="a", tools=tools, **options) as journal, journal.task("t") as task:
        task.run(used, *args)


@pytest.mark.parametrize("used", [silent, asked], ids=["held", "waiting"])
def test_an_error_that_waits_says_what_its_tool_raised_now_and_after_a_resume(path, used):
    for cause in (AttributeError, StepFailed):
        with pytest.raises((StepHeld, StepWaiting)) as caught:
            run(path, used, {"name": "x"}, max_wait=0)
        assert WORDS in str(caught.value)
        assert isinstance(caught.value.__cause__, cause)
        assert "has no attribute 'name'" in str(caught.value.__cause__)


def test_the_cause_is_shown_from_the_users_own_code_on(path):
    with pytest.raises(StepHeld) as caught:
        run(path, silent, {"name": "x"})
    assert caught.value.__cause__ is not None
    frames = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert [frame.name for frame in frames] == ["silent"]


def test_serve_and_show_say_what_a_tool_raised(path, caplog, capsys):
    def handler(task: Any) -> Any:
        return task.run(silent, {"name": "x"})

    with Journal(path, agent="a", tools=[silent], handlers={"h": handler}) as journal:
        journal.submit("h", task_id="t")
        with caplog.at_level(logging.WARNING, "journal"), serving(journal):
            soon(lambda: status(path, "t") == "waiting")
    assert sum(WORDS in record.getMessage() for record in caplog.records) == 1
    assert wait_of(path, "t") is not None
    main(["show", str(path), "t"])
    assert WORDS in capsys.readouterr().out


@pytest.mark.parametrize("used", [look, change])
def test_the_errors_of_a_group_and_their_causes_are_stored(path, used):
    told = []
    for _ in range(2):
        with pytest.raises(StepFailed) as caught:
            run(path, used)
        told.append(f"{caught.value} {caught.value.chain}")
    assert told[0] == told[1]
    for words in ("RuntimeError: the session ended", "ValueError: no such city", "ConnectionError: 401: token expired"):
        assert words in told[0]


def test_a_held_step_names_the_errors_of_a_group(path):
    with pytest.raises(StepHeld, match="RuntimeError: the session ended; ValueError: no such city"):
        run(path, lost)
    assert "no such city" in steps_of(path, "t")[0]["hold_detail"]


PAIRS = [
    ("x" * 300 + "Monday", "x" * 300 + "Tuesda", 'Monday" (from character 260 of 306)', 'Tuesda" (from'),
    ("a\nb" * 200, "a\nb" * 100 + "c" + "a\nb" * 99, r"a\nb", r"c"),
    (1, "1", "$.v is 1 in", 'and "1" in the code. They differ only in their type.'),
    (True, "true", "$.v is true in", 'and "true" in the code. They differ only in their type.'),
    (None, "null", "is null in", 'and "null" in the code. They differ only in their type.'),
    (1, 1.0, "is 1 in", "and 1.0 in the code."),
    ("\u00e9", "e\u0301", r'is "\u00e9" in', r'"e\u0301" in the code. They differ only in their Unicode form'),
    ("a ", "a", 'is "a " in', 'and "a" in the code. They differ only in blanks at the ends.'),
    ("", "\u200b", 'is "" in', r'and "\u200b" in the code. They differ only in characters that cannot be seen.'),
    ("\u00e9", "\u00e8", 'is "é" in', 'and "è" in the code.'),
]


@tool(effect="read_only")
def echo(v: Any) -> int:
    return 1


@pytest.mark.parametrize(("stored", "now", "before", "after"), PAIRS, ids=range(len(PAIRS)))
def test_a_divergence_shows_the_first_difference_and_says_where_only_the_form_differs(path, stored, now, before, after):
    for value in (stored, now):
        with Journal(path, agent="a") as journal, journal.task("t") as task:
            if value is stored and value is not now and not steps_of(path, "t"):
                task.run(echo, value)
                continue
            with pytest.raises(Diverged) as caught:
                task.run(echo, value)
    text = str(caught.value)
    assert before in text
    assert after in text
    assert len(text) < 500


def ask(path, prompt: str, **options: Any) -> None:
    with Journal(path, agent="a", **options) as journal, journal.task("t") as task:
        task.ask(lambda q: Reply("x"), prompt)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("length", [0, 30, 400, 200_000])
def test_a_divergence_of_a_prompt_shows_the_text_around_the_first_difference(path, length, keep):
    start = "Be kind. " * (length // 9)
    ask(path, f"{start}Today is Monday. Do it.", keep_prompt=keep)
    with pytest.raises(Diverged) as caught:
        ask(path, f"{start}Today is Sunday. Do it.", keep_prompt=keep)
    assert "Sunday" in str(caught.value)
    assert ("Monday" in str(caught.value)) == (keep or length < 150)
    assert steps_of(path, "t")[0]["hold_parameter"] == "$.prompt"
    assert len(str(caught.value)) < 1000
    hashes = steps_of(path, "t")[0]["prompt_hashes"]
    assert hashes is None or (len(hashes) < 8000 and "Monday" not in hashes)


def test_the_same_prompt_is_the_same_step_whether_its_text_is_kept_or_not(path):
    for keep in (False, True, False):
        ask(path, "Today is Monday. " * 50, keep_prompt=keep)
    assert len(steps_of(path, "t")) == 1
    assert sys.getsizeof(steps_of(path, "t")[0]["arguments_json"]) < 1000
