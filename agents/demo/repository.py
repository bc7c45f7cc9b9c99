"""The git repository that one demo agent commits to, with a gate that can delay the report of a finished commit."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Final

# The commit trailer that carries a step's key.
TRAILER: Final = "Stepkeeper-Key"
# The user's own git settings (signing, hooks, templates) are not part of the demo.
ENVIRONMENT: Final = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Demo agent",
    "GIT_AUTHOR_EMAIL": "agent@demo.invalid",
    "GIT_COMMITTER_NAME": "Demo agent",
    "GIT_COMMITTER_EMAIL": "agent@demo.invalid",
}
# git runs this after the commit is made and before `git commit` ends: the moment between effect and answer.
# It gives up after 10 s, so that nothing is left behind where nobody opens the gate.
_HOOK: Final = """#!/bin/sh
turns=0
while [ -e {gate} ] && [ $turns -lt 200 ]; do turns=$((turns + 1)); sleep 0.05; done
"""


def make(repository: Path, *, gate: Path) -> None:
    """Make the repository if it is not there, and open the gate."""
    gate.unlink(missing_ok=True)
    if (repository / ".git" / "refs" / "heads" / "main").exists():
        return
    repository.mkdir(parents=True, exist_ok=True)
    run(repository, "init", "--quiet", "--initial-branch=main", "--template=")
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    hook = hooks / "post-commit"
    hook.write_text(_HOOK.format(gate=shlex.quote(str(gate.absolute()))), encoding="utf-8")
    hook.chmod(0o700)
    run(repository, "commit", "--quiet", "--allow-empty", "--message=Begin the notes")


def unlock(repository: Path) -> None:
    """Remove what a killed git left locked. Only for the repository's one user, before it works there."""
    git = repository / ".git"
    for lock in (*git.glob("*.lock"), *(git / "refs" / "heads").glob("*.lock")):
        lock.unlink(missing_ok=True)


def run(repository: Path, *arguments: str) -> str:
    """The output of one git command."""
    command = ["git", "-C", str(repository), *arguments]
    environ = {**os.environ, **ENVIRONMENT}
    return subprocess.run(command, env=environ, text=True, capture_output=True, check=True).stdout


def newest_message(repository: Path) -> str:
    """The newest commit's message."""
    return run(repository, "log", "-1", "--format=%B")


def commits_of(repository: Path, key: str) -> list[str]:
    """The commits that carry this key, newest first."""
    return run(repository, "log", "--all", f"--grep=^{TRAILER}: {key}$", "--format=%H").split()
