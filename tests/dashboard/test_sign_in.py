"""Signing in, by password and by one-time link, and the ladder of roles."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client

from agents.access import audit, login_link, roles
from agents.access.throttle import SIGN_IN, WRONG
from agents.models import AuditEvent, LoginLink
from dashboard.ui.access import require_role
from journal import clock

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def ana() -> User:
    user = User.objects.create_user("ana", password="a long enough one")
    roles.give_role(user, "viewer")
    return user


def signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_a_stranger_is_sent_to_the_sign_in_page(client):
    response = client.post("/sign-out/")
    assert response.headers["Location"] == "/sign-in/"
    response = client.get("/")
    assert response.status_code in {302, 404}
    assert not signed_in(client)


def test_name_and_password_sign_in(client, ana):
    response = client.post("/sign-in/", {"username": "ana", "password": "a long enough one", "next": "/tasks/?q=1"})
    assert (response.status_code, response.headers["Location"]) == (302, "/tasks/?q=1")
    assert signed_in(client)


def test_a_wrong_password_does_not(client, ana):
    response = client.post("/sign-in/", {"username": "ana", "password": "another one"})
    assert response.status_code == 422
    assert not signed_in(client)


def test_after_eight_wrong_passwords_not_even_the_right_one_is_checked_for_a_while(client, ana, monkeypatch):
    def posted(password, name="ana"):
        return client.post("/sign-in/", {"username": name, "password": password})

    now = clock.wall()
    monkeypatch.setattr(clock, "wall", lambda: now)
    assert {posted(f"wrong {number}").status_code for number in range(8)} == {422}
    refused = posted("a long enough one")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "600")
    assert b"No password is checked for 10 minutes" in refused.content
    assert not signed_in(client)
    assert AuditEvent.objects.order_by("-pk")[0].detail == "Not checked: too many wrong passwords lately."
    User.objects.create_user("eve", password="another long one")
    assert posted("another long one", name="eve").status_code == 302, "other people sign in meanwhile"
    client.logout()
    link = f"/sign-in/link/{login_link.make_link(ana, valid_for=HOUR)}/"
    assert client.post(link).status_code == 302, "a one-time link works"
    client.logout()
    monkeypatch.setattr(clock, "wall", lambda: now + timedelta(minutes=10))
    assert posted("a long enough one").status_code == 302


def test_many_wrong_passwords_for_many_names_stop_the_checks_for_everybody(client, ana):
    for number in range(60):
        audit.record_event(SIGN_IN, actor=None, allowed=False, detail=WRONG, actor_name=f"{number}")
    assert client.post("/sign-in/", {"username": "ana", "password": "a long enough one"}).status_code == 429


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "javascript:alert(1)", r"/\evil.example"]
)
def test_signing_in_leads_to_no_foreign_address(client, ana, target):
    response = client.post("/sign-in/", {"username": "ana", "password": "a long enough one", "next": target})
    assert response.headers["Location"] == "/"


def test_signing_in_needs_the_token_of_its_page(ana):
    strict = Client(enforce_csrf_checks=True)
    assert strict.post("/sign-in/", {"username": "ana", "password": "a long enough one"}).status_code == 403
    address = f"/sign-in/link/{login_link.make_link(ana, valid_for=HOUR)}/"
    assert strict.post(address).status_code == 403
    page = strict.get(address)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.content.decode())
    assert token is not None
    assert strict.post(address, {"csrfmiddlewaretoken": token[1]}).status_code == 302


def test_signing_out_needs_a_post(client, ana):
    client.force_login(ana)
    assert client.get("/sign-out/").status_code == 405
    client.post("/sign-out/")
    assert not signed_in(client)


def test_opening_a_link_uses_nothing_up_and_its_button_signs_in_once(client, ana):
    address = f"/sign-in/link/{login_link.make_link(ana, valid_for=HOUR)}/"
    for _ in range(2):
        assert client.head(address).status_code == 200
        assert b"Sign in as ana" in client.get(address, headers={"sec-purpose": "prefetch"}).content
        assert not signed_in(client)
    assert client.post(address).status_code == 302
    assert signed_in(client)
    other = Client()
    assert other.post(address).status_code == 410
    assert other.get(address).status_code == 410
    assert not signed_in(other)


def test_an_expired_link_signs_nobody_in(client, ana, tmp_path, monkeypatch):
    address = f"/sign-in/link/{login_link.make_link(ana, valid_for=HOUR)}/"
    moved = tmp_path / "clock"
    moved.write_text("3601")
    monkeypatch.setenv("STEPKEEPER_TEST_CLOCK", str(moved))
    assert client.get(address).status_code == 410
    assert client.post(address).status_code == 410
    assert not signed_in(client)


def test_a_link_of_someone_switched_off_signs_nobody_in(client, ana):
    address = f"/sign-in/link/{login_link.make_link(ana, valid_for=HOUR)}/"
    User.objects.filter(pk=ana.pk).update(is_active=False)
    assert client.get(address).status_code == 410
    assert client.post(address).status_code == 410
    assert not signed_in(client)


@pytest.mark.parametrize("token", ["x", "%00", "%F0%9F%94%91", "a" * 5000])
def test_a_made_up_link_signs_nobody_in(client, token):
    assert client.post(f"/sign-in/link/{token}/").status_code == 410
    assert not signed_in(client)


def test_the_database_holds_no_usable_token(ana):
    token = login_link.make_link(ana, valid_for=HOUR)
    row = LoginLink.objects.get()
    assert token not in str(row.__dict__)


def test_the_command_makes_the_user_and_gives_the_role(client, capsys):
    call_command("login-link", user="olga", role="operator")
    address = capsys.readouterr().out.strip()
    assert address.startswith("http://127.0.0.1:8000/sign-in/link/")
    client.post(address.removeprefix("http://127.0.0.1:8000"))
    olga = User.objects.get(username="olga")
    assert client.session["_auth_user_id"] == str(olga.pk)
    assert roles.role_of(olga) == "operator"
    assert not olga.has_usable_password()


def test_the_command_keeps_a_role_unless_it_is_told_another(ana, capsys):
    call_command("login-link", user="ana")
    assert roles.role_of(ana) == "viewer"
    call_command("login-link", user="ana", role="admin")
    assert roles.role_of(ana) == "admin"
    assert ana.groups.count() == 1


def test_the_command_without_a_dashboard_says_which_folder_it_looked_at(tmp_path):
    empty = {**os.environ, "STEPKEEPER_DATA": str(tmp_path), "DJANGO_SETTINGS_MODULE": "dashboard.settings"}
    ran = subprocess.run(
        [sys.executable, CHECKOUT / "manage.py", "login-link"], env=empty, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 1
    assert f"STEPKEEPER_DATA '{tmp_path}': no dashboard has run on it" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_each_role_may_do_what_those_below_it_may(ana):
    checks = [roles.can_view, roles.can_see_payloads, roles.can_decide, roles.is_admin]
    for place, role in enumerate(roles.ROLES):
        roles.give_role(ana, role)
        assert [check(ana) for check in checks] == [True] * (place + 1) + [False] * (3 - place), role


def test_nobody_without_a_role_may_do_anything(ana):
    ana.groups.clear()
    switched_off = User.objects.create_superuser("root", password="x" * 12, is_active=False)
    for person in (ana, switched_off, AnonymousUser()):
        assert roles.role_of(person) is None
        assert not roles.can_view(person)
    assert roles.role_of(User.objects.create_superuser("sam")) == "admin"


def test_migrating_makes_the_four_groups():
    assert set(Group.objects.values_list("name", flat=True)) >= set(roles.ROLES)


def test_a_view_refuses_a_lower_role_with_a_page_that_says_what_is_needed(rf, ana):
    @require_role("operator")
    def view(request):
        return HttpResponse("in")

    request = rf.get("/")
    request.user = ana
    response = view(request)
    assert response.status_code == 403
    assert b"operator" in b"".join(response)
    roles.give_role(ana, "operator")
    assert b"".join(view(request)) == b"in"


def sign_ins() -> list[tuple[str, bool, str]]:
    return list(AuditEvent.objects.order_by("id").values_list("actor_name", "allowed", "detail"))


def test_every_sign_in_by_password_is_audited_and_no_typed_text_is_kept(client, ana):
    client.post("/sign-in/", {"username": "ana", "password": "another one"})
    client.post("/sign-in/", {"username": "a long enough one", "password": "ana"})
    client.post("/sign-in/", {"username": "ana", "password": "a long enough one"})
    events = sign_ins()
    assert [(name, allowed) for name, allowed, _ in events] == [("ana", False), ("anonymous", False), ("ana", True)]
    assert "a long enough one" not in str(events)
    assert "another one" not in str(events)


def test_every_use_of_a_link_is_audited_and_looking_at_it_is_none(client, ana):
    token = login_link.make_link(ana, valid_for=HOUR)
    address = f"/sign-in/link/{token}/"
    client.get(address)
    assert sign_ins() == []
    client.post(address)
    Client().post(address)
    Client().post("/sign-in/link/made-up/")
    events = sign_ins()
    assert [(name, allowed) for name, allowed, _ in events] == [("ana", True), ("ana", False), ("anonymous", False)]
    assert token not in str(events)


def test_the_command_is_told_from_a_folder_that_is_gone_too(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert str(CHECKOUT / "manage.py") in login_link.link_command()


def test_whoever_lacks_a_role_is_told_where_the_command_for_one_stands(client):
    client.force_login(User.objects.create_user("nobody"))
    page = client.get("/tasks/").content.decode()
    assert "“Another link”" in page
    assert "python manage.py" not in page
