"""Plain English: no sentence that a person reads is too long, and none uses a word that only its writer understands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
PAGES = [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")]
LONGEST = 25  # words of a sentence in a document
LONGEST_IN_CODE = 30  # in a docstring, an error or a text of a page
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


def of_a_module(path: Path) -> Iterator[tuple[int, str, bool]]:
    """The texts of a module with their lines, and whether each is a docstring. A value in an f-string is one word."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
    docstrings = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    pieces = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "VALUE" for part in node.values)
            yield node.lineno, text, False
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pieces:
            yield node.lineno, node.value, id(node) in docstrings


def is_code(text: str) -> bool:
    """Whether the text is SQL, or the TOML of a profile."""
    sql = r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|ORDER BY|WHERE|AND|UNION|JOIN)\b"
    return re.search(rf"{sql}|^\[\w+\]$", text, re.MULTILINE) is not None


def is_too_long(sentence: str, longest: int = LONGEST) -> bool:
    return len([word for word in sentence.split() if re.search(r"\w", word)]) > longest


def riddle_in(text: str) -> bool:
    return any(re.search(riddle, " ".join(text.split()), re.IGNORECASE) for riddle in RIDDLES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_a_page_has_short_sentences_and_no_riddle(page):
    assert [one for one in of_a_page(page) if is_too_long(one)] == []
    assert [one for one in of_a_page(page) if riddle_in(one)] == []
    if page.name != "recovery.md":
        assert [one for one in of_a_page(page) if RULES.search(one)] == []


@pytest.mark.parametrize("room", ["journal", "agents", "dashboard"])
def test_docstrings_and_texts_of_the_code_have_short_sentences_and_no_riddle(room):
    found = []
    for path in CHECKOUT.glob(f"{room}/**/*.py"):
        if path.parent.name == "migrations":
            continue
        for line, text, is_docstring in of_a_module(path):
            long = any(is_too_long(one, LONGEST_IN_CODE) for one in sentences(text))
            # An action's `rule` is such a number and nothing else.
            numbered = not is_docstring and RULES.search(text) and not re.fullmatch(r"(row|law) \d+", text)
            if not is_code(text) and (long or numbered or riddle_in(text)):
                found.append(f"{path.relative_to(CHECKOUT)}:{line}: {' '.join(text.split())[:200]}")
    assert found == []


def test_a_long_sentence_and_a_riddle_are_found():
    assert any(is_too_long(one) for one in sentences("word " * 26))
    assert not any(is_too_long(one) for one in sentences("A short one. " * 26))
    assert riddle_in("The outcome is unknown: a mark and no outcome.")
    assert riddle_in("A tool that\nknows no key.")
