"""The only reader of journals: read-only connections, short questions, answers as models; it reads any maker's file.

It may not write, keep a connection, or know the store, Django or the dashboard.
"""

from journal.reader.changes import Changes
from journal.reader.file_state import KINDS, JournalState, inspect
from journal.reader.native import COUNT_CAP
from journal.reader.paging import Page
from journal.reader.reader import Reader
from journal.reader.stat import file_signature

__all__ = ["COUNT_CAP", "KINDS", "Changes", "JournalState", "Page", "Reader", "file_signature", "inspect"]
