"""One priced provider response; all sums are made from these rows."""

from __future__ import annotations

from django.db import models

from agents.models.journal_file import JournalFile


class IndexedModelCall(models.Model):
    """One response of a model step. Buckets are disjoint; NULL means not reported, which is not 0."""

    journal = models.ForeignKey(JournalFile, on_delete=models.CASCADE, related_name="model_calls")
    task_id = models.TextField()
    step_index = models.IntegerField()
    call = models.IntegerField()
    agent = models.CharField(max_length=200, blank=True, default="")
    tool = models.CharField(max_length=200, blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")
    state = models.CharField(max_length=16)
    started_at = models.DateTimeField(null=True, blank=True)
    hour = models.DateTimeField(null=True, blank=True)  # UTC hour of `started_at`

    in_uncached = models.BigIntegerField(null=True, blank=True)
    in_cache_read = models.BigIntegerField(null=True, blank=True)
    in_cache_write = models.BigIntegerField(null=True, blank=True)
    out_visible = models.BigIntegerField(null=True, blank=True)
    out_reasoning = models.BigIntegerField(null=True, blank=True)
    tokens_in = models.BigIntegerField(null=True, blank=True)  # sum of the reported in_ buckets
    tokens_out = models.BigIntegerField(null=True, blank=True)

    cost_pico = models.BigIntegerField(null=True, blank=True)  # NULL: unpriced
    unpriced_why = models.TextField(blank=True, default="")
    matched_model = models.CharField(max_length=200, blank=True, default="")
    matched_tier = models.CharField(max_length=64, blank=True, default="")
    price_version = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("journal", "task_id", "step_index", "call"), name="model_call_once"),
        )
        indexes = (models.Index(fields=("journal", "hour"), name="model_call_by_hour"),)

    def __str__(self) -> str:
        return f"{self.task_id} step {self.step_index} call {self.call}"
