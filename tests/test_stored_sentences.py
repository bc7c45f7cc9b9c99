"""Data first, sentences last: no code of the three rooms reads a word out of a stored sentence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("journal", "agents", "dashboard")
# Fields and variables that hold sentences for people: why a task waits or a step is held, what became of a decision,
# an alert or a job, and what rule recovery followed.
SENTENCES = {
    *("wait_reason", "wait_detail", "hold_detail", "detail", "outcome", "outcome_detail", "why", "rule", "sentence"),
    *("next_sentence", "result", "answer", "conflict", "cancel_reason", "alarm", "advice", "label", "word", "hint"),
}
PARSERS = {
    *("startswith", "endswith", "partition", "rpartition", "split", "rsplit", "splitlines"),
    *("removeprefix", "removesuffix", "find", "index"),
}
MATCHERS = {"match", "search", "fullmatch", "findall", "finditer", "sub"}
LOOKUPS = ("startswith", "endswith", "contains", "regex", "iregex", "istartswith", "iendswith", "icontains")
# Where a name of the list above is something else, or the sentence is not ours to type.
EXCEPTIONS = {
    ("dashboard/templatetags/stepkeeper.py", "count"): "a template's own argument, which names a noun and its plural",
    ("agents/alerts.py", "_journals"): "the sentence of a card that a reader's error may have made, with its path",
}


def subject(node: ast.expr) -> str:
    """The name a value was taken from: `row.why`, `row["why"]`, `(row.why or "")` and `str(why)` are all `why`."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.BoolOp(values=[first, *_]) | ast.Call(func=ast.Name(id="str"), args=[first]):
            return subject(first)
        case ast.Call(func=ast.Attribute(value=first, attr="lower" | "strip" | "casefold")):
            return subject(first)
    return ""


def parsed(node: ast.AST) -> str:
    """The sentence that this expression takes apart, or the SQL that matches a text; empty where it does neither."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in PARSERS and subject(value) in SENTENCES:
            return f"{subject(value)}.{name}"
        case ast.Call(func=ast.Attribute(attr=name), args=args) if name in MATCHERS:
            return next((f"{name}({subject(each)})" for each in args if subject(each) in SENTENCES), "")
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[right]) if subject(right) in SENTENCES:
            return f"in {subject(right)}"
        case ast.keyword(arg=str(name)) if "__" in name and name.rpartition("__")[2] in LOOKUPS:
            return name if name.partition("__")[0] in SENTENCES else ""
        case ast.Constant(value=str(text)):
            return next((word for word in (" LIKE ", " GLOB ", " REGEXP ") if word in text), "")
    return ""


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    for statement in tree.body:
        for each in getattr(statement, "body", []) if isinstance(statement, ast.ClassDef) else [statement]:
            yield getattr(each, "name", "module"), each


def found_in(path: Path) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    return [
        f"{name}:{getattr(node, 'lineno', 0)} {function}: {what}"
        for function, body in functions(ast.parse(path.read_text()))
        if (name, function) not in EXCEPTIONS
        for node in ast.walk(body)
        if (what := parsed(node))
    ]


def test_no_code_parses_a_stored_sentence():
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) if "migrations" not in path.parts]
    assert len(files) > 100
    assert [line for path in files for line in found_in(path)] == []


@pytest.mark.parametrize(
    "code",
    [
        'task.wait_reason.startswith("held")',
        '(row["hold_detail"] or "").partition(":")',
        '"expired" in decision.outcome',
        "_ROWS.sub('', why, count=1)",
        "re.match(pattern, line.sentence)",
        "row.word.removeprefix('held: ')",
        "Task.objects.filter(why__startswith='Row')",
        "\"SELECT 1 FROM agent_task WHERE wait_kind LIKE 'diverged%'\"",
    ],
)
def test_each_way_to_parse_a_sentence_is_seen(code):
    assert any(parsed(node) for node in ast.walk(ast.parse(code)))


def test_each_exception_is_needed():
    for name, function in EXCEPTIONS:
        bodies = [body for found, body in functions(ast.parse((ROOT / name).read_text())) if found == function]
        assert any(parsed(node) for body in bodies for node in ast.walk(body)), (name, function)
