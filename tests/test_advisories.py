"""The check for known vulnerabilities: which packages are asked about, and what a source that is away means."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.advisories import CHECKOUT, FILES, judge, read_pins


def test_every_locked_package_is_asked_about():
    texts = [(CHECKOUT / name).read_text(encoding="utf-8") for name in FILES]
    pins = read_pins(texts)
    assert len(pins) == len({line for text in texts for line in text.splitlines() if "==" in line.partition(";")[0]})
    assert any(pin.startswith("django==") for pin in pins)


def test_a_marker_stays_with_its_package():
    text = 'colorama==0.4.6 ; sys_platform == "win32" \\\n    --hash=sha256:00\n'
    assert read_pins([text, text]) == ['colorama==0.4.6 ; sys_platform == "win32"']


def test_a_known_vulnerability_fails_and_a_source_that_is_away_is_said_to_be_skipped():
    assert judge(0, "")[0] == 0
    assert judge(1, "")[0] == 1
    assert judge(2, "error: Request failed\n  cause: no such name\n") == (
        0,
        "audit: SKIPPED, the advisory source or the package index cannot be reached: cause: no such name",
    )


def test_offline_the_check_says_that_it_was_skipped_and_fails_nothing():
    argv = [sys.executable, "-m", "tests.advisories"]
    env = {**os.environ, "UV_OFFLINE": "1"}
    said = subprocess.run(argv, cwd=CHECKOUT, env=env, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("audit: SKIPPED")
