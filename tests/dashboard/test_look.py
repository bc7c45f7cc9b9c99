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


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_every_ink_can_be_read_on_every_paper(theme):
    tokens = {
        name: colours[theme]
        for name, *colours in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", SHEETS["tokens.css"])
    }
    inks = ("ink", "soft", "lamp", "done", "live", "unsure", "bad", "quiet")
    papers = ("paper", "raised", "sunk", "lamp-wash")
    found = {(ink, paper): contrast(tokens[ink], tokens[paper]) for ink in inks for paper in papers}
    assert {pair: round(ratio, 2) for pair, ratio in found.items() if ratio < 4.5} == {}


def test_no_colour_stands_outside_the_tokens():
    others = [
        name for name, css in SHEETS.items() if name != "tokens.css" and re.search(r"#[0-9a-f]{3,8}\b(?![^{]*{)", css)
    ]
    assert others == []


@pytest.mark.django_db
def test_the_restarts_that_the_timelines_caption_names_are_there_for_who_listens(small_fleet):
    page = text(signed_in().get(small_fleet.task()))
    assert "Restarts of the agent are listed below the table." in page
    assert re.search(r'<ul class="restarts"[^>]*>\s*<li>SIGKILL · restarted</li>', page)
    rules = re.findall(r"\.restarts\s*{([^}]*)}", SHEETS["pages.css"])
    assert rules
    assert "display: none" not in " ".join(rules)
