"""Selectors that confuse the pods of two owners.

Two objects of a kind have children of other names, and often equal labels. Then the
Service of each leads to the pods of both. Two Deployments fight about one set of pods
("you must not create other pods whose labels match this selector": Kubernetes'
documentation of ReplicaSets).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from fnop.interpreters.check.properties.references import labels_of_pods, selector_of
from fnop.interpreters.check.scripts.follow_ups import Known, owned_in
from fnop.interpreters.cluster import Cluster

__all__ = ["mixed_selectors"]


def mixed_selectors(
    cluster: Cluster, one: str, other: str, chosen: Collection[str] = ()
) -> Iterator[str]:
    """A sentence for each selector of one owner that matches another's pods as well.

    Owners are identified by their uids. A match is intended if only one of them has
    such a selector. It is also intended if a user has `chosen` one of its labels: both
    are then in one group.
    """
    mine, theirs = (owned_in(cluster, [uid]) for uid in (one, other))
    own, strangers = ([*_labels(cluster, each)] for each in (mine, theirs))
    back = [*_selectors(cluster, theirs)]
    for known, selector in _selectors(cluster, mine):
        space = known.key[0]
        if {*chosen} & {*map(str, selector.values())}:
            continue
        if not (
            _selects_any(selector, space, own)
            and _selects_any(selector, space, strangers)
        ):
            continue
        if any(_selects_any(each, space, own) for _, each in back):
            words = ",".join(f"{key}={value}" for key, value in selector.items())
            yield (
                f"{known.alias} selects the pods of another object, too, by {words}: "
                "let the selector and the pods have a label with their owner's name"
            )


def _labels(
    cluster: Cluster, several: Iterable[Known]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The namespaces and labels of the pods that some objects are, or describe."""
    for known in several:
        for labels in labels_of_pods(known.found_in(cluster)):
            yield known.key[0], labels


def _selectors(
    cluster: Cluster, several: Iterable[Known]
) -> Iterator[tuple[Known, Mapping[str, Any]]]:
    for known in several:
        selector = selector_of(known.found_in(cluster) or {})
        if selector:
            yield known, selector


def _selects_any(
    selector: Mapping[str, Any],
    space: str,
    several: Iterable[tuple[str, Mapping[str, str]]],
) -> bool:
    return any(
        where == space and selector.items() <= labels.items()
        for where, labels in several
    )
