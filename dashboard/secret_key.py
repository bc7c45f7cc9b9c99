"""The secret key: generated once in the data folder, readable by its owner only."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

FILE_NAME = "secret-key"


def make_data_folder(path: Path) -> Path:
    """The folder, made with mode 0700 when missing. Raises ImproperlyConfigured when it cannot be written to."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"STEPKEEPER_DATA is '{path}': {error.strerror}. Name a folder this user may write to."
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise ImproperlyConfigured(f"STEPKEEPER_DATA is '{path}': it cannot be written to. Name another folder.")
    return path


def load_secret_key(folder: Path) -> str:
    """The installation's key, made on the first call. Sessions and queued jobs are signed with it.

    Raises ImproperlyConfigured when others may read the file: with the key, anyone can sign in as anyone.
    """
    path = folder / FILE_NAME
    if not path.exists():
        _generate_key(path)
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ImproperlyConfigured(f"'{path}' has mode {mode:04o}: others may read it. Say chmod 600, or delete it.")
    key = path.read_text(encoding="ascii").strip()
    if len(key) < 50:
        raise ImproperlyConfigured(f"'{path}' holds no key. Delete it: a new one is made, and everyone signs in again.")
    return key


def _generate_key(path: Path) -> None:
    part = path.with_name(f"{FILE_NAME}.{os.getpid()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(64) + "\n")
        file.flush()
        os.fsync(file.fileno())
    # Several processes start at once: link() lets exactly one of them name its key, the others read that one.
    with contextlib.suppress(FileExistsError):
        os.link(part, path)
    part.unlink()
