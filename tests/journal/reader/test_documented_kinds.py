"""The documents name every verb, every exit code, every kind of file and every dialect."""

from __future__ import annotations

import re
from pathlib import Path

from journal.cli import codes
from journal.cli.parser import build
from journal.reader import KINDS
from journal.reader.dialects import FOREIGN, OURS

_ROOT = Path(__file__).resolve().parents[3]
_DOCS = _ROOT / "docs" / "reference"


def test_every_verb_has_its_heading():
    actions = build()._subparsers
    assert actions is not None
    choices = actions._group_actions[0].choices
    assert choices is not None
    headings = re.findall(r"^## (\w+)$", (_DOCS / "cli.md").read_text(), re.M)
    assert set(choices) <= set(headings)


def test_every_exit_code_has_its_row():
    rows = {int(code) for code in re.findall(r"^\| (\d+) \|", (_DOCS / "cli.md").read_text(), re.M)}
    named = {value for name, value in vars(codes).items() if name.isupper()}
    assert rows == named - {codes.INTERRUPTED}


def test_every_kind_of_file_has_its_heading_and_no_other_kind_is_raised():
    headings = re.findall(r"^### `(\w+)`$", (_DOCS / "journals.md").read_text(), re.M)
    assert headings == list(KINDS)
    sources = "".join(path.read_text() for path in (_ROOT / "journal" / "reader").glob("*.py"))
    named = set(re.findall(r'kind="(\w+)"', sources)) | set(
        re.findall(r'_refusal\(\s*(?:name|path),\s*"(\w+)"', sources)
    )
    named |= set(re.findall(r'^_[A-Z_]+ = \(\s*"(\w+)",', sources, re.M))
    assert named == set(KINDS)


def test_every_dialect_is_described():
    text = (_DOCS / "journals.md").read_text()
    for name in (OURS, *(dialect.name for dialect in FOREIGN)):
        assert f"`dialect: {name}`" in text
