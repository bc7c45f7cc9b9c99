"""The only reader of journals: read-only, time-limited, keyset pages of models."""

from journal.reader.changes import Changes
from journal.reader.files import signature
from journal.reader.journal_reader import Reader
from journal.reader.own_tasks import COUNT_CAP
from journal.reader.pages import Page
from journal.reader.state import KINDS, inspect

__all__ = ["COUNT_CAP", "KINDS", "Changes", "Page", "Reader", "inspect", "signature"]
