"""The dashboard's own tables. The truth about steps stays in the journals; these rows are what the fleet remembers."""

from __future__ import annotations

from agents.models.alert import Alert
from agents.models.audit_event import AuditEvent
from agents.models.beat import Beat
from agents.models.indexed_model_call import IndexedModelCall
from agents.models.indexed_run import IndexedRun
from agents.models.indexed_task import IndexedTask
from agents.models.job import Job
from agents.models.journal_file import JournalFile
from agents.models.login_link import LoginLink
from agents.models.pending_intent import PendingIntent
from agents.models.spend_hour import SpendHour
from agents.models.volume import DiskSample, Volume

__all__ = [
    "Alert",
    "AuditEvent",
    "Beat",
    "DiskSample",
    "IndexedModelCall",
    "IndexedRun",
    "IndexedTask",
    "Job",
    "JournalFile",
    "LoginLink",
    "PendingIntent",
    "SpendHour",
    "Volume",
]
