"""`python -m tests.benchmarks [WORD ...]`: what `make bench` runs."""

from __future__ import annotations

import sys

from tests.benchmarks.run import main

sys.exit(main(sys.argv[1:]))
