"""Tokens and money of one UTC hour, per journal, model and tool: a sum of priced responses."""

from __future__ import annotations

from django.db import models

from agents.models.journal_file import JournalFile


class SpendHour(models.Model):
    """Rebuilt whole from IndexedModelCall and IndexedRun, never added to, so a batch applied twice counts once."""

    journal = models.ForeignKey(JournalFile, on_delete=models.CASCADE, related_name="spend_hours")
    hour = models.DateTimeField()
    agent = models.CharField(max_length=200, blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")
    tool = models.CharField(max_length=200, blank=True, default="")

    in_uncached = models.BigIntegerField(null=True, blank=True)
    in_cache_read = models.BigIntegerField(null=True, blank=True)
    in_cache_write = models.BigIntegerField(null=True, blank=True)
    out_visible = models.BigIntegerField(null=True, blank=True)
    out_reasoning = models.BigIntegerField(null=True, blank=True)
    tokens_in = models.BigIntegerField(null=True, blank=True)
    tokens_out = models.BigIntegerField(null=True, blank=True)
    calls = models.IntegerField(default=0)
    cost_pico = models.BigIntegerField(null=True, blank=True)
    unpriced_calls = models.IntegerField(default=0)
    unpriced_tokens = models.BigIntegerField(default=0)

    saved_calls = models.IntegerField(default=0)
    saved_tokens = models.BigIntegerField(default=0)
    saved_pico = models.BigIntegerField(null=True, blank=True)
    saved_unpriced_calls = models.IntegerField(default=0)
    price_version = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("journal", "hour", "agent", "model", "tool"), name="spend_once_per_hour"),
        )
        indexes = (models.Index(fields=("hour",), name="spend_by_hour"),)

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}:00 {self.model}"
