"""Every address of the dashboard."""

from __future__ import annotations

from django.urls import path

from dashboard.views import health, sign_in

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("sign-in/", sign_in.sign_in, name="sign_in"),
    path("sign-in/link/<str:token>/", sign_in.sign_in_link, name="sign_in_link"),
    path("sign-out/", sign_in.sign_out, name="sign_out"),
]
