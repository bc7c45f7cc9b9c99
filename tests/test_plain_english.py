"""Plain English: no sentence that a person reads is too long, and none uses a word that only its writer understands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
PAGES = [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")]
LONGEST = 25  # words
# Words that hide who cannot do what.
RIDDLES = (
    r"\bgate G\b",
    r"knows? (neither|no) keys?",
    r"knows neither",
    r"can be asked nothing",
    r"nothing can tell",
    r"[Nn]obody gets",
    r"a roll for it",
    r"a mark and no outcome",
)

# Code and its comments name the rules of docs/reference/recovery.md by their numbers. Users never meet the numbers.
RULES = re.compile(r"\b([Rr]ow|[Ll]aw)s? \d+")


def sentences(text: str) -> Iterator[str]:
    """The sentences of some plain text; code in backticks is one word."""
    text = re.sub(r"``[^`]*``|`[^`]*`", "CODE", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=\s*\w+: )", text):
        for sentence in re.split(r"(?<=[.!?:;])['\")*]*\s+", block):
            yield " ".join(sentence.split())


def of_a_page(page: Path) -> Iterator[str]:
    """The sentences of a document, without its code blocks; a cell of a table is read by itself."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^#+ .*$", "\n\\g<0>\n", text, flags=re.MULTILINE)
    for part in re.split(r"(^\|.*$)", text, flags=re.MULTILINE):
        for cell in part.split("|") if part.startswith("|") else [part]:
            yield from sentences(cell)


def is_too_long(sentence: str) -> bool:
    return len([word for word in sentence.split() if re.search(r"\w", word)]) > LONGEST


def riddle_in(text: str) -> bool:
    return any(re.search(riddle, " ".join(text.split())) for riddle in RIDDLES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_a_page_has_short_sentences_and_no_riddle(page):
    assert [one for one in of_a_page(page) if is_too_long(one)] == []
    assert [one for one in of_a_page(page) if riddle_in(one)] == []
    if page.name != "recovery.md":
        assert [one for one in of_a_page(page) if RULES.search(one)] == []


def test_a_long_sentence_and_a_riddle_are_found():
    assert any(is_too_long(one) for one in sentences("word " * 26))
    assert not any(is_too_long(one) for one in sentences("A short one. " * 26))
    assert riddle_in("The outcome is unknown: a mark and no outcome.")
    assert riddle_in("A tool that\nknows no key.")
