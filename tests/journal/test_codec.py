"""What goes into a journal reads back equal, or is refused with the path of the value."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

import pytest

from journal import InvalidArguments, codec


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: int
    tags: tuple[str, ...]


class Model:
    """Shaped like a Pydantic model."""

    model_fields: ClassVar[dict[str, Any]] = {}

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        assert mode == "json"
        return {"name": "m"}


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (datetime(2026, 11, 29, 12, tzinfo=UTC), "2026-11-29T12:00:00+00:00"),
        (date(2026, 11, 29), "2026-11-29"),
        (time(12, 30), "12:30:00"),
        (Decimal("1.10"), "1.10"),
        (Decimal("1E2"), "1E+2"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Point(1, ("a",)), {"x": 1, "tags": ["a"]}),
        (Model(), {"name": "m"}),
        ((1, 2), [1, 2]),
        (653247040368672768, 653247040368672768),
        (12345678901234567890, 12345678901234567890),
        (100.0, 100.0),
    ],
)
def test_each_known_type_has_one_rule(value, stored):
    assert codec.loads(codec.dumps({"v": value}))["v"] == stored


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"items": [0, 1, {"price": math.nan}]}, "$.items[2].price"),
        ({"a": math.inf}, "$.a"),
        ({"a": -math.inf}, "$.a"),
        ({"a": 1e400}, "$.a"),
        ({"a": "\ud83d"}, "$.a"),
        ({"a": ["\ud83c", "\udf78"]}, "$.a[0]"),
        ({"name": b"\xff".decode("utf-8", "surrogateescape")}, "$.name"),
        ({"a": b"bytes"}, "$.a"),
        ({"a": {1, 2}}, "$.a"),
        ({"a": 2**64}, "$.a"),
        ({"a": -(2**63) - 1}, "$.a"),
        ({"a": 10**5000}, "$.a"),
        ({"a": timedelta(hours=1)}, "$.a"),
        ({"a": Decimal("NaN")}, "$.a"),
        ({"a": [1, {"b": object()}]}, "$.a[1].b"),
        ({"a": {1: "a", "1": "b"}}, "$.a"),
        ({"a": {None: 1}}, "$.a"),
        ({"a": {Level.HIGH: 1}}, "$.a"),
        ({"a": lambda: 1}, "$.a"),
        ({"a": 1j}, "$.a"),
    ],
)
def test_what_would_not_read_back_is_refused_with_its_path(value, path):
    with pytest.raises(InvalidArguments) as caught:
        codec.dumps(value)
    assert caught.value.path == path
    str(caught.value).encode()  # fit to be printed and stored


def test_a_lone_surrogate_in_a_name_is_refused_in_text_that_can_be_stored():
    with pytest.raises(InvalidArguments) as caught:
        codec.dumps({"\ud83d": 1})
    caught.value.path.encode()


def test_a_value_that_contains_itself_is_refused():
    loop: list[Any] = []
    loop.append({"again": loop})
    with pytest.raises(InvalidArguments, match="contains itself"):
        codec.dumps({"a": loop})


def test_deep_nesting_is_refused_in_words_and_not_by_the_recursion_limit():
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidArguments, match="nested deeper"):
        codec.dumps({"a": deep})
    text, complete = codec.dumps_output({"kept": 1, "deep": deep})
    assert not complete
    assert codec.loads(text)["kept"] == 1


def test_the_order_in_which_a_dict_was_made_does_not_change_the_text():
    assert codec.dumps({"b": 1, "a": {"d": 1, "c": 2}}) == codec.dumps({"a": {"c": 2, "d": 1}, "b": 1})
    assert codec.dumps({"\U00010000": 2, "\ufffd": 1}) == codec.dumps({"\ufffd": 1, "\U00010000": 2})
    assert codec.dumps({"v": 100}) != codec.dumps({"v": 100.0})


class Explosive:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class BadModel(Model):
    def model_dump(self, *, mode: str) -> dict[str, Any]:
        raise RuntimeError("no")


class BadDict(dict):
    def items(self) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "odd",
    [
        lambda: 1,
        iter([1]),
        b"bytes",
        {1, 2},
        math.nan,
        "\ud83d",
        10**5000,
        Explosive(),
        BadModel(),
        BadDict(a=1),
        1j,
    ],
    ids=lambda odd: type(odd).__name__,
)
def test_an_output_that_cannot_be_stored_becomes_a_stub_and_its_neighbours_stay(odd):
    text, complete = codec.dumps_output({"odd": odd, "number": 7, "list": [1, odd]})
    assert complete is False
    stored = codec.loads(text)
    assert stored["number"] == 7
    assert stored["list"][0] == 1
    assert isinstance(stored["odd"], str) or "$unstorable" in stored["odd"]


def test_an_odd_output_alone_becomes_a_stub_that_names_its_type():
    text, complete = codec.dumps_output(BadModel())
    assert (complete, "BadModel" in text) == (False, True)


def test_names_that_would_fall_together_are_both_kept():
    text, complete = codec.dumps_output({1: "number", "1": "text"})
    assert (complete, sorted(codec.loads(text).values())) == (False, ["number", "text"])


def test_an_output_that_contains_itself_twice_ends():
    loop: list[Any] = [math.nan]
    loop += [loop, loop]
    text, complete = codec.dumps_output(loop)
    assert complete is False
    assert len(text) < 10_000


def test_a_repeated_graph_with_an_odd_leaf_ends():
    graph: Any = [math.nan]
    for _ in range(60):
        graph = [graph, graph]
    text, complete = codec.dumps_output(graph)
    assert complete is False
    assert len(text) < 64 * 1024 * 1024


def test_text_with_one_lone_surrogate_is_kept_with_the_surrogate_written_out():
    text, complete = codec.dumps_output("a" * 1000 + "\ud83d")
    assert (complete, codec.loads(text)) == (False, "a" * 1000 + "\\ud83d")


def test_an_output_past_the_limit_is_replaced_by_its_size_and_hash():
    text, complete = codec.dumps_output("x" * (codec.MAX_OUTPUT_BYTES + 1))
    assert complete is False
    assert codec.loads(text)["bytes"] == codec.MAX_OUTPUT_BYTES + 3


@pytest.mark.parametrize("value", [None, "", 0, [], {}, False])
def test_empty_outputs_are_whole_outputs(value):
    text, complete = codec.dumps_output(value)
    assert (codec.loads(text), complete) == (value, True)
