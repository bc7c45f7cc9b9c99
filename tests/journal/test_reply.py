"""A model's text is read kindly where it is empty, and a bad call fails alone, in words that the model can use."""

from __future__ import annotations

from typing import Any

import pytest

from journal import Journal, Reply, StepFailed, tool
from tests.journal.agent import status, steps_of

DEEP: Any = []
for _ in range(5000):
    DEEP = [DEEP]
DEEP_TEXT = "[" * 5000 + "]" * 5000


@tool(effect="read_only")
def ping() -> str:
    return "pong"


@tool(effect="read_only")
def read_file(path: str, lines: int = 10) -> str:
    return path


@tool(effect="read_only")
def take(**more: Any) -> int:
    return len(more)


def acted(path, *calls: Any, **reply: Any) -> list[Any]:
    """What `act` answers to a model's calls, the same on the first run and on a resume."""
    given: dict[str, Any] = {"content": "x", **reply}
    answers = []
    for _ in range(2):
        with Journal(path, agent="a", tools=[ping, read_file, take]) as journal, journal.task("t") as task:
            found = task.act(lambda _: Reply(calls=calls, **given), "q")
            answers.append([str(one) if isinstance(one, StepFailed) else one for one in found])
    assert answers[0] == answers[1]
    assert status(path, "t") == "completed"
    return answers[0]


@pytest.mark.parametrize("nothing", ["", "  \n", None, "null", "{}", {}])
def test_no_arguments_are_no_arguments_however_a_gateway_writes_them(path, nothing):
    calls = [{"name": name, "arguments": nothing} for name in ("ping", "read_file")]
    pong, refused = acted(path, *calls, {"name": "ping"}, ("ping", nothing))[:2]
    assert pong == "pong"
    assert "missing a required argument: 'path'" in refused


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": ' + DEEP_TEXT + "}", "nested deeper than 200 levels"),
        ('{"a": 1, "a": 2}', "$.a: stands twice"),
        ('{"a": {"b": 1, "b": 1}}', "$.a.b: stands twice"),
        ('{"a": 1e999}', "$.a: is inf, which JSON cannot hold"),
        ('{"a": NaN}', "$.a: is nan, which JSON cannot hold"),
        ('{"a": 18446744073709551616}', "$.a: is an integer past 64 bits"),
        ('{"a": ' + "9" * 5000 + "}", "The arguments are not JSON: Exceeds the limit"),
        ('{"a": "\\ud800"}', "$.a: has a lone surrogate"),
        ('{"a": 1', "The arguments are not JSON: Expecting ',' delimiter"),
        ("path=a.txt", "The arguments are not JSON"),
        ("[1]", "The arguments are a list, not an object. Give one JSON object"),
        ('"a.txt"', "The arguments are a str, not an object. Give one JSON object"),
        (DEEP, "nested deeper than 200 levels"),
        ({"a": float("inf")}, "is inf, which JSON cannot hold"),
    ],
    ids=range(14),
)
def test_arguments_that_cannot_be_read_fail_their_call_in_words_and_the_next_call_goes_on(path, text, words):
    refused, taken = acted(path, {"name": "take", "arguments": text}, {"name": "take", "arguments": '{"b": 1}'})
    assert words in refused
    assert "Traceback" not in refused
    assert taken == 1
    assert [step["status"] for step in steps_of(path, "t")] == ["committed", "failed", "committed"]


@pytest.mark.parametrize("part", ["content", "usage"])
def test_an_answer_that_is_nested_too_deep_costs_no_call(path, part):
    assert acted(path, {"name": "ping", "arguments": ""}, **{part: {"deep": DEEP}}) == ["pong"]
