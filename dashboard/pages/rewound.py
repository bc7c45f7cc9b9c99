"""What somebody is told before they accept a journal that holds less than it did."""

from __future__ import annotations

from dataclasses import dataclass

from agents.models import IndexedTask, JournalFile, PendingIntent
from dashboard.forms import AcknowledgeForm


@dataclass(frozen=True, slots=True)
class RewoundPage:
    """One rewound file: what the index still holds of it, and the form that lets it begin anew."""

    journal_id: int
    path: str
    sentence: str
    hint: str
    tasks: int
    pending: int
    boot: int
    form: AcknowledgeForm


def build(file: JournalFile, form: AcknowledgeForm) -> RewoundPage:
    """The confirmation page of one rewound file."""
    return RewoundPage(
        file.pk,
        file.path,
        file.sentence,
        file.hint,
        IndexedTask.objects.filter(journal=file).count(),
        PendingIntent.objects.filter(journal=file).count(),
        file.highest_boot,
        form,
    )
