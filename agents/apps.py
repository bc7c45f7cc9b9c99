"""The Django app of the operator's side. `agents` is never installed, so that an agent's process cannot import it."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AgentsConfig(AppConfig):
    name = "agents"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        post_migrate.connect(_make_groups, sender=self)


def _make_groups(**_: object) -> None:
    from agents.access.roles import make_groups

    make_groups()
