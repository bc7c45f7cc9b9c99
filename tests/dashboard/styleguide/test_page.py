"""The style guide is there for developers alone."""

from __future__ import annotations

import pytest
from django.conf import settings as project
from django.http import HttpResponse
from django.test import RequestFactory

from dashboard.styleguide.page import show_style_guide
from tests.builders.fleet import a_person
from tests.dashboard.ladder import signed_in

pytestmark = pytest.mark.django_db


def test_every_part_renders_in_every_state_where_debug_is_on(settings, monkeypatch):
    settings.DEBUG = True
    request = RequestFactory().get("/styleguide/")
    request.user = a_person("ada", "viewer")
    response = show_style_guide(request)
    assert isinstance(response, HttpResponse)
    page = response.content.decode()
    assert "U+202E" in page
    assert "hx-post=/x" in page
    assert "<div hx-post=/x" not in page


def test_it_is_no_page_of_the_product():
    assert not project.DEBUG
    assert signed_in().get("/styleguide/").status_code == 404
