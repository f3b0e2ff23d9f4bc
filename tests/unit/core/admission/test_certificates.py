"""Decisions about the certificates of webhooks, at moments of their lives."""

from __future__ import annotations

from typing import Any

import pytest

from fnop.core.admission.certificates import (
    Authority,
    Due,
    Leaf,
    Lifetimes,
    due,
    published,
    signer_of,
    trusted,
)
from fnop.effects.structs import replace

LIVES = Lifetimes(authority=300.0, leaf=90.0, overlap=20.0)
NAMES = frozenset({"hooks.ns.svc"})
OLD = Authority("old", 0.0, 300.0, published=0.0)
NEW = Authority("new", 200.0, 500.0)
LEAF = Leaf("old", 150.0, 240.0, NAMES)


@pytest.mark.parametrize(
    ("what", "authorities", "leaf", "now", "expected"),
    [
        ("nothing is there", (), None, 5.0, Due(True)),
        ("a leaf is missing", (OLD,), None, 5.0, Due(signer="old")),
        ("all is well", (OLD,), LEAF, 160.0, Due()),
        ("a third of the leaf is left", (OLD,), LEAF, 210.0, Due(True, "old")),
        ("a third of the authority is left", (OLD,), LEAF, 205.0, Due(True)),
        ("a new authority waits", (OLD, NEW), LEAF, 205.0, Due()),
        (
            "a new authority is published",
            (OLD, replace(NEW, published=200.0)),
            LEAF,
            219.0,
            Due(signer="old"),  # of the leaf only a third is left
        ),
        (
            "a new authority is known by all",
            (OLD, replace(NEW, published=200.0)),
            LEAF,
            220.0,
            Due(signer="new"),
        ),
        (
            "a process starts during the overlap",
            (replace(OLD, published=None), NEW),
            None,
            205.0,
            Due(signer="old"),
        ),
        ("the old authority has ended", (OLD, NEW), LEAF, 300.0, Due(signer="new")),
        ("all have ended", (OLD, NEW), LEAF, 500.0, Due(True)),
        (
            "a name is missing",
            (OLD,),
            replace(LEAF, names=frozenset()),
            160.0,
            Due(signer="old"),
        ),
        (
            "a leaf that lasts no longer is not renewed",
            (OLD, replace(NEW, published=290.0)),
            Leaf("old", 220.0, 300.0, NAMES),
            295.0,
            Due(),
        ),
    ],
)
def test_what_is_due(
    what: str, authorities: Any, leaf: Any, now: float, expected: Due
) -> None:
    assert due(authorities, leaf, NAMES, now, LIVES) == expected, what


def test_what_is_valid_is_trusted_the_oldest_first() -> None:
    assert trusted((NEW, OLD), 250.0) == (OLD, NEW)
    assert trusted((NEW, OLD), 199.0) == (OLD,)
    assert trusted((NEW, OLD), 300.0) == (NEW,)
    assert signer_of((), 0.0, 1.0) is None


def test_an_authority_is_published_once() -> None:
    first = published((replace(OLD, published=None), NEW), ["old"], 7.0)
    assert [each.published for each in first] == [7.0, None]
    assert [each.published for each in published(first, ["old", "new"], 9.0)] == [7, 9]
