"""A setting whose name nothing reads stops the start, instead of being its default in silence."""

from __future__ import annotations

import re

import pytest
from django.core.exceptions import ImproperlyConfigured

from dashboard import environment
from dashboard.environment import refuse_unknown
from tests.dashboard.test_settings import manage


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("STEPKEEPER_DECISON_TTL", "STEPKEEPER_DECISION_TTL"),
        ("STEPKEEPER_JOURNAL", "STEPKEEPER_JOURNALS"),
        ("STEPKEEPER_journals", "STEPKEEPER_JOURNALS"),
        ("STEPKEEPER_PORT", "PORT"),
        ("STEPKEEPER_TESTCLOCK", "STEPKEEPER_TEST_CLOCK"),
    ],
)
def test_a_misspelt_setting_is_refused_with_the_name_that_was_meant(name, meant):
    with pytest.raises(ImproperlyConfigured) as refused:
        refuse_unknown({"PATH": "/bin", name: "60"})
    assert str(refused.value).startswith(f"{name} is no setting; did you mean {meant}? ")
    assert "docs/reference/settings.md" in str(refused.value)


def test_a_name_that_is_near_to_none_is_refused_without_a_guess_and_all_are_named_at_once():
    with pytest.raises(ImproperlyConfigured) as refused:
        refuse_unknown({"STEPKEEPER_ZZ": "", "STEPKEEPER_HOST": "localhost"})
    assert str(refused.value).startswith(
        "STEPKEEPER_HOST is no setting; did you mean STEPKEEPER_HOSTS? STEPKEEPER_ZZ is no setting. The settings"
    )


def test_every_name_in_the_docs_is_accepted_and_other_prefixes_are_nobody_s_business():
    text = (environment.CHECKOUT / "docs/reference/settings.md").read_text(encoding="utf-8")
    named = re.findall(r"^### `(\w+)`$", text, re.MULTILINE)
    assert "STEPKEEPER_TEST_CLOCK" in named
    refuse_unknown(dict.fromkeys([*named, "FORGE_TOKEN", "MY_STEPKEEPER_TOKEN", "stepkeeper_data"], "1"))


def test_a_misspelt_setting_stops_the_start_in_one_line(tmp_path):
    result = manage("check", STEPKEEPER_DATA=str(tmp_path), STEPKEEPER_DECISON_TTL="60")
    assert result.returncode == 2
    assert result.stderr.startswith("Cannot start: STEPKEEPER_DECISON_TTL is no setting; did you mean")
    assert result.stderr.count("\n") == 1
