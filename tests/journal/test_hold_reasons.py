"""Every hold reason has words for the person who decides."""

from __future__ import annotations

import inspect
import re
from typing import get_args

import pytest

from journal.hold_reasons import HOLD_REASONS, describe_hold, describe_wait
from journal.models import WaitKind, WaitReason
from journal.reconcile import decide, replay_window, status_rules


def test_every_reason_the_code_gives_has_words():
    named: set[str] = set()
    for module in (status_rules, replay_window, decide):
        text = inspect.getsource(module)
        named |= set(re.findall(r'\b(?:Hold|WindowCheck)\(\s*"([a-z_]+)"', text))
    assert named
    assert named <= set(HOLD_REASONS)


def test_words_are_sentences_with_a_next_step():
    for hold in HOLD_REASONS.values():
        assert hold.label
        assert hold.sentence.endswith(".")
        assert hold.advice.endswith(".")


def test_a_reason_of_a_newer_version_is_shown_as_it_is():
    assert describe_hold("lunar_eclipse").label == "Lunar eclipse"
    assert describe_hold("tls") is HOLD_REASONS["tls"]


@pytest.mark.parametrize("kind", get_args(WaitKind))
def test_each_kind_of_wait_has_words_that_name_the_step_or_the_names_it_has(kind):
    named = describe_wait(WaitReason(kind, "t/b", 3, "tls", "TOKEN"), of=" of t/b")
    assert named
    assert "_" not in named
    assert ("step 3 of t/b" in named) == (kind in ("held", "diverged", "due", "unresolved"))
    assert ("TOKEN" in named) == (kind in ("unset", "no_handler", "broken_off"))
