"""The documents: every name has its heading, every block of Python runs, every link leads somewhere."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
import typing
from contextlib import closing
from pathlib import Path

import pytest

import journal
from agents.access import roles
from agents.states import AGENT_STATES
from dashboard import environment
from journal import codec, ids, models
from journal.cli.parser import build
from journal.hold_reasons import HOLD_REASONS
from journal.http import client, secrets
from journal.inbox import mailbox
from journal.providers import profile
from journal.settle import context as desk
from journal.settle import dispatch
from journal.store import connection

CHECKOUT = Path(__file__).resolve().parents[1]
PAGES = sorted([CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *CHECKOUT.glob("docs/**/*.md")])
# Its blocks need servers: tests/test_adopt.py runs them.
# tests/test_first_agent.py runs those of the tutorial.
ALONE = [page for page in PAGES if page.name != "adopt.md" and page.parent.name != "tutorial"]
REFERENCE = CHECKOUT / "docs" / "reference"
RUNTIME = (REFERENCE / "runtime.md").read_text(encoding="utf-8")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def headings(title: str) -> set[str]:
    """The names that have a heading in this section of docs/reference/runtime.md."""
    section = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", RUNTIME, re.MULTILINE | re.DOTALL)
    assert section is not None, title
    return set(re.findall(r"^### `(\w+)`$", section[1], re.MULTILINE))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links() -> list[tuple[Path, str]]:
    found = [(page, link) for page in PAGES for link in re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", text_of(page))]
    return [(page, link) for page, link in found if "://" not in link]


def python_blocks() -> list[tuple[str, str]]:
    return [
        (f"{page.name}-{number}", block)
        for page in ALONE
        for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL))
    ]


def test_every_public_name_has_its_heading():
    assert headings("Names") | headings("Errors") == set(journal.__all__)


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Task statuses", models.TaskStatus),
        ("Step statuses", models.StepStatus),
        ("Effects", models.Effect),
        ("Verdicts", models.Verdict),
        ("Evidence", models.Answer),
        ("Decisions", models.DecisionKind),
    ],
)
def test_every_status_verdict_effect_and_decision_has_its_heading(title, words):
    assert headings(title) == set(typing.get_args(words))


def test_every_setting_has_its_heading():
    page = text_of(REFERENCE / "settings.md")
    missing = [one.name for one in environment.SETTINGS if f"### `{one.name}`\n" not in page]
    assert missing == []


def test_every_verb_of_the_command_line_has_its_heading():
    actions = build()._subparsers
    assert actions is not None
    choices = actions._group_actions[0].choices
    assert choices is not None
    assert set(choices) <= set(re.findall(r"^## (\w+)$", text_of(REFERENCE / "cli.md"), re.MULTILINE))


def test_the_words_for_held_steps_that_the_documents_use_are_words_of_the_runtime():
    used = set(re.findall(r"held:?\s+(?:as\s+)?`(\w+)`", RUNTIME + text_of(REFERENCE / "known-limits.md")))
    assert {"missing_reference", "quarantined", "attempts_used"} <= used <= set(HOLD_REASONS)


def rows_of(page: str, title: str) -> set[str]:
    """What stands in backticks in the first cells of the tables under this heading."""
    section = re.search(rf"^#+ {re.escape(title)}$(.*?)(?=^#|\Z)", page, re.MULTILINE | re.DOTALL)
    assert section is not None, title
    cells = re.findall(r"^\| ([^|]+) \|", section[1], re.MULTILINE)
    return {word for cell in cells for word in re.findall(r"`(\w+)`", cell)}


def test_every_hold_reason_and_every_wait_kind_has_its_row():
    assert rows_of(RUNTIME, "Hold reasons") == set(HOLD_REASONS)
    assert rows_of(RUNTIME, "`waiting`") == set(typing.get_args(models.WaitKind))


def test_every_table_and_the_shared_columns_of_a_journal_have_their_rows(tmp_path):
    journal.Journal(tmp_path / "a.db", agent="a").close()
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        columns = [row[1] for row in connection.execute("PRAGMA table_info(agent_step_journal)")]
    found = rows_of(text_of(REFERENCE / "journals.md"), "The tables")
    assert found == tables | set(columns[:9])


def test_every_rule_of_recovery_that_the_code_names_has_its_row():
    code = "".join(text_of(path) for path in (CHECKOUT / "journal").rglob("*.py"))
    found = re.findall(r"\b([Rr]ow|[Ll]aw)s? (\d+(?:(?:, | and | to )\d+)*)", code)
    named = {f"{kind.lower()} {number}" for kind, numbers in found for number in re.findall(r"\d+", numbers)}
    table = re.findall(r"^\| ((?:row|law) \d+) \|", text_of(REFERENCE / "recovery.md"), re.MULTILINE)
    assert "row 49" in named
    assert named <= set(table)


def test_every_state_of_an_agent_and_every_role_has_its_row():
    operate = text_of(CHECKOUT / "docs" / "guides" / "operate.md")
    assert rows_of(operate, "States of agents and tasks") == set(AGENT_STATES)
    assert [role for role in roles.ROLES if f"| {role.replace('_', ' ')} |" not in operate] == []


def test_the_limits_are_those_of_the_code():
    table = RUNTIME.partition("\n## Limits\n")[2]
    mib = 1024 * 1024
    rows = {
        "nesting": f"{codec._MAX_DEPTH} levels",
        "an output": f"{codec.MAX_OUTPUT_BYTES // mib} MiB of JSON",
        "an HTTP answer": f"{client.MAX_BODY // mib} MiB",
        "a message to the writer": f"{mailbox.MAX_BYTES // mib} MiB",
        "a task id": f"{ids.MAX_TASK_ID_CHARACTERS} characters",
        "dispatches by a machine": f"{profile.MAX_ATTEMPTS}, those not sent are free",
        "starts of one step that end with its process": f"{desk.QUARANTINE_STARTS}",
        "between the mark on disk and the first byte": f"{dispatch.MAX_SEND_DELAY:g} s",
        "the log beside the file": f"taken up past {connection.LONGEST_LOG // mib} MiB",
    }
    assert (codec._INT_MIN, codec._INT_MAX) == (-(2**63), 2**64 - 1)
    assert "| integers | −2^63 to 2^64 − 1 |" in table
    for what, limit in rows.items():
        assert f"| {what} | {limit} |" in table
    assert f"fewer than {secrets._SHORTEST} characters" in " ".join(RUNTIME.split())


@pytest.mark.parametrize(("name", "block"), python_blocks(), ids=lambda value: value if "\n" not in value else "")
def test_a_block_of_python_runs(name, block, tmp_path):
    # Twice: a block that opens a journal must resume as well as begin.
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert ran.returncode == 0, ran.stderr


def test_every_link_leads_to_a_file_and_a_heading():
    broken = []
    for page, link in links():
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{page.name}: {link}")
    assert broken == []


def test_every_page_of_the_documents_can_be_reached_from_the_readme():
    reached, queue = set(), [CHECKOUT / "README.md"]
    while queue:
        page = queue.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = [(page.parent / link.partition("#")[0]).resolve() for source, link in links() if source == page]
        queue += [target for target in targets if target.suffix == ".md" and target.exists()]
    assert [page.name for page in PAGES if page not in reached] == []


def test_every_file_and_folder_that_the_documents_name_is_there():
    rooms = "journal|agents|dashboard|templates|static|tests|docs"
    named = [(page, path) for page in PAGES for path in re.findall(rf"`((?:{rooms})/[\w./-]*)`", text_of(page))]
    assert len(named) > 10
    assert [f"{page.name}: {path}" for page, path in named if not (CHECKOUT / path).exists()] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", ["triage-agent.service", "stepkeeper.service"])
def test_the_units_are_understood_by_systemd_and_sandboxed(tmp_path, unit):
    page = (CHECKOUT / "docs" / "guides" / "systemd.md").read_text(encoding="utf-8")
    block = page.partition(f"/etc/systemd/system/{unit}`")[2].partition("```ini\n")[2].partition("```")[0]
    # The paths of the page are not on this machine; the rest is taken as it stands.
    block = re.sub(r"(?<==)/srv/\S*python", sys.executable, block).replace("/srv/agents/triage", str(tmp_path))
    (tmp_path / unit).write_text(re.sub(r"=/srv/(?:agents|stepkeeper)$", f"={tmp_path}", block, flags=re.MULTILINE))
    said = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / unit)], capture_output=True, text=True, check=False
    )
    assert [line for line in said.stderr.splitlines() if unit in line] == []
    rated = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(tmp_path / unit)]
    level = subprocess.run(rated, capture_output=True, text=True, check=False).stdout
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", level)
    assert exposure, level
    assert float(exposure[1]) < 3, "systemd calls 10 unprotected"
