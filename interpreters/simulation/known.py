"""Clusters that many runs come to, each of them one value.

The runs of a check begin alike, and many meet again: whether a process has crashed or
a reply was lost, the same objects exist in the end. What the cluster's own controllers
do next depends on the cluster and the time alone, so they need not do it again. The
same holds for the answer to a request.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import orjson

from fnop.effects.structs import replace
from fnop.effects.values import thaw_json
from fnop.interpreters import cluster as simulated
from fnop.interpreters.cluster import Cluster, StoredEvent
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse

__all__ = ["KnownClusters", "with_plain_body"]

# The most steps that are kept. They take some 5 KB each.
KEPT_MAX = 10_000

Events = tuple[StoredEvent, ...]


def with_plain_body(request: ApiRequest) -> ApiRequest:
    """A request as a server gets it: the operator's values are read-only.

    >>> from fnop.effects.values import read_only
    >>> request = ApiRequest("PATCH", "/api", body=read_only({"spec": {}}))
    >>> type(with_plain_body(request).body) is dict
    True
    """
    if request.body is None:
        return request
    return replace(request, body=thaw_json(request.body))


class KnownClusters:
    """The clusters that runs with one beginning have come to, and what follows.

    Two clusters are equal if the same changes have led to both, and all that is no
    object is equal. An object contains its uid and its version, and times.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, int], list[Cluster]] = {}
        # By identity, and kept with what has it.
        self._digests: dict[int, tuple[Cluster, bytes]] = {}
        self._beginnings = 0
        self._steps: dict[tuple[Any, ...], tuple[Cluster, Any]] = {}

    def tick(self, cluster: Cluster, now: float) -> tuple[Cluster, Events]:
        """The next round of the cluster's controllers, at a wall time."""
        if not cluster.agenda and cluster.control.next > now:
            return cluster, ()
        key = id(cluster), now
        known = self._steps.get(key)
        if known is None:
            after, events = simulated.tick(cluster, now)
            after = self._same(cluster, after, events)
            known = self._keep(key, cluster, (after, events))
        found: tuple[Cluster, Events] = known[1]
        return found

    def answer(
        self, cluster: Cluster, request: ApiRequest, now: float
    ) -> tuple[Cluster, ApiResponse, Events]:
        """The answer to a request at a wall time, without webhooks.

        Its body must not be changed.
        """
        try:
            text = b"" if request.body is None else orjson.dumps(request.body)
        except TypeError:  # a malformed body
            return simulated.answer(cluster, with_plain_body(request), now)
        key = (
            *(id(cluster), now, request.method, request.path, request.query, text),
            *(request.content_type, request.accept, request.agent, request.user),
        )
        known = self._steps.get(key)
        if known is None:
            plain = with_plain_body(request)
            after, response, events = simulated.answer(cluster, plain, now)
            after = self._same(cluster, after, events)
            known = self._keep(key, cluster, (after, response, events))
        found: tuple[Cluster, ApiResponse, Events] = known[1]
        return found

    def _keep(
        self, key: tuple[Any, ...], cluster: Cluster, found: Any
    ) -> tuple[Cluster, Any]:
        """Keep a step with the cluster that it began at, whose identity it has."""
        if len(self._steps) >= KEPT_MAX:
            self._forget()
        kept = self._steps[key] = cluster, found
        return kept

    def _same(self, before: Cluster, after: Cluster, events: Events) -> Cluster:
        """The known cluster that equals `after`, which came of `before` by `events`."""
        if after is before:
            return after
        digest = self._digest(before)
        if events:
            text = blake2b(digest, digest_size=16)
            for each in events:
                text.update(each.type.encode())
                text.update(orjson.dumps(each.object))
            digest = text.digest()
        alike = self._known.setdefault((digest, after.version), [])
        for known in alike:
            if _is_alike(known, after):
                return known
        alike.append(after)
        self._digests[id(after)] = after, digest
        return after

    def _digest(self, cluster: Cluster) -> bytes:
        """The digest of the changes that have led to a cluster.

        A cluster that was changed in another way, or is forgotten, is a beginning.
        """
        found = self._digests.get(id(cluster))
        if found is None:
            self._beginnings += 1
            digest = self._beginnings.to_bytes(16, "big")
            found = self._digests[id(cluster)] = cluster, digest
        return found[1]

    def _forget(self) -> None:
        """Make room."""
        self._known.clear()
        self._digests.clear()
        self._steps.clear()


def _is_alike(one: Cluster, other: Cluster) -> bool:
    """Whether two clusters with the same changes are equal."""
    return (
        one.registry is other.registry
        and one.agenda == other.agenda
        and one.control == other.control
        and one.raw == other.raw
        and one.logs == other.logs
        and one.found == other.found
        and one.seed == other.seed
        and one.rbac == other.rbac
        and one.variant == other.variant
        and one.release == other.release
    )
