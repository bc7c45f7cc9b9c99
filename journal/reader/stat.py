"""A journal's path, checked from outside before SQLite opens the file: nothing here opens it."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from journal import writer_lock
from journal.errors import JournalUnreadable
from journal.models import Writer
from journal.reader.open import Sidecars
from journal.reader.sqlite_errors import printable

# The smallest page SQLite knows; a shorter file holds no database.
_SMALLEST = 512
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class JournalPath:
    """A file that SQLite may open. `path` is absolute and free of links."""

    path: str
    size: int
    warnings: tuple[str, ...]


def file_signature(path: str | os.PathLike[str]) -> tuple[object, ...]:
    """(inode, size, mtime) of the file and of its logs: while they stay the same, nothing was written.

    Rollback-journal files count as logs. Missing files are None; never raises, opens nothing.
    """
    real = os.path.realpath(os.fspath(path)) if "\0" not in os.fspath(path) else os.fspath(path)
    found = Sidecars.of(real)
    return (found.main, found.wal, found.rollback)


def look_at_files(path: str) -> tuple[tuple[object, ...], Writer | None]:
    """The signature of a journal, and who writes it now."""
    return file_signature(path), writer_lock.find_holder(Path(path))


def check_path(path: str | os.PathLike[str], *, root_is_owner: bool | None = None) -> JournalPath:
    """Check a path from outside. Raises JournalUnreadable for a file that must not or cannot be opened.

    Root owns every file unless `root_is_owner` is False.
    """
    name = os.fspath(path)
    real, found = _stat(name)
    _refuse_other_kinds(name, found)
    warnings = _owner(name, found, root_is_owner=root_is_owner)
    if not os.access(real, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        raise _refusal(name, "unreadable", "this user may not read it.", "Give its owner read permission (chmod u+r).")
    if found.st_size == 0:
        raise _refusal(name, "empty", "the file is empty.", "Its agent has not written yet, or something truncated it.")
    if found.st_size < _SMALLEST:
        raise _refusal(
            name,
            "truncated",
            f"{found.st_size} bytes are less than any SQLite database.",
            "Restore it from a backup, or move it away.",
        )
    kind = _filesystem(os.path.dirname(real), found.st_dev)
    if writer_lock.is_network_filesystem(kind):
        raise _refusal(
            name,
            "network_fs",
            f"it stands on {kind}, where SQLite's locks cannot be trusted.",
            "Keep the journal on a local disk; to look at it from here, copy it with VACUUM INTO.",
        )
    return JournalPath(real, found.st_size, warnings)


def _stat(name: str) -> tuple[str, os.stat_result]:
    if "\0" in name:
        raise _refusal(name, "missing", "a file name cannot hold a NUL byte.", "Check the path.")
    real = os.path.realpath(name)
    try:
        return real, os.stat(name)
    except PermissionError:
        raise _refusal(
            name, "unreadable", "this user may not enter its folder.", "Run as the user the agent runs as."
        ) from None
    except FileNotFoundError:
        if os.path.islink(name):
            raise _refusal(
                name, "missing", "the symbolic link leads nowhere.", "Point the link at a journal."
            ) from None
        raise _refusal(name, "missing", "there is no such file.", "Check the path.") from None
    except OSError as error:
        raise _refusal(name, "not_a_file", f"{(error.strerror or 'unreadable').lower()}.", "Check the path.") from error


def _refuse_other_kinds(name: str, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise _refusal(name, "folder", "it is a folder.", "Name the journal file inside it.")
    if not stat.S_ISREG(found.st_mode):
        what = next((words for test, words in _KINDS if test(found.st_mode)), "not a regular file")
        raise _refusal(name, "not_a_file", f"it is {what}.", "Name a journal file.")


def _owner(name: str, found: os.stat_result, *, root_is_owner: bool | None) -> tuple[str, ...]:
    me = os.geteuid()
    if found.st_uid == me:
        return ()
    owner = user_name(found.st_uid)
    if me == 0 and root_is_owner is not False:
        return (f"Read as root; the file belongs to {owner}.",)
    # Opening a log in another user's name would leave files beside the journal that its agent cannot write.
    raise _refusal(name, "other_owner", f"it belongs to {owner}.", f"Run this as {owner}, the user its agent runs as.")


def user_name(uid: int) -> str:
    """A user's name, or `uid N` where the machine knows none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


@lru_cache(maxsize=256)
def _filesystem(folder: str, _device: int) -> str:
    return writer_lock.find_filesystem(folder)


def _refusal(name: str, kind: str, cause: str, hint: str) -> JournalUnreadable:
    return JournalUnreadable(f"Journal {printable(name)}: {cause}", kind=kind, hint=hint)
