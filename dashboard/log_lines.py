"""What the log's lines look like, and what never stands in one."""

from __future__ import annotations

import copy
import logging
import re

_TOKEN = re.compile(r"(sign-in/link/+)[A-Za-z0-9_-]+")


class LogLine(logging.Formatter):
    """A line without sign-in tokens, which may still be valid, and without a traceback where a request was refused."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name.startswith("django.security"):  # what somebody sent, no fault of ours
            record = copy.copy(record)
            record.exc_info, record.exc_text = None, None
        return _TOKEN.sub(r"\1<token>", super().format(record))
