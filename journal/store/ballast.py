"""A reserve of disk space, freed so that an outcome can still be written when the volume is full."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

BYTES = 1024 * 1024


def keep_ballast(journal: Path) -> None:
    """Take the space, if the volume has it; an agent without a reserve still works."""
    with contextlib.suppress(OSError):
        descriptor = os.open(_path(journal), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, BYTES)
        finally:
            os.close(descriptor)


def free_ballast(journal: Path) -> None:
    """Free the space for the next write."""
    with contextlib.suppress(OSError):
        _path(journal).unlink()


def _path(journal: Path) -> Path:
    return journal.with_name(journal.name + ".reserve")
