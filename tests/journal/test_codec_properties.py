"""Of any value: it reads back equal or is refused with a path, and as an output it can be stored."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from journal import InvalidArguments, codec

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)
ANYTHING = st.recursive(
    st.none()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.complex_numbers()
    | st.timedeltas()
    | st.datetimes()
    | st.decimals(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.frozensets(st.integers())
        | st.dictionaries(st.text() | st.integers() | st.none(), inner)
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_plain_values_read_back_equal_and_stand_as_json_dumps_writes_them(value):
    text = codec.dumps(value)
    assert text == json.dumps(value, sort_keys=True)
    assert codec.loads(text) == value
    assert codec.dumps(codec.loads(text)) == text


@given(ANYTHING)
def test_any_value_reads_back_as_the_same_text_or_is_refused_with_a_path(value):
    refused = None
    try:
        text = codec.dumps(value)
    except InvalidArguments as error:
        refused = error
    if refused is None:
        assert codec.dumps(codec.loads(text)) == text
    else:
        assert refused.path.startswith("$")
        assert refused.path in str(refused)


@given(ANYTHING)
def test_any_output_can_be_stored_and_json_readers_take_it(value):
    text, complete = codec.dumps_output(value)
    with closing(sqlite3.connect(":memory:")) as connection:
        assert connection.execute("SELECT json_valid(?)", (text,)).fetchone()[0] == 1
    assert complete is False or codec.dumps(value) == text
