"""The README's code blocks do what the README says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
TEXT = (CHECKOUT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_agent_of_the_readme_writes_its_note_once_however_often_it_runs(tmp_path):
    (agent,) = blocks("python")
    assert len([line for line in agent.splitlines() if line.strip()]) <= 10
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", agent], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert ran.returncode == 0, ran.stderr
        assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "written once\n"


def test_the_commands_of_the_readme_are_verbs_of_the_makefile():
    verbs = set(re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`|' )make ([a-z-]+)", TEXT, re.MULTILINE))
    assert {"demo", "test", "up"} <= named <= verbs


def test_every_file_the_readme_links_to_is_there():
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert [link for link in links if "://" not in link and not (CHECKOUT / link).exists()] == []
