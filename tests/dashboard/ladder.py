"""The ladder every view's tests climb: works, anonymous, wrong role, wrong method, part for htmx, full page."""

from __future__ import annotations

import re

from django.test import Client

from tests.builders.fleet import a_person

_TOKEN = re.compile(r'<input type="hidden" name="csrfmiddlewaretoken" value="[^"]*">')


def signed_in(role: str | None = "viewer") -> Client:
    """A browser in which somebody with this role is signed in."""
    client = Client()
    client.force_login(a_person(role or "nobody", role))  # type: ignore[arg-type]
    return client


def text(response) -> str:
    """The answer's text without the tokens that differ each time."""
    return _TOKEN.sub("", response.content.decode())


def assert_page(url: str, *, part: str, role: str = "viewer") -> str:
    """A GET page with one htmx part: every rung that needs no data of its own. Returns the page's text."""
    client = signed_in(role)
    response = client.get(url)
    page = text(response)
    assert response.status_code == 200
    assert page.lstrip().startswith("<!DOCTYPE html>")

    fragment = client.get(url, headers={"HX-Request": "true", "HX-Target": part})
    assert fragment.status_code == 200
    assert text(fragment).strip() in page, "the part is not what the page includes"
    assert f'id="{part}"' in text(fragment)
    assert "<html" not in text(fragment)
    assert {"HX-Request", "HX-Target"} <= {name.strip() for name in fragment.headers["Vary"].split(",")}

    boosted = client.get(url, headers={"HX-Request": "true", "HX-Boosted": "true"})
    restored = client.get(url, headers={"HX-Request": "true", "HX-History-Restore-Request": "true"})
    assert "<html" in text(boosted)
    assert "<html" in text(restored)
    assert_closed(url, method="get")
    assert client.post(url).status_code == 405
    return page


def assert_closed(url: str, *, method: str) -> None:
    """Nobody gets in without signing in, and nobody without a role."""
    anonymous = getattr(Client(), method)(url)
    assert anonymous.status_code == 302
    assert anonymous.headers["Location"].startswith("/sign-in/")
    assert getattr(signed_in(None), method)(url).status_code == 403


def part_of(url: str, part: str) -> str:
    """One part of a page alone, as htmx gets it."""
    return text(signed_in().get(url, headers={"HX-Request": "true", "HX-Target": part}))


def cells(page: str, label: str) -> list[str]:
    """What stands in the cells of one column, by the label each carries, row by row."""
    found = re.findall(rf'data-label="{re.escape(label)}">(.*?)</td>', page, re.DOTALL)
    return [words(cell) for cell in found]


def words(markup: str) -> str:
    """The text of a piece of a page."""
    return " ".join(re.sub(r"<[^>]*>", " ", markup).split())


def poll_of(part: str, page: str) -> str:
    """The address a part asks again by itself."""
    found = re.search(rf'id="{part}"[^>]*hx-get="([^"]*version=[^"]+)"', page)
    assert found, "the part does not poll"
    return found[1].replace("&amp;", "&")


def assert_a_poll_brings_the_same_page(*, part: str, page: str) -> None:
    """What is swapped in once something changed is the part that was shown, not another page of its list."""
    poll = poll_of(part, page).rpartition("=")[0] + "=old"
    answer = signed_in().get(poll, headers={"HX-Request": "true", "HX-Target": part})
    assert text(answer).strip() in page


def assert_unchanged_is_204(url: str, *, part: str, page: str) -> None:
    """A poll that names the version it shows gets 204 and nothing to swap."""
    poll = poll_of(part, page)
    assert poll.split("?")[0] == url.split("?")[0]
    answer = signed_in().get(poll, headers={"HX-Request": "true", "HX-Target": part})
    assert (answer.status_code, answer.content) == (204, b"")
