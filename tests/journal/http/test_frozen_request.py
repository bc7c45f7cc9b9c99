"""Requests and references: what is frozen, what is refused, and what text can never become a reference."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.errors import UsageError
from journal.http.frozen_request import (
    ChangedReference,
    MissingReference,
    digest_request,
    freeze_request,
    list_references,
    require_unchanged,
    resolve_origin,
    resolve_request,
)
from journal.providers.load import load_profiles
from journal.request import Request, env, split_refs

KEY = "ab" * 32
ENVIRON = {"HOOK": "hook-secret", "TOKEN": "token-secret", "HOST": "forge.example"}
FORGE = load_profiles({"forge": {"key": {"placement": "header", "name": "Idempotency-Key"}}})["forge"]
NONE = load_profiles(None)["generic_none"]
URL = "https://forge.example/pulls"


def frozen(*args, profile=FORGE, **options):
    return freeze_request(Request(*args, **options), profile=profile, key=KEY, environ=ENVIRON)


def test_the_key_and_every_header_are_frozen():
    request = frozen("post", URL, headers={"X-A": "1"}, json={"b": "é", "a": [1]})
    assert request.headers == (
        ("X-A", "1"),
        ("Content-Type", "application/json"),
        ("Idempotency-Key", KEY),
        ("User-Agent", "stepkeeper"),
    )
    assert (request.method, request.body) == ("POST", '{"b":"é","a":[1]}'.encode())


def test_a_key_that_its_profile_quotes_is_frozen_with_its_quotes():
    key = {"placement": "header", "name": "Idempotency-Key", "quote": "sf_string"}
    request = frozen("POST", URL, profile=load_profiles({"forge": {"key": key}})["forge"])
    assert dict(request.headers)["Idempotency-Key"] == f'"{KEY}"'


def test_equal_requests_have_equal_digests_and_any_difference_shows():
    first = frozen("POST", URL, data="x")
    assert first == frozen("POST", URL, data=b"x")
    assert first.sha256 == digest_request(first.method, first.url, first.headers, first.body, first.refs)
    others = [
        frozen("PUT", URL, data="x"),
        frozen("POST", f"{URL}?a", data="x"),
        frozen("POST", URL, data="y"),
        frozen("POST", URL, data="x", headers={"A": "1"}),
        frozen("POST", URL, data="x", profile=NONE),
        freeze_request(Request("POST", URL, data="x"), profile=FORGE, key="cd" * 32, environ=ENVIRON),
    ]
    assert len({first.sha256, *(other.sha256 for other in others)}) == 7


def test_references_stand_in_url_headers_and_body():
    request = frozen(
        "POST",
        f"https://hooks.example/{env('HOOK')}",
        headers={"Authorization": "Bearer " + env("TOKEN"), "X-Key": env("TOKEN")},
        json={"é": env("TOKEN"), "text": f"a {env('HOOK')} b"},
    )
    assert request.url == "https://hooks.example/${HOOK}"
    assert request.headers[0] == ("Authorization", "Bearer ${TOKEN}")
    assert request.body == '{"é":"${TOKEN}","text":"a ${HOOK} b"}'.encode()
    assert list_references(request) == ("HOOK", "TOKEN")
    assert [ref[4] for ref in request.refs] == ["raw", "raw", "raw", "json", "json"]
    for part, start, end, name, *_ in request.refs:
        text = request.url if part == "url" else request.headers[int(part[7:])][1] if part != "body" else request.body
        shown = text[start:end]
        assert (shown.decode() if isinstance(shown, bytes) else shown) == f"${{{name}}}"


def test_another_value_in_the_address_or_the_body_is_noticed_and_a_new_credential_in_a_header_is_not():
    request = frozen(
        "POST", f"https://{env('HOST')}/x", headers={"Authorization": env("TOKEN")}, json={"hook": env("HOOK")}
    )
    assert [(ref[3], bool(ref[5])) for ref in request.refs] == [("HOST", True), ("TOKEN", False), ("HOOK", True)]
    assert not any(value in str(request.refs) for value in ENVIRON.values())
    require_unchanged(request, ENVIRON)
    require_unchanged(request, ENVIRON | {"TOKEN": "rotated"})
    for name in ("HOST", "HOOK"):
        with pytest.raises(ChangedReference) as changed:
            require_unchanged(request, ENVIRON | {name: "another.example"})
        assert changed.value.names == (name,)
    with pytest.raises(ChangedReference):
        resolve_origin(request, ENVIRON | {"HOST": "another.example"})
    assert resolve_origin(request, ENVIRON | {"HOOK": "another"})[0] == "https://forge.example"


def test_a_request_frozen_before_there_were_marks_has_the_digest_it_had():
    request = frozen("POST", URL, json={"hook": env("HOOK")})
    old = tuple((*ref[:5], "") for ref in request.refs)
    head = json.dumps([request.method, request.url, [list(h) for h in request.headers], [ref[:5] for ref in old]])
    expected = hashlib.sha256(head.encode() + b"\n" + request.body).hexdigest()
    assert digest_request(request.method, request.url, request.headers, request.body, old) == expected


@given(st.text(min_size=1).filter(lambda text: "\x00" not in text), st.text())
def test_a_credential_of_any_kind_keeps_a_json_body_whole(secret, around):
    try:
        secret.encode()
        around.encode()
    except UnicodeEncodeError:
        return
    request = frozen("POST", URL, json={"a": around, "token": env("TOKEN"), "b": [around]})
    sent = json.loads(resolve_request(request, {"TOKEN": secret}).body)
    assert sent == {"a": around, "token": secret, "b": [around]}


def test_text_from_a_model_never_becomes_a_reference():
    hostile = "${TOKEN} {TOKEN} env('TOKEN') ref.0123456789abcdef0123456789abcdef.TOKEN.end"
    request = frozen("POST", URL, json={"title": hostile}, headers={"X-Title": hostile})
    assert request.refs == ()
    assert json.loads(resolve_request(request, {"TOKEN": "s3cr3t"}).body) == {"title": hostile}


def test_a_whole_url_may_be_a_reference():
    request = frozen("POST", env("HOOK_URL"), data=b"x")
    assert request.url == "${HOOK_URL}"
    assert resolve_request(request, {"HOOK_URL": "https://hooks.example/T0"}).url == "https://hooks.example/T0"
    for value in ("ftp://x", "https://x/a b", "https://x\r\nHost: y", "no url"):
        with pytest.raises(MissingReference, match="does not fit") as refused:
            resolve_request(request, {"HOOK_URL": value})
        assert value not in str(refused.value)


def test_missing_and_empty_references_are_all_named():
    request = frozen("POST", URL, headers={"A": env("ONE"), "B": env("TWO"), "C": env("THREE")})
    with pytest.raises(MissingReference) as refused:
        resolve_request(request, {"TWO": "set", "THREE": ""})
    assert refused.value.names == ("ONE", "THREE")


def test_a_credential_cannot_smuggle_a_header():
    request = frozen("POST", URL, headers={"A": env("TOKEN")})
    with pytest.raises(MissingReference, match="does not fit"):
        resolve_request(request, {"TOKEN": "x\r\nB: y"})


def test_a_resolved_request_shows_no_value():
    resolved = resolve_request(frozen("POST", URL, headers={"A": env("TOKEN")}), {"TOKEN": "s3cr3t-value"})
    assert "s3cr3t" not in repr(resolved)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("CONNECT", URL), {}),
        (("POST", "/pulls"), {}),
        (("POST", "ftp://forge.example"), {}),
        (("POST", "https://"), {}),
        (("POST", f"{URL} x"), {}),
        (("POST", f"{URL}/é"), {}),
        (("POST", f"{URL}\r\nHost: x"), {}),
        (("POST", f"{URL}#part"), {}),
        (("POST", "https://user:pw@forge.example"), {}),
        (("POST", URL), {"json": 1, "data": b""}),
        (("POST", URL), {"json": float("nan")}),
        (("POST", URL), {"json": "\ud800"}),
        (("POST", URL), {"json": {1, 2}}),
        (("POST", URL), {"headers": {"A": "1\r\nB: 2"}}),
        (("POST", URL), {"headers": {"A": " 1"}}),
        (("POST", URL), {"headers": {"A": "€"}}),
        (("POST", URL), {"headers": {"A B": "1"}}),
        (("POST", URL), {"headers": {"Host": "x"}}),
        (("POST", URL), {"headers": {"Content-Length": "1"}}),
        (("POST", URL), {"headers": {"a": "1", "A": "2"}}),
        (("POST", URL), {"headers": {"Content-Type": "a/b"}, "content_type": "c/d"}),
    ],
)
def test_a_request_that_could_not_be_sent_twice_alike_is_refused(arguments, options):
    with pytest.raises(UsageError) as refused:
        Request(*arguments, **options)
    assert refused.value.hint


def test_json_null_is_a_body_and_no_body_is_none():
    assert frozen("POST", URL, json=None).body == b"null"
    assert frozen("GET", URL).body == b""
    assert frozen("POST", URL, data="é", content_type="text/plain").headers[0] == ("Content-Type", "text/plain")
    assert frozen("POST", URL, json=1, content_type="application/ld+json").headers[0][1] == "application/ld+json"


def test_the_key_header_belongs_to_the_profile():
    with pytest.raises(UsageError, match="Idempotency-Key"):
        frozen("POST", URL, headers={"idempotency-key": "mine"})
    assert frozen("POST", URL, headers={"idempotency-key": "mine"}, profile=NONE).headers[0][1] == "mine"


@pytest.mark.parametrize("name", ["", "A B", "1A", "A-B", "${A}"])
def test_only_names_of_variables_are_references(name):
    with pytest.raises(UsageError):
        env(name)


def test_a_reference_takes_no_format_and_splits_where_it_stands():
    with pytest.raises(UsageError):
        f"{env('A'):>10}"
    assert split_refs(f"a{env('B')}c" + env("D")) == ("a${B}c${D}", [(1, 5, "B"), (6, 10, "D")])
    assert (env("A"), repr(env("A")), len({env("A"), env("A")})) == (env("A"), "env('A')", 1)
