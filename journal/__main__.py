"""`python -m journal`: look at a journal, give its agent work, check it, recover it, keep its daemon running."""

from __future__ import annotations

import sys

from journal.cli import main

if __name__ == "__main__":
    sys.exit(main())
