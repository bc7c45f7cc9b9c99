"""Payloads: shown piece by piece, so that a big cell costs only the part that is shown; handed out only whole."""

from __future__ import annotations

import codecs
import hashlib
import sqlite3
from dataclasses import dataclass
from typing import Final, Literal

from journal.errors import JournalUnreadable
from journal.reader.untrusted_row import OddText

# Up to CAP bytes a payload is read whole; of a longer one only its beginning.
CAP = 1_000_000
PREVIEW = 65_536
# In bytes: as long as an output may be. The body of a request has no limit of its own.
MOST_HANDED_OUT: Final = 64 * 1024 * 1024
# Hashing a body to prove it costs about 1 ms per MB; larger ones are left to `check`.
_PROVEN_UP_TO = 32_000_000
_CHUNK = 1 << 20


Name = Literal["arguments", "output", "body"]


@dataclass(frozen=True, slots=True)
class Payload:
    """A cell's text, its full length in bytes, and whether `text` is only its beginning."""

    text: str | None = None
    size: int | None = None
    previewed: bool = False
    odd: bool = False


NOTHING = Payload()


def read_cell(connection: sqlite3.Connection, table: str, column: str, rowid: int | None, *, cap: int = CAP) -> Payload:
    """One payload cell by row id. A table without row ids, or a cell that is not text, is read by a query."""
    if rowid is None:
        return NOTHING
    try:
        blob = connection.blobopen(table, column, rowid, readonly=True)
    except sqlite3.OperationalError:
        return _plain(connection, f"SELECT {column} FROM {table} WHERE rowid = ?", (rowid,))
    with blob:
        size = len(blob)
        return read_beginning(blob.read(size if size <= cap else min(PREVIEW, cap)), size)


def read_beginning(raw: bytes, size: int) -> Payload:
    """The payload whose first bytes are `raw`; a character cut in two at the end is left out."""
    partial = len(raw) < size
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        return Payload(decoder.decode(raw, final=not partial), size, previewed=partial)
    except UnicodeDecodeError:
        return Payload(raw.decode("utf-8", "replace"), size, previewed=partial, odd=True)


def read_body(connection: sqlite3.Connection, sha256: str, *, cap: int = CAP) -> Payload:
    """A body of its own row, proven against its name. Odd where it is missing or its hash is another one."""
    row = connection.execute("SELECT rowid FROM agent_body WHERE sha256 = ?", (sha256,)).fetchone()
    if row is None:
        return Payload(odd=True)
    try:
        blob = connection.blobopen("agent_body", "body", int(row[0]), readonly=True)
    except sqlite3.OperationalError:
        return Payload(odd=True)
    with blob:
        size = len(blob)
        raw = blob.read(size if size <= cap else min(PREVIEW, cap))
        found = read_beginning(raw, size)
        if size > _PROVEN_UP_TO or found.odd:
            return found
        digest = hashlib.sha256(raw)
        while chunk := blob.read(_CHUNK):
            digest.update(chunk)
    return Payload(found.text, size, found.previewed, odd=digest.hexdigest() != sha256)


def read_plain(
    connection: sqlite3.Connection, expression: str, table: str, where: str, key: tuple[object, ...]
) -> Payload:
    """One payload cell of a table that cannot be read piece by piece; odd where it is larger than the limit."""
    return _plain(connection, f"SELECT {expression} FROM {table} WHERE {where}", key)


def _plain(connection: sqlite3.Connection, sql: str, key: tuple[object, ...]) -> Payload:
    try:
        row = connection.execute(sql, key).fetchone()
    except sqlite3.DataError:
        return Payload(odd=True, previewed=True)
    value = row[0] if row else None
    if value is None:
        return NOTHING
    if isinstance(value, bytes):
        return read_beginning(value, len(value))
    text = str(value)
    return Payload(text, len(text.encode("utf-8", "replace")), odd=isinstance(value, OddText | int | float))


def read_bytes(
    connection: sqlite3.Connection, table: str, column: str, rowid: int | None, *, cap: int
) -> tuple[bytes | None, int | None]:
    """The bytes of a cell and their number; beyond `cap` only the beginning. None where the cell holds no bytes."""
    if rowid is None:
        return None, None
    try:
        blob = connection.blobopen(table, column, rowid, readonly=True)
    except sqlite3.OperationalError:
        return None, None
    with blob:
        size = len(blob)
        return blob.read(size if size <= cap else min(PREVIEW, cap)), size


def read_whole(connection: sqlite3.Connection, sql: str, key: tuple[object, ...], name: Name) -> bytes | None:
    """All bytes of one cell exactly as they are stored. Raises JournalUnreadable(kind="too_big") for a longer cell."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_HANDED_OUT)
    try:
        row = connection.execute(sql, key).fetchone()
    except sqlite3.DataError:
        raise JournalUnreadable(
            f"The step's {name}: longer than {MOST_HANDED_OUT:,} bytes, the most that is handed out at once.",
            kind="too_big",
            hint="Copy the journal with VACUUM INTO and read the cell there.",
        ) from None
    value = row[0] if row else None
    return value if isinstance(value, bytes) else None
