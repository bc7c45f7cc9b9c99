"""A volume with journals on it, and samples of both."""

from __future__ import annotations

from django.db import models

from agents.models.journal_file import JournalFile


class Volume(models.Model):
    """One mounted file system, with its newest sample and the forecast from the last day."""

    mount = models.CharField(max_length=1024, unique=True)
    free_bytes = models.BigIntegerField()
    total_bytes = models.BigIntegerField()
    growth_per_day = models.BigIntegerField(null=True, blank=True)  # NULL: too few samples to say
    full_at = models.DateTimeField(null=True, blank=True)
    sampled_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.mount


class DiskSample(models.Model):
    """One reading of a journal or of a volume. `grain` is how coarse a series the reading still belongs to."""

    journal = models.ForeignKey(JournalFile, null=True, blank=True, on_delete=models.CASCADE, related_name="samples")
    volume = models.ForeignKey(Volume, null=True, blank=True, on_delete=models.CASCADE, related_name="samples")
    taken_at = models.DateTimeField()
    grain = models.IntegerField()  # seconds: 30, 300 or 3600
    file_bytes = models.BigIntegerField(null=True, blank=True)
    wal_bytes = models.BigIntegerField(null=True, blank=True)
    inbox_bytes = models.BigIntegerField(null=True, blank=True)
    free_bytes = models.BigIntegerField(null=True, blank=True)
    total_bytes = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=models.Q(journal__isnull=False, volume__isnull=True)
                | models.Q(journal__isnull=True, volume__isnull=False),
                name="sample_of_one_thing",
            ),
        )
        indexes = (
            models.Index(fields=("journal", "taken_at"), name="sample_of_journal"),
            models.Index(fields=("volume", "taken_at"), name="sample_of_volume"),
            models.Index(fields=("grain", "taken_at"), name="sample_to_thin"),
        )

    def __str__(self) -> str:
        return f"{self.taken_at:%Y-%m-%d %H:%M:%S}"
