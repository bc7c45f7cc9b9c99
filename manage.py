#!/usr/bin/env python3
"""Commands of the dashboard: up, login-link, migrate, changepassword and Django's own."""

import os
import sys


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
    except ImportError as error:
        print(f"Django cannot be imported: {error}. Say `make up`, which installs it into .venv.", file=sys.stderr)
        return 2
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        # A wrong setting is the user's line to mend, not a program error: no traceback.
        print(f"Cannot start: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
