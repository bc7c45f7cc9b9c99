"""The README's code blocks do what the README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
FIRST_AGENT = CHECKOUT / "docs" / "tutorial" / "first_agent.py"
TEXT = (CHECKOUT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    return [block for named, block in found if named == language]


def test_the_agent_of_the_readme_writes_its_note_once_however_often_it_runs(tmp_path):
    (agent,) = blocks("python")
    assert len([line for line in agent.splitlines() if line.strip()]) <= 10
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", agent], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert ran.returncode == 0, ran.stderr
        assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "written once\n"


def test_the_steps_of_the_readme_run_the_agent_with_the_python_that_make_install_makes(tmp_path):
    (agent,) = blocks("python")
    (steps,) = (block for block in blocks("") if "notes.py" in block)
    (tmp_path / "notes.py").write_text(agent, encoding="utf-8")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for name in ("Makefile", "pyproject.toml", "requirements.txt"):
        (tmp_path / name).symlink_to(CHECKOUT / name)
    # make only says what it would do: this environment is there, and a test fetches nothing.
    ran = subprocess.run(
        ["sh", "-euc", steps], cwd=tmp_path, env={**os.environ, "MAKEFLAGS": "n"}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert steps.splitlines()[0].split()[:2] == ["make", "install"]
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "written once\n"


def test_the_first_agent_names_the_install_step_where_it_cannot_import_the_runtime():
    # -I -S: neither this folder nor any installed package.
    ran = subprocess.run([sys.executable, "-I", "-S", FIRST_AGENT], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert "make install; .venv/bin/python docs/tutorial/first_agent.py" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_commands_of_the_readme_are_verbs_of_the_makefile():
    verbs = set(re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`|' )make ([a-z-]+)", TEXT, re.MULTILINE))
    assert {"demo", "test", "up"} <= named <= verbs


def test_each_verb_of_the_makefile_has_its_line_for_who_works_on_the_project():
    (verbs,) = re.findall(r"^\.PHONY: (.+)$", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    text = (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `make ([a-z-]+)[^`]*` \|", text, re.MULTILINE)
    assert sorted(told) == sorted(set(verbs.split()) - {"install", "install-dev"})
    assert "`make demo-reset`" in TEXT


def test_what_the_readme_tells_to_make_in_the_checkout_is_ignored_there(tmp_path):
    (agent,) = blocks("python")
    (tmp_path / "notes.py").write_text(agent, encoding="utf-8")
    subprocess.run([sys.executable, "notes.py"], cwd=tmp_path, check=True, timeout=60)
    folder = re.search(r'else "([\w-]+)"\)', FIRST_AGENT.read_text(encoding="utf-8"))
    assert folder
    (tmp_path / folder[1]).mkdir()
    (tmp_path / folder[1] / "journal.db").touch()
    (tmp_path / ".gitignore").write_text((CHECKOUT / ".gitignore").read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True, timeout=30)
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    status = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=30)
    assert status.stdout.split() == ["??", ".gitignore"]


def test_every_file_the_readme_links_to_is_there():
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert [link for link in links if "://" not in link and not (CHECKOUT / link).exists()] == []
