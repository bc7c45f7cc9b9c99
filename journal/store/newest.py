"""The newest time a journal was written at, through clocks that go back (law 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from journal.store.transaction import Transaction


_KEEP = "INSERT OR REPLACE INTO journal_meta (key, value) VALUES ('newest_time', ?)"


class Newest:
    """What one writer knows of that time: what it found on disk, then what it wrote itself."""

    __slots__ = ("_kept", "_time")

    def __init__(self) -> None:
        self._time: str | None = None
        self._kept = ""

    def time(self, tx: Transaction) -> str:
        """The newest time before this transaction; empty for a new journal."""
        if self._time is None:
            self._time = _stored(tx)
        return self._time

    def keep(self, tx: Transaction) -> None:
        """Keep it past what the transaction writes under an earlier time, in that transaction."""
        if tx.now < tx.newest and tx.newest != self._kept:
            tx.execute(_KEEP, (tx.newest,))

    def committed(self, tx: Transaction) -> None:
        """Note what the transaction wrote."""
        self._time = max(tx.newest, tx.now)
        if tx.now < tx.newest:
            self._kept = tx.newest


def note(tx: Transaction) -> None:
    """Keep the time of a change that leaves its row's own time as it is: that one says when the step ended."""
    tx.execute(_KEEP, (max(tx.newest, tx.now),))


def _stored(tx: Transaction) -> str:
    # The rows written last carry it, unless they were written under an earlier time, or keep a time of their own: then
    # `keep` or `note` kept it.
    row = tx.one(
        "SELECT max(t) AS newest FROM (SELECT max(started_at) AS t FROM agent_boot"
        " UNION ALL SELECT max(ended_at) FROM agent_boot"
        " UNION ALL SELECT value FROM journal_meta WHERE key = 'newest_time'"
        " UNION ALL SELECT * FROM (SELECT updated_at FROM agent_step_journal ORDER BY revision DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT coalesce(ended_at, started_at) FROM agent_step_attempt"
        " ORDER BY revision DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT asked_at FROM agent_evidence ORDER BY revision DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT updated_at FROM agent_task ORDER BY revision DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT coalesce(ended_at, started_at) FROM agent_task_run"
        " ORDER BY revision DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT coalesce(ended_at, started_at) FROM agent_model_call"
        " ORDER BY revision DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT applied_at FROM agent_decision ORDER BY revision DESC LIMIT 1))"
    )
    return "" if row is None or row["newest"] is None else str(row["newest"])
