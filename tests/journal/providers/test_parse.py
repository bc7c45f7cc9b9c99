"""Profiles: strict defaults, windows after the margin, and what the loader refuses."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import timedelta
from pathlib import Path

import pytest

from journal.errors import ProfileError
from journal.providers import duration, parse
from journal.providers.load import load_profiles
from journal.providers.parse import parse_profile, python_profile
from journal.providers.profile import FOREVER, Profile, StatusHeader

KEY = {"placement": "header", "name": "Idempotency-Key"}
RULES = [{"status": 200, "is": "exists"}, {"status": 404, "is": "absent"}]
STATUS = {"request": "GET /operations/{key}", "interpret": RULES}

FORGE = """
[forge]
adopt = "pull"
duplicate_cost = "visible"
ambiguous = [502, 504]
key = { placement = "header", name = "Idempotency-Key", quote = "sf_string" }
retention = { for = "24h", kind = "at_least" }
replay = { marker = { "Idempotent-Replayed" = "true" }, promised = true }
rate_limit = { statuses = [429, 503], pre_execution = true, cap = "5m" }
policy = { on_absent = "redispatch", max_attempts = 3, max_age = "12h" }
transport = { timeout = "10s", in_flight_horizon = "2m" }

[forge.status]
request = "GET /operations/{key}"
absence = "authoritative"
output = "result"
visible = "GET /health"
headers = { Authorization = { env = "FORGE_TOKEN", prefix = "Bearer " }, Accept = "application/json" }
interpret = [
  { status = 200, path = "state", equals = "done", is = "exists" },
  { status = [200, 202], is = "in_progress" },
  { status = 404, is = "absent" },
]
"""


def profile(**fields: object) -> Profile:
    return load_profiles({"p": fields})["p"]


def test_a_profile_that_says_nothing_lets_a_machine_do_nothing():
    strict = load_profiles(None)["generic_none"]
    assert (strict.keyed, strict.asks, strict.window, strict.on_absent, strict.duplicate_cost) == (
        False,
        False,
        None,
        "hold",
        "money",
    )


def test_every_field_of_a_file_is_read(tmp_path):
    (tmp_path / "providers.toml").write_text(FORGE)
    forge = load_profiles(tmp_path / "providers.toml")["forge"]
    assert forge.key_text("k") == '"k"'
    assert (forge.marker, forge.marker_promised) == (("Idempotent-Replayed", "true"), True)
    assert (forge.max_attempts, forge.max_age, forge.ambiguous) == (3, timedelta(hours=12), (502, 504))
    assert (forge.timeout, forge.horizon) == (timedelta(seconds=10), timedelta(minutes=2))
    assert forge.rate_limit.statuses == (429, 503)
    assert forge.status is not None
    assert forge.status.headers[1] == StatusHeader("Authorization", text="Bearer ", env="FORGE_TOKEN")
    assert [rule.answer for rule in forge.status.rules] == ["exists", "in_progress", "absent"]


def test_a_stored_profile_is_read_back_equal(tmp_path):
    (tmp_path / "providers.toml").write_text(FORGE)
    for original in (
        load_profiles(tmp_path / "providers.toml")["forge"],
        python_profile(timedelta(hours=24), True, None),
    ):
        assert parse_profile(original.name, json.loads(original.canonical)) == original
        assert len(original.version) == 12


@pytest.mark.parametrize(
    ("retention", "window"),
    [
        ({"for": "24h", "kind": "at_least"}, timedelta(hours=21.6)),
        ({"for": "5m", "kind": "at_least"}, timedelta(minutes=4)),
        ({"for": "24h", "kind": "up_to"}, timedelta(hours=12)),
        ({"for": "24h", "kind": "approx"}, timedelta(hours=12)),
        ({"for": "24h"}, timedelta(hours=12)),
        ({"for": "24h", "kind": "at_least", "margin": "4h"}, timedelta(hours=20)),
        ({"for": "24h", "kind": "at_least", "margin": "1s"}, timedelta(hours=21.6)),
        ({"for": "30s", "kind": "at_least"}, timedelta(0)),
        ({"for": "forever"}, FOREVER),
        ({"for": "unknown"}, None),
        ({}, None),
    ],
)
def test_the_window_is_the_promise_less_its_margin(retention, window):
    assert profile(key=KEY, retention=retention).window == window


def test_an_unknown_window_may_be_assumed_by_name():
    assumed = profile(key=KEY, assume="10m")
    assert assumed.window == timedelta(minutes=10)


def test_a_python_tool_has_its_own_profile():
    full = python_profile(timedelta(hours=24), True, timedelta(seconds=5))
    assert (full.keyed, full.asks, full.window, full.horizon) == (
        True,
        True,
        timedelta(hours=21.6),
        timedelta(seconds=5),
    )
    assert (full.on_absent, full.duplicate_cost) == ("redispatch", "visible")
    bare = python_profile(None, False, None)
    assert (bare.keyed, bare.asks, bare.window, bare.horizon) == (False, False, None, timedelta(minutes=15))
    assert python_profile(FOREVER, False, None).window == FOREVER


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"keys": {}}, "keys"),
        ({"key": {"placement": "json"}}, "placement"),
        ({"key": {"placement": "header"}}, "name"),
        ({"key": {"placement": "header", "name": "Bad Name"}}, "name"),
        ({"key": {"name": "X"}}, "name"),
        ({"key": {**KEY, "max_bytes": 36}}, "max_bytes"),
        ({"key": {"placement": "argument"}}, "Python tool"),
        ({"key": KEY, "retention": {"for": "a day"}}, "for"),
        ({"key": KEY, "retention": {"for": "24h"}, "assume": "1h"}, "assume"),
        ({"retention": {"for": "24h"}}, "without a key"),
        ({"key": KEY, "retention": {"for": "40s", "kind": "approx"}}, "shorter than the timeout"),
        ({"replay": {"promised": True}}, "promised"),
        ({"replay": {"marker": {"A": "1", "B": "2"}}}, "marker"),
        ({"replay": {"marker": {"A": 1}}}, "marker"),
        ({"replay": {"marker": {"A": ""}}}, "not empty"),
        ({"ambiguous": [99]}, "ambiguous"),
        ({"ambiguous": [True]}, "ambiguous"),
        ({"rate_limit": {"statuses": [200]}}, "statuses"),
        ({"policy": {"on_absent": "redispatch"}, "status": STATUS}, "costs money"),
        ({"policy": {"on_absent": "redispatch"}, "duplicate_cost": "visible"}, "without a status query"),
        ({"policy": {"max_attempts": 0}}, "max_attempts"),
        ({"transport": {"timeout": "1h"}}, "timeout"),
        ({"status": {"request": "GET /o/{key}"}}, "interpret"),
        ({"status": {**STATUS, "request": "POST /o/{key}"}}, "request"),
        ({"status": {**STATUS, "request": "GET /o"}}, "request"),
        ({"status": {**STATUS, "request": "GET /o/{key}/{owner}"}}, "request"),
        ({"status": {**STATUS, "request": "GET o/{key}"}}, "request"),
        ({"status": {**STATUS, "visible": "DELETE /o"}}, "visible"),
        ({"status": {**STATUS, "kind": "marker_scan", "absence": "authoritative"}}, "absence"),
        ({"status": {**STATUS, "kind": "tool"}}, "Python tool"),
        ({"status": {**STATUS, "probes": 0}}, "probes"),
        ({"status": {**STATUS, "headers": {"A": {"env": "NOT A NAME"}}}}, "env"),
        ({"status": {**STATUS, "interpret": [{"status": 404, "is": "absent"}]}}, "interpret"),
        ({"status": {**STATUS, "interpret": [{"status": 200, "is": "yes"}]}}, "is"),
        ({"status": {**STATUS, "interpret": [{"status": 200, "is": "exists", "path": "a"}]}}, "path"),
        ({"status": {**STATUS, "interpret": [{"status": 200, "is": "exists", "body": "a"}]}}, "body"),
        ({"duplicate_cost": "none"}, "duplicate_cost"),
        ({"version": 1}, "version"),
    ],
)
def test_the_loader_names_what_it_refuses(fields, named):
    with pytest.raises(ProfileError, match=named) as refused:
        profile(**fields)
    assert "p" in refused.value.message
    assert refused.value.hint


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ProfileError, match=r"gone\.toml"):
        load_profiles(tmp_path / "gone.toml")
    (tmp_path / "odd.toml").write_text("[forge\n")
    with pytest.raises(ProfileError, match="not TOML"):
        load_profiles(tmp_path / "odd.toml")
    (tmp_path / "deep.toml").write_text("a = " + "[" * 5000)
    with pytest.raises(ProfileError, match=r"deep\.toml: nested too deeply"):
        load_profiles(tmp_path / "deep.toml")


def test_a_table_that_is_none_and_a_taken_name_are_refused():
    with pytest.raises(ProfileError, match="not a table"):
        load_profiles({"forge": 1})
    with pytest.raises(ProfileError, match="taken by a built-in"):
        load_profiles({"generic_none": {}})


@pytest.mark.parametrize("text", ["24h", "15m", "30s", "7d", "0.5s", "forever"])
def test_a_duration_reads_back_as_written(text):
    assert duration.format_duration(duration.parse_duration(text)) == text


@pytest.mark.parametrize("text", ["", "24", "h", "-1h", "1 h", "1w", "9999999d", 24, None])
def test_other_durations_are_refused(text):
    with pytest.raises(ValueError, match="not a duration"):
        duration.parse_duration(text)


def test_the_documented_profile_loads_and_every_field_is_documented():
    text = (Path(__file__).parents[3] / "docs" / "guides" / "providers.md").read_text()
    example = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert example
    assert load_profiles(tomllib.loads(example[1]))["forge"].window == timedelta(hours=21.6)
    fields = {
        name for name in parse.FIELDS if name not in ("key", "retention", "replay", "status", "policy", "transport")
    }
    assert {name for name in fields if f"`{name}" not in text} == set()
