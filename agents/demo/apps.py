"""The demo as a Django app: it brings a view and template tags, and no tables."""

from __future__ import annotations

from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "agents.demo"
    label = "demo"
