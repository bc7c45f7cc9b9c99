"""What the verbs really run."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def recipe(verb: str, *variables: str) -> str:
    """The commands of a verb on a machine where nothing is installed yet; nothing is run."""
    command = ["make", "--dry-run", "--no-print-directory", "VENV=.venv-of-nobody", *variables, verb]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("verb", ["demo", "up", "test", "check"])
def test_every_verb_installs_pins_with_their_hashes_then_the_package_without_dependencies(verb):
    said = recipe(verb)
    pins = said.index("--require-hashes -r requirements.txt")
    assert pins < said.index("--no-deps --no-build-isolation -e .")


def test_the_demo_installs_what_runs_it_and_nothing_else():
    said = recipe("demo")
    assert "requirements-dev.txt" not in said
    assert "STEPKEEPER_DATA=data/demo" in said
    assert "manage.py up --demo" in said


def test_check_holds_every_check_and_all_tests_but_soak():
    said = recipe("check")
    for part in (
        "ruff format --check",
        "ruff check",
        "bin/mypy",
        "lint-imports",
        "djlint templates --lint",
        "tests.advisories",
    ):
        assert part in said
    assert '-m pytest -q -n 2 --dist loadgroup -m "not soak"' in said
    assert "coverage report" in said
    assert '-m pytest -q -n 2 --dist loadgroup -m "not soak"' in recipe("test")


def test_the_acceptance_list_fails_without_a_browser_and_ends_at_the_first_failure():
    said = recipe("accept", "N=3")
    assert "CI=true" in said
    assert "seq 3" in said
    assert "|| exit 1" in said


def test_lock_writes_both_files_for_every_machine_and_names_no_index():
    said = recipe("lock")
    wanted = (
        "--generate-hashes --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url"
        " --no-emit-find-links"
    )
    lines = [line for line in said.replace("\\\n", " ").splitlines() if "uv pip compile" in line]
    assert len(lines) == 2
    assert all(wanted in " ".join(line.split()) for line in lines)


def test_the_checks_are_strict():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert told["mypy"]["strict"] is True
    assert told["coverage"]["report"]["fail_under"] >= 90
