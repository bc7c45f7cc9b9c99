"""What a file is: the first thing a reader finds out about it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class JournalState:
    """What a file is, in one word and one sentence; `readable` journals have a dialect."""

    path: str
    kind: str  # "ok" or the reason in one word, see docs/reference/journals.md
    sentence: str
    hint: str = ""
    dialect: str | None = None  # "stepkeeper", "minimal", "hash_only"
    uuid: str | None = None
    agent: str | None = None
    user_version: int | None = None
    journal_mode: str | None = None
    highest_revision: int = 0
    highest_boot: int = 0
    sqlite_version: str = ""
    warnings: tuple[str, ...] = field(default=())

    @property
    def readable(self) -> bool:
        return self.kind == "ok"
