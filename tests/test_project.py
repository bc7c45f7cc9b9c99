"""The project itself: what the wheel ships, what the lock files hold, which rooms there are."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.txt", "requirements-dev.txt")
ROOMS = {"journal", "agents", "dashboard"}
TOP_LEVEL = ROOMS | {
    ".ci",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Makefile",
    "README.md",
    "docs",
    "manage.py",
    "pyproject.toml",
    "requirements-dev.txt",
    "requirements.txt",
    "static",
    "templates",
    "tests",
}


def tracked() -> list[str]:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=30
    )
    return [name for name in listing.stdout.split("\0") if name]


def pins(name: str) -> dict[str, str]:
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


def project() -> dict:
    return tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", LOCKS)
def test_the_lock_files_hold_hashes_and_no_addresses(name):
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    for forbidden in ("://", "--index", "--find-links", "--extra-index", "--trusted-host"):
        assert forbidden not in text
    entries = re.split(r"\n(?=[a-z0-9])", text.strip())
    assert len(entries) > 10
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_what_runs_and_what_checks_agree_on_every_version_they_share():
    runs, checks = (pins(name) for name in LOCKS)
    shared = runs.keys() & checks.keys()
    assert {name: runs[name] for name in shared} == {name: checks[name] for name in shared}
    assert {"setuptools", "wheel", "django", "granian", "httpx2"} <= runs.keys()
    assert not {"pytest", "ruff", "mypy", "uv"} & runs.keys()


def test_django_is_the_long_term_support_line():
    assert pins("requirements.txt")["django"].startswith("5.2.")


def test_an_agent_needs_httpx2_and_nothing_else():
    assert project()["project"]["dependencies"] == ["httpx2"]


def test_every_dependency_has_a_line_that_says_why():
    groups = project()["dependency-groups"]
    wanted = {*project()["project"]["dependencies"], *groups["dashboard"], *groups["checks"]}
    reasons = (CHECKOUT / "docs" / "dependencies.md").read_text(encoding="utf-8").partition("## Why each one")[2]
    lines = re.findall(r"^\| ([\w, -]+) \| .{20,} \|$", reasons, re.MULTILINE)
    explained = {name for line in lines for name in line.split(", ")}
    assert {re.split(r"[<>=\[]", one)[0] for one in wanted} == explained


def test_no_fourth_package_and_no_stray_file_stands_at_the_top():
    names = {name.split("/")[0] for name in tracked()}
    assert names - TOP_LEVEL == set()
    packages = {path.parent.name for path in CHECKOUT.glob("*/__init__.py")}
    assert packages - {"tests"} == ROOMS


def test_setuptools_names_every_package_of_journal():
    found = {".".join(path.parent.relative_to(CHECKOUT).parts) for path in (CHECKOUT / "journal").rglob("__init__.py")}
    assert set(project()["tool"]["setuptools"]["packages"]) == found


@pytest.mark.slow
def test_the_wheel_ships_journal_alone_with_its_data(tmp_path):
    source = tmp_path / "source"  # a copy: a build folder left by an older build would ship its modules too
    shutil.copytree(CHECKOUT / "journal", source / "journal", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(CHECKOUT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    built = subprocess.run(
        [*command, "--wheel-dir", tmp_path, source], capture_output=True, text=True, timeout=120, check=False
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("stepkeeper-")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert {name.split("/")[0] for name in names} == {"journal"}
    modules = {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "journal").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules
    data = {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "journal").rglob("*.toml")}
    assert {name for name in names if name.endswith(".toml")} == data
    assert "journal/py.typed" in names


def test_no_address_of_this_machine_or_of_a_registry_stands_in_the_project():
    hosts = ("pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "npmjs" + ".com")
    forbidden = re.compile("|".join([re.escape(host) for host in hosts] + ["/" + "work/", "/" + "root/"]))
    found = []
    for name in tracked():
        path = CHECKOUT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ".html", ".css", ".js", ""} and path.is_file():
            found += [name for line in path.read_text("utf-8").splitlines() if forbidden.search(line)]
    assert found == []


def test_check_runs_what_ci_runs():
    ci = (CHECKOUT / ".ci/run").read_text(encoding="utf-8")
    assert ci.rstrip().endswith("make check </dev/null")
    assert "chromium-headless-shell >/dev/null || $install chromium >/dev/null" in ci
