"""`make audit`: asks a public advisory source whether a locked package has a known vulnerability.

uv asks; the packages and versions are those of the two requirements files. A source that cannot be reached is no
failure: then the last line says that the check was skipped, and why.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
FILES = ("requirements.txt", "requirements-dev.txt")
_PIN = re.compile(r"^([\w.-]+(?:\[[\w,.-]+\])?==[^\s;\\]+)\s*(;[^\\]*)?", re.MULTILINE)
_FOUND = 1  # uv's exit code where a package has a known vulnerability; an error of its own is 2


def read_pins(texts: Sequence[str]) -> list[str]:
    """The locked packages as requirements, each once."""
    found = (f"{name} {marker.strip()}".strip() for text in texts for name, marker in _PIN.findall(text))
    return list(dict.fromkeys(found))


def judge(code: int, output: str) -> tuple[int, str]:
    """The exit code and the last line of an audit that ended like this."""
    if code == 0:
        return 0, "audit: no locked package has a known vulnerability."
    if code == _FOUND:
        return (
            1,
            "audit: a locked package has a known vulnerability. Move it with `make lock`, see docs/dependencies.md.",
        )
    reason = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "no reason was given")
    return 0, f"audit: SKIPPED, the advisory source or the package index cannot be reached: {reason}"


def audit(environ: Mapping[str, str]) -> int:
    """Run the check and print what it found; returns the exit code."""
    pins = read_pins([(CHECKOUT / name).read_text(encoding="utf-8") for name in FILES])
    with tempfile.TemporaryDirectory() as folder:
        project = f'[project]\nname = "locked"\nversion = "0"\nrequires-python = ">=3.11"\ndependencies = {pins!r}\n'
        Path(folder, "pyproject.toml").write_text(project, encoding="utf-8")
        uv = [str(Path(sys.executable).with_name("uv")), "audit", "--preview-features", "audit", "--no-progress"]
        asked = subprocess.run(
            uv, cwd=folder, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    if asked.returncode == _FOUND:
        print(asked.stdout, asked.stderr, sep="\n")
    code, sentence = judge(asked.returncode, asked.stderr)
    print(sentence)
    return code


if __name__ == "__main__":
    sys.exit(audit({"UV_HTTP_RETRIES": "0", **os.environ}))
