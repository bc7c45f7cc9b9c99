"""How numbers, times and hostile text read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from dashboard.templatetags.stepkeeper import task_state, tool
from dashboard.ui.format import format_age, format_duration, format_money, format_size
from dashboard.ui.safe_text import mark_attribute, mark_block, mark_line
from journal.models import WaitReason

NOW = datetime(2026, 11, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "—"),
        (0.0004, "0.4 ms"),
        (0.34, "340 ms"),
        (0.9999, "1.0 s"),
        (12.2, "12 s"),
        (60, "1 m"),
        (11520, "3 h 12 m"),
        (200000, "2 d 7 h"),
        (-12, "−12 s"),
    ],
)
def test_durations_have_at_most_two_units(seconds, words):
    assert format_duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (14, "14 s ago"),
        (75, "1 min ago"),
        (840, "14 min ago"),
        (-90, "in 1 min"),
        (11520, "3 h 12 min ago"),
    ],
)
def test_times_have_their_age_in_words(seconds, words):
    assert format_age(NOW - timedelta(seconds=seconds), NOW) == words


@pytest.mark.parametrize(("count", "words"), [(None, "—"), (1, "1 byte"), (1482, "1,482 bytes"), (10**6, "977 KiB")])
def test_sizes_have_their_unit(count, words):
    assert format_size(count) == words


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (None, "unpriced"),
        ("0", "$0"),
        ("0.00535", "$0.005350"),
        ("0.0000000001", "< $0.000001"),
        ("1234.5", "$1,234.50"),
    ],
)
def test_an_unknown_price_is_never_zero(amount, words):
    assert format_money(None if amount is None else Decimal(amount)) == words


@given(st.text())
def test_no_text_reorders_hides_or_becomes_markup(text):
    shown = mark_line(text) + mark_block(text)
    plain = re.sub(r'<span class="ctl" title="[^"<]*">[^<]*</span>', "", shown)
    assert "<" not in plain
    for each in (shown, mark_attribute(text)):
        assert not re.search("[\x00-\x08\x0b-\x1f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]", each)


def test_what_a_limit_cuts_off_is_counted():
    assert "… 996 more characters" in mark_line("x" * 1000, 4)
    assert mark_line("x" * 4, 4) == "xxxx"


def test_a_tools_name_stands_whole_on_hover_where_its_cell_cuts_it():
    name = "send_\u202e" + "long_" * 40 + '"'
    shown = tool("mutating", name)
    assert f'<bdi title="send_[U+202E]{"long_" * 40}&quot;">' in shown
    assert "more characters" in shown
    assert "\u202e" not in shown


def test_a_byte_that_is_no_text_shows_its_value():
    assert ">0xFF<" in mark_line("\udcff")


@pytest.mark.parametrize(
    "path", sorted(Path(settings.BASE_DIR, "templates").rglob("*.html")), ids=lambda path: path.name
)
def test_no_template_holds_inline_script_style_or_unescaped_text(path):
    source = path.read_text()
    assert not re.search(r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son[a-z]+=|hx-on|javascript:", source)
    assert not re.search(r"\|\s*safe|autoescape|mark_safe", source)
    assert "http://" not in source
    assert "https://" not in source


def test_a_very_long_name_of_a_tool_stands_in_no_attribute_as_a_whole():
    made = tool("read_only", "n" * 1_000_000)
    assert len(made) < 2000
    assert f'title="{"n" * 400}… 999,600 more characters"' in made
    assert 'title="send"' in tool("mutating", "send")


def test_what_a_branch_is_due_for_does_not_name_the_branch_because_ids_are_long():
    assert "waiting: step 3 of a branch waits for its next attempt<" in task_state(
        "waiting", WaitReason("due", "t/b" * 100, 3), "t"
    )
    assert "waiting: step 3 waits for its next attempt<" in task_state("waiting", WaitReason("due", "t", 3), "t")
