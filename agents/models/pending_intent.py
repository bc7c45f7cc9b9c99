"""A step that is not settled, in the fleet index: an intent, or another step that is held."""

from __future__ import annotations

from django.db import models

from agents.models.journal_file import JournalFile

# Who must act next, in one word: its running agent, time, recovery, a person, or another maker's agent.
IN_FLIGHT = "in_flight"
WAITING = "waiting"
UNRESOLVED = "unresolved"
HELD = "held"
FOREIGN = "foreign"


class PendingIntent(models.Model):
    """One pending intent, or held step: why it is pending, and what recovery would do next."""

    journal = models.ForeignKey(JournalFile, on_delete=models.CASCADE, related_name="pending_intents")
    task_id = models.TextField()
    step_index = models.IntegerField()
    agent = models.CharField(max_length=200, blank=True, default="")
    tool_name = models.CharField(max_length=200)
    effect = models.CharField(max_length=16, blank=True, default="")
    transport = models.CharField(max_length=16, blank=True, default="")
    provider = models.CharField(max_length=200, blank=True, default="")
    key = models.CharField(max_length=200, blank=True, default="")
    payload_sha256 = models.CharField(max_length=64, blank=True, default="")
    arguments_bytes = models.BigIntegerField(null=True, blank=True)
    dispatches = models.IntegerField(default=0)
    sent = models.CharField(max_length=16, default="none")  # the sum of all attempts, see agents/states.py
    raised = models.BooleanField(default=False)  # the tool raised last: its outcome is unknown, and on record
    target = models.CharField(max_length=200, blank=True, default="")  # the host its request goes to
    state = models.CharField(max_length=16, default=UNRESOLVED)
    hold_reason = models.CharField(max_length=64, blank=True, default="")
    differs_at = models.TextField(blank=True, default="")  # of diverged code: the parameter that differs, or `tool`
    lapsed_actor = models.CharField(max_length=200, blank=True, default="")  # whose approval expired unused
    detail = models.TextField(blank=True, default="")  # may quote a provider: for who may see payloads
    next_action = models.CharField(max_length=16, blank=True, default="")  # send query wait adopt fail hold, or ""
    next_sentence = models.TextField(blank=True, default="")
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    since = models.DateTimeField()
    dated = models.BooleanField(default=True)  # False: no row says since when; `since` is when it was first read
    window_left_until = models.DateTimeField(null=True, blank=True)
    window_text = models.TextField(blank=True, default="")
    task_status = models.CharField(max_length=16, blank=True, default="")
    asks = models.BooleanField(default=False)  # whether somebody can be asked for its status
    revision = models.BigIntegerField(default=0)
    decided_at = models.DateTimeField()  # when `state` and `next_action` were computed

    class Meta:
        constraints = (models.UniqueConstraint(fields=("journal", "task_id", "step_index"), name="intent_once"),)
        indexes = (models.Index(fields=("since", "id"), name="intent_oldest"),)

    def __str__(self) -> str:
        return f"{self.task_id} step {self.step_index}"
