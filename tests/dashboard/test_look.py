"""The style sheets keep to the look: one scale of type, one corner radius, nothing said to be there that is hidden."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

from tests.dashboard.ladder import signed_in, text

STATIC = Path(settings.BASE_DIR, "static")
SHEETS = {path.name: re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL) for path in STATIC.glob("*.css")}


def declared(names: str) -> list[tuple[str, str]]:
    """Every declaration of these properties: its sheet and its value."""
    return [
        (sheet, value.strip())
        for sheet, css in SHEETS.items()
        for value in re.findall(rf"(?<![\w-])(?:{names}):\s*([^;}}]+)", css)
    ]


def test_every_size_of_type_is_one_of_the_scale_and_none_is_under_12_px():
    sizes = {name: float(rem) * 16 for name, rem in re.findall(r"--(t\d+): ([\d.]+)rem", SHEETS["tokens.css"])}
    assert sizes == {f"t{px}": px for px in (12, 13, 14, 16, 20, 28)}
    found = declared("font|font-size")
    assert len(found) > 40
    assert [one for one in found if "var(--t" not in one[1] and one[1] != "inherit"] == []


def test_the_words_of_a_folded_gap_are_never_hidden():
    hidden = [names for names, rule in re.findall(r"([^{}]*){([^}]*)}", SHEETS["pages.css"]) if "display: none" in rule]
    assert any(".tick-text.second" in names for names in hidden), "in a narrow lane a tick's label gives way"
    assert not [names for names in hidden if ".fold-text" in names]


def test_there_is_one_corner_radius():
    assert {value for _, value in declared("border-radius")} == {"var(--radius)"}
    drawn = [
        path for path in Path(settings.BASE_DIR, "templates").rglob("*.html") if re.search(r"\brx=", path.read_text())
    ]
    assert declared("rx") + drawn == []


@pytest.mark.django_db
def test_the_restarts_that_the_timelines_caption_names_are_there_for_who_listens(small_fleet):
    page = text(signed_in().get(small_fleet.task()))
    assert "Restarts of the agent are listed below the table." in page
    assert re.search(r'<ul class="restarts"[^>]*>\s*<li>SIGKILL · boot 1 → 2</li>', page)
    rules = re.findall(r"\.restarts\s*{([^}]*)}", SHEETS["pages.css"])
    assert rules
    assert "display: none" not in " ".join(rules)
