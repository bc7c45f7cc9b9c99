"""The paths of the demo's files and the names of its three agents."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

PULLS: Final = "pull-requests"
COMMITS: Final = "commits"
MESSAGES: Final = "messages"

# Agent → the module that is its daemon, in the order the page tells of them.
AGENTS: Final = {
    PULLS: "agents.demo.pull_request_agent",
    COMMITS: "agents.demo.git_agent",
    MESSAGES: "agents.demo.webhook_agent",
}


# About a week of reports: a few kilobytes each, in the agent's journal, the servers' ledgers and the repository.
FULL = 256 * 2**20


class Paths:
    """The files inside one demo folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journals = folder / "journals"
        self.forge_ledger = folder / "forge-ledger.db"
        self.hook_ledger = folder / "hook-ledger.db"
        self.model_ledger = folder / "model-ledger.db"
        self.repository = folder / "repository"
        self.commit_gate = folder / "commit-gate"
        self.providers = folder / "providers.toml"
        self.world = folder / "world.json"
        self.story = folder / "story.json"
        self.seen = folder / "seen"  # made when the first page is shown: the kills begin then

    def is_full(self) -> bool:
        """Whether the demo has made as much as it may: it works for as long as it runs, and must not fill a disk."""
        return _bytes_in(self.folder) > FULL

    def journal(self, agent: str) -> Path:
        """The journal of one of the demo's agents. Raises KeyError for any other name."""
        AGENTS[agent]
        return self.journals / f"{agent}.db"


def _bytes_in(folder: Path) -> int:
    size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # git and SQLite remove files meanwhile
                size += os.lstat(os.path.join(root, name)).st_size
    return size
