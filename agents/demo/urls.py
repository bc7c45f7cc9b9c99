"""The demo's one address."""

from __future__ import annotations

from django.urls import path

from agents.demo.views import kill_agent

urlpatterns = [path("kill/<str:agent>/", kill_agent, name="kill")]
