"""JSON that a person typed: read as it stands, or refused with the path of what would be lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.decisions.check import BadDecision, check_decision
from journal import codec
from journal.cli import main
from journal.errors import InvalidArguments
from journal.inbox import mailbox


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a": 1, "a": 2}', "$.a"),
        ('{"a": 1, "\\u0061": 1}', "$.a"),
        ('{"x": [0, {"b": {"c": {}, "a": 1, "a": 1}}]}', "$.x[1].b.a"),
        ('{"a": {"b": 1, "b": 2}, "a": 3}', "$.a"),
    ],
)
def test_a_key_that_stands_twice_is_refused_and_named(text, path):
    with pytest.raises(InvalidArguments) as refused:
        codec.typed(text, what="output")
    assert refused.value.path == path
    assert refused.value.message == f"Output {path}: stands twice."


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "18446744073709551616"])
def test_a_number_that_would_not_read_back_is_refused_with_its_path(number):
    with pytest.raises(InvalidArguments) as refused:
        codec.typed(f'{{"a": [{number}]}}', what="output")
    assert refused.value.path == "$.a[0]"


def test_text_nested_past_every_reader_is_refused():
    with pytest.raises(InvalidArguments, match="nested deeper"):
        codec.typed("[" * 100_000, what="output")


def test_the_same_key_in_two_objects_is_two_keys():
    assert codec.typed('[{"a": 1}, {"a": {"a": 2}}]', what="output") == [{"a": 1}, {"a": {"a": 2}}]


def test_a_decision_s_output_with_a_repeated_key_is_refused_on_its_field():
    with pytest.raises(BadDecision, match=r"\$\.a: stands twice") as refused:
        check_decision("mark_committed", reason="r", reference="r", output_json='{"a": 1, "a": 2}')
    assert refused.value.field == "output"


def test_submit_refuses_a_repeated_key_and_posts_nothing(tmp_path: Path, capsys):
    path = tmp_path / "agent.db"
    assert main(["submit", str(path), "triage", "--task-id", "t", "--input", '{"a": 1, "a": 2}']) == 2
    assert "Input $.a: stands twice." in capsys.readouterr().err
    assert mailbox.list_messages(path) == []
