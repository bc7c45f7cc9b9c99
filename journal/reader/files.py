"""What the file system says about a journal before SQLite opens it: nothing here opens the file."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from functools import lru_cache

from journal import writer_lock
from journal.errors import JournalUnreadable
from journal.reader.connect import Sidecars
from journal.reader.faults import shown

# The smallest page SQLite knows; a shorter file holds no database.
_SMALLEST = 512
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class Looked:
    """A file that SQLite may open. `path` is absolute and free of links."""

    path: str
    size: int
    warnings: tuple[str, ...]


def signature(path: str | os.PathLike[str]) -> tuple[object, ...]:
    """(inode, size, mtime) of the file and of its log: unchanged means nothing was written since.

    Rollback-journal files count as logs. Missing files are None; never raises, opens nothing.
    """
    real = os.path.realpath(os.fspath(path)) if "\0" not in os.fspath(path) else os.fspath(path)
    found = Sidecars.of(real)
    return (found.main, found.wal, found.rollback)


def look(path: str | os.PathLike[str], *, root_is_owner: bool | None = None) -> Looked:
    """Look at a path from outside. Raises JournalUnreadable for whatever must not or cannot be opened.

    Root owns every file unless `root_is_owner` is False.
    """
    name = os.fspath(path)
    real, found = _stat(name)
    _refuse_what_is_no_file(name, found)
    warnings = _owner(name, found, root_is_owner=root_is_owner)
    if not os.access(real, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        raise _no(name, "unreadable", "this user may not read it.", "Give its owner read permission (chmod u+r).")
    if found.st_size == 0:
        raise _no(name, "empty", "the file is empty.", "Its agent has not written yet, or something truncated it.")
    if found.st_size < _SMALLEST:
        raise _no(
            name,
            "truncated",
            f"{found.st_size} bytes are less than any SQLite database.",
            "Restore it from a backup, or move it away.",
        )
    kind = _filesystem(os.path.dirname(real), found.st_dev)
    if writer_lock.is_network_filesystem(kind):
        raise _no(
            name,
            "network_fs",
            f"it stands on {kind}, where SQLite's locks cannot be trusted.",
            "Keep the journal on a local disk; to look at it from here, copy it with VACUUM INTO.",
        )
    return Looked(real, found.st_size, warnings)


def _stat(name: str) -> tuple[str, os.stat_result]:
    if "\0" in name:
        raise _no(name, "missing", "no file name holds a NUL.", "Check the path.")
    real = os.path.realpath(name)
    try:
        return real, os.stat(name)
    except PermissionError:
        raise _no(
            name, "unreadable", "this user may not enter its folder.", "Run as the user the agent runs as."
        ) from None
    except FileNotFoundError:
        if os.path.islink(name):
            raise _no(name, "missing", "the symbolic link leads nowhere.", "Point the link at a journal.") from None
        raise _no(name, "missing", "there is no such file.", "Check the path.") from None
    except OSError as error:
        raise _no(name, "not_a_file", f"{(error.strerror or 'unreadable').lower()}.", "Check the path.") from error


def _refuse_what_is_no_file(name: str, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise _no(name, "folder", "it is a folder.", "Name the journal file inside it.")
    if not stat.S_ISREG(found.st_mode):
        what = next((words for test, words in _KINDS if test(found.st_mode)), "no regular file")
        raise _no(name, "not_a_file", f"it is {what}.", "Name a journal file.")


def _owner(name: str, found: os.stat_result, *, root_is_owner: bool | None) -> tuple[str, ...]:
    me = os.geteuid()
    if found.st_uid == me:
        return ()
    owner = user(found.st_uid)
    if me == 0 and root_is_owner is not False:
        return (f"Read as root; the file belongs to {owner}.",)
    # Opening a log in another user's name would leave files beside the journal that its agent cannot write.
    raise _no(name, "other_owner", f"it belongs to {owner}.", f"Run this as {owner}, the user its agent runs as.")


def user(uid: int) -> str:
    """A user's name, or `uid N` where the machine knows none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


@lru_cache(maxsize=256)
def _filesystem(folder: str, _device: int) -> str:
    return writer_lock.find_filesystem(folder)


def _no(name: str, kind: str, cause: str, hint: str) -> JournalUnreadable:
    return JournalUnreadable(f"Journal {shown(name)}: {cause}", kind=kind, hint=hint)
