"""The configured path patterns: which files they match, and whether a path lies inside them."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterator

# Files and folders that SQLite and the runtime keep beside a journal.
_BESIDE = ("-wal", "-shm", "-journal", ".lock", ".inbox", ".reserve", ".mark")


def matching_paths(patterns: tuple[str, ...]) -> Iterator[str]:
    """Every path that the patterns match, once, without the files that belong to a journal."""
    seen: set[str] = set()
    for pattern in patterns:
        anything = os.path.basename(pattern) == "**"
        for path in glob.iglob(pattern, recursive=True):
            if path in seen or _is_beside(path) or (anything and os.path.isdir(path)):
                continue
            seen.add(path)
            yield path


def is_inside(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether the patterns may match this path, which holds no symbolic links.

    Symbolic links are followed in the part before the first wildcard: the operator wrote that part.
    """
    parts = path.split(os.sep)
    return not _is_beside(path) and any(_fits(parts, _resolved(pattern)) for pattern in patterns)


def is_real_and_inside(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path leads through no symlink and is one the patterns may give."""
    return os.path.realpath(path) == path and is_inside(path, patterns)


def _is_beside(path: str) -> bool:
    return any(part.endswith(".inbox") for part in path.split(os.sep)) or path.endswith(_BESIDE)


def _resolved(pattern: str) -> list[str]:
    parts = pattern.split(os.sep)
    literal = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    head = os.path.realpath(os.sep.join(parts[:literal]) or os.sep)
    return [*(glob.escape(part) for part in head.rstrip(os.sep).split(os.sep)), *parts[literal:]]


def _fits(parts: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        # As glob: zero or more folders, none of them hidden; at the end at least one part.
        return _fits(parts, pattern[1:] or ["*"]) or (
            bool(parts) and not parts[0].startswith(".") and _fits(parts[1:], pattern)
        )
    if not parts:
        return False
    # As the shell: a wildcard never matches a leading dot.
    if parts[0].startswith(".") and not pattern[0].startswith((".", "[.]")):
        return False
    return fnmatch.fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])
