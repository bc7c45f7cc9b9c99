"""A one-time sign-in link."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class LoginLink(models.Model):
    """A one-time sign-in link. Only the token's hash is stored: it does not let a reader of the database sign in."""

    token_sha256 = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="login_links")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"a link for {self.user}, until {self.expires_at:%Y-%m-%d %H:%M} UTC"
