"""Kopf's settings as those of fnop."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.running.states import KopfStates
from fnop.adapters.kopf.running.translation import Unsupported, settings_of
from fnop.core.api.resources import Resource, Selectors
from fnop.core.handlers.declare.lifecycles import asap, one_by_one
from fnop.core.handlers.declare.settings import Settings
from fnop.core.memory.storage import FormattedStorage


def translated(
    change: Callable[[OperatorSettings], object] = lambda _: None,
    namespaces: tuple[Any, ...] = (),
    **more: Any,
) -> Settings:
    given = OperatorSettings()
    change(given)
    states = KopfStates(given.persistence)
    lifecycle = more.pop("lifecycle", asap)
    return settings_of(given, namespaces, lifecycle, states, 0.0, **more)


def set_at(path: str, value: Any) -> Callable[[OperatorSettings], None]:
    def change(settings: OperatorSettings) -> None:
        group, name = path.split(".")
        setattr(getattr(settings, group), name, value)

    return change


def test_the_defaults_are_those_of_kopf() -> None:
    found = translated()
    assert found.default_backoff == 60
    assert found.own_finalizer == "kopf.zalando.org/KopfFinalizerMarker"
    assert isinstance(found.storage, FormattedStorage)
    assert isinstance(found.storage.format, KopfStates)
    assert found.namespaces is None
    assert found.lifecycle is asap
    assert found.posting_level is None
    assert (found.conditions, found.guard) == (False, False), "Kopf has neither"


@pytest.mark.parametrize(
    ("path", "value", "name", "wanted"),
    [
        (
            "persistence.finalizer",
            "example.com/held",
            "own_finalizer",
            "example.com/held",
        ),
        ("execution.default_backoff", 7, "default_backoff", 7),
        ("persistence.consistency_timeout", 3.0, "echo_timeout_seconds", 3.0),
        ("persistence.consistency_timeout", 0, "echo_timeout_seconds", 0.1),
        ("watching.server_timeout", 33.0, "watch_timeout_seconds", 33),
        ("watching.inactivity_timeout", 44.0, "watch_silence_seconds", 44.0),
        ("watching.inactivity_timeout", None, "watch_silence_seconds", 330.0),
        ("watching.initial_streaming", True, "initial_streaming", True),
        ("watching.chunk_size", 9, "list_page_limit", 9),
        ("admission.managed", "x.example.com", "admission_managed", "x.example.com"),
    ],
)
def test_a_setting_has_its_place(path: str, value: Any, name: str, wanted: Any) -> None:
    assert getattr(translated(set_at(path, value)), name) == wanted


def test_log_lines_are_posted_once() -> None:
    """The log's own handler posts them (`LinePoster`), so the core does not."""

    def change(settings: OperatorSettings) -> None:
        settings.posting.level = logging.DEBUG
        settings.posting.loggers = True

    assert translated(change).posting_level is None


def test_namespaces_are_names_or_globs() -> None:
    assert translated(namespaces=("a", "team-*")).namespaces == ("a", "team-*")
    with pytest.raises(Unsupported, match=r"'team-\.\*' is a regular expression.*glob"):
        translated(namespaces=("a", re.compile("team-.*")))


PODS = Resource("", "v1", "pods", "Pod", shortcuts=("po",))
KEYS: list[tuple[Any, bool]] = [
    ("pods", True),
    ("po", True),
    (("", "pods"), True),
    (("", "v1", "pods"), True),
    (kopf.EVERYTHING, True),
    (("v1", kopf.EVERYTHING), True),
    (lambda resource: resource.plural == "pods", True),
    ("jobs", False),
    (("apps", "pods"), False),
    (("apps", kopf.EVERYTHING), False),
    (lambda resource: False, False),
]


@pytest.mark.parametrize(("key", "fits"), KEYS, ids=range(len(KEYS)))
def test_selectors_of_watches_are_those_of_kinds(key: Any, fits: bool) -> None:
    def change(settings: OperatorSettings) -> None:
        settings.watching.label_selectors[key] = "a=b"
        settings.watching.field_selectors[key] = "spec.x=1"
        settings.watching.label_selectors["deployments"] = "c=d"

    wanted = Selectors("a=b", "spec.x=1") if fits else Selectors()
    assert translated(change).selectors_for(PODS) == wanted


def test_selectors_of_shards_are_refused() -> None:
    """Without them the operator would handle objects that are not its own."""
    change = set_at("watching.shard_selectors", {"pods": "shardRange(...)"})
    with pytest.raises(ValueError, match=r"shard_selectors; give .* label_selectors"):
        translated(change)


def test_the_lifecycle_is_that_of_the_run() -> None:
    assert translated(lifecycle=one_by_one).lifecycle is one_by_one


def test_an_operator_is_a_peer_by_its_settings() -> None:
    def change(settings: OperatorSettings) -> None:
        settings.peering.name = "ours"
        settings.peering.mandatory = True
        settings.peering.priority = 5
        settings.peering.lifetime = 30

    member = translated(change, identity="me").peering
    assert member is not None
    assert (member.name, member.priority, member.identity) == ("ours", 5, "me")
    assert member.lifetime == 30
    alone = translated(set_at("peering.standalone", True)).peering
    assert alone is None


def test_a_peering_that_is_not_mandatory_has_its_name_too() -> None:
    member = translated(set_at("peering.name", "ours")).peering
    assert member is not None
    assert member.name == "ours"
