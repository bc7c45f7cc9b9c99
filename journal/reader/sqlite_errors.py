"""SQLite's error codes, in one word, one sentence and a hint each."""

from __future__ import annotations

import errno
import os
import sqlite3

from journal.errors import JournalUnreadable

_NOT_A_DATABASE = (
    "not_a_database",
    "it is not a SQLite database, or an encrypted one.",
    "Check the path; journals are plain SQLite files.",
)
_DAMAGED = (
    "damaged",
    "part of the file is damaged.",
    "Stop its agent, keep a copy of the file, and restore it from a backup.",
)
_LOG = (
    "log_unreadable",
    "it has a log that was not merged, and the log cannot be opened from here.",
    "Start its agent, which merges the log, or make the folder writable for this user.",
)
_ROLLBACK = (
    "log_unreadable",
    "its writer was killed in mid-write and left a rollback journal.",
    "Start its agent once: opening the file for writing rolls the unfinished write back.",
)
_BUSY = (
    "busy",
    "its writer holds the file's lock.",
    "Try again in a moment; if it stays, look at the agent's process.",
)
_SLOW = ("too_slow", "the question took longer than its time budget.", "Narrow the filter.")
_TOO_BIG = ("too_big", "a cell is larger than the limit of what is read at once.", "")
_TABLES = (
    "foreign_tables",
    "its tables do not have the columns of a journal.",
    "See docs/reference/journals.md for the tables that can be read.",
)
_DESCRIPTORS = ("busy", "this process has no file descriptor left.", "Raise the limit of open files (ulimit -n).")
_PERMISSION = (
    "unreadable",
    "this user may not read it.",
    "Run as the user the agent runs as, or give this user read permission.",
)
_MISSING = ("missing", "there is no such file.", "Check the path.")

_BY_NAME = {
    "SQLITE_NOTADB": _NOT_A_DATABASE,
    "SQLITE_READONLY_ROLLBACK": _ROLLBACK,
    "SQLITE_BUSY_SNAPSHOT": _BUSY,
    "SQLITE_IOERR_SHMSIZE": _LOG,
    "SQLITE_IOERR_SHMOPEN": _LOG,
    "SQLITE_IOERR_SHMMAP": _LOG,
}
_BY_CODE = {
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _NOT_A_DATABASE,
    sqlite3.SQLITE_READONLY: _LOG,
    sqlite3.SQLITE_FULL: _LOG,
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_PROTOCOL: _BUSY,
    sqlite3.SQLITE_INTERRUPT: _SLOW,
    sqlite3.SQLITE_TOOBIG: _TOO_BIG,
    sqlite3.SQLITE_PERM: _PERMISSION,
    sqlite3.SQLITE_AUTH: _PERMISSION,
    sqlite3.SQLITE_ERROR: _TABLES,
    sqlite3.SQLITE_IOERR: _DAMAGED,
}


def printable(path: str) -> str:
    """A path fit for a sentence: bytes that are not text become signs, control characters become escapes."""
    text = os.fsencode(path).decode("utf-8", "replace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def primary_code(error: sqlite3.Error) -> int:
    """The primary result code: the low byte of the extended one; 0 where the module raised on its own."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def explain_error(error: sqlite3.Error, path: str, *, has_log: bool) -> JournalUnreadable:
    """The error a reader raises instead of SQLite's."""
    name = str(getattr(error, "sqlite_errorname", "") or type(error).__name__)
    if primary_code(error) == sqlite3.SQLITE_CANTOPEN:
        kind, sentence, hint = _cannot_open(path, has_log=has_log)
    else:
        kind, sentence, hint = _BY_NAME.get(name) or _BY_CODE.get(primary_code(error)) or _DAMAGED
    return JournalUnreadable(f"Journal {printable(path)}: {sentence} ({name})", kind=kind, hint=hint)


def _cannot_open(path: str, *, has_log: bool) -> tuple[str, str, str]:
    # SQLite says CANTOPEN for a full descriptor table too. Another file is opened to ask: closing the journal's own
    # would drop this process's locks on it.
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return _DESCRIPTORS
    if has_log:
        return _LOG
    return _PERMISSION if os.path.exists(path) else _MISSING
