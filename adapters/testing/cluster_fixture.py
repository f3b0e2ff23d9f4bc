"""A simulated cluster for tests: in memory and on virtual time, or served over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fnop.adapters.serving.cluster_client import (
    ObjectProblem,
    kind_called,
    kind_named,
    path_of,
)
from fnop.interpreters.cluster import Cluster, answer, due, empty_cluster, paced, tick
from fnop.interpreters.cluster.controllers.paces import Pace
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.runtime.answers import message_of, with_kind
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.runtime.protocol import (
    APPLY_PATCH,
    JSON,
    ApiRequest,
    ApiResponse,
    User,
)

if TYPE_CHECKING:
    from fnop.adapters.serving.live_cluster import Live, Served

__all__ = ["SimulatedCluster"]

Manifest = dict[str, Any]

# Rounds of controllers after which a cluster counts as never settling.
ROUNDS_MAX = 10_000


class SimulatedCluster:
    """A Kubernetes cluster that a test has for itself.

    >>> cluster = SimulatedCluster()
    >>> made = cluster.apply({"apiVersion": "v1", "kind": "ConfigMap",
    ...                       "metadata": {"name": "one"}, "data": {"a": "b"}})
    >>> cluster.get("configmap", "one")["data"]
    {'a': 'b'}
    >>> cluster.delete("cm", "one")
    >>> cluster.get("cm", "one") is None
    True

    `cluster` is the cluster as a value: keep it for a snapshot, put it back to rewind.
    With `rbac` the cluster authorizes users; requests without a `user` are always
    allowed.
    """

    def __init__(self, *, seed: str = "0", rbac: bool = False) -> None:
        self._clock = VirtualClock()
        self._state = empty_cluster(seed, self._clock.now().wall, rbac=rbac)
        self._live: Live | None = None

    # ----------------------------------------------------------------- requests

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = JSON,
        user: User | None = None,
    ) -> ApiResponse:
        """Send any request; return the answer unchanged, even if it is a refusal."""
        pairs = tuple((query or {}).items())
        request = ApiRequest(method, path, pairs, body, content_type, user=user)
        if self._live is not None:
            return self._live.answer(request)
        self._state, response, _ = answer(self._state, request, self.now)
        return response

    def apply(
        self, manifests: str | Path | Manifest | Iterable[Manifest]
    ) -> list[Manifest]:
        """Create the objects, or bring them to this state (server-side apply).

        Files and folders are read as by `kubectl apply -f`. Returns the objects as the
        server has them now. Raises `ObjectProblem` if the server refuses one.
        """
        found = _manifests(manifests)
        order = {"CustomResourceDefinition": 0, "Namespace": 1}
        done = {
            id(each): self._apply_manifest(each)
            for each in sorted(found, key=lambda each: order.get(each["kind"], 2))
        }
        return [done[id(each)] for each in found]

    def get(
        self, kind: str, name: str, namespace: str | None = "default"
    ) -> Manifest | None:
        """One object, or None.

        `kind` is as for kubectl: `pods`, `pod`, `po`, `deployments.apps`, `Pod`.
        """
        path = path_of(self._kind(kind), namespace, name)
        response = self.request("GET", path)
        return None if response.status == 404 else _body(response, f"{kind} {name}")

    def list(
        self, kind: str, namespace: str | None = None, *, labels: str = ""
    ) -> list[Manifest]:
        """All objects of a kind, in all namespaces or in one."""
        resource = self._kind(kind)
        query = {"labelSelector": labels} if labels else {}
        response = self.request("GET", path_of(resource, namespace), query=query)
        items = _body(response, kind)["items"]
        return [*with_kind(items, resource.api_version, resource.kind)]

    def delete(self, kind: str, name: str, namespace: str | None = "default") -> None:
        """Delete an object; its finalizers may delay that."""
        path = path_of(self._kind(kind), namespace, name)
        _body(self.request("DELETE", path), f"{kind} {name}")

    def _apply_manifest(self, manifest: Manifest) -> Manifest:
        registry = self.cluster.registry
        kind = kind_named(registry, manifest["apiVersion"], manifest["kind"])
        metadata = manifest["metadata"]
        namespace, name = metadata.get("namespace") or "default", metadata.get("name")
        if not name:
            path = path_of(kind, namespace)
            return _body(self.request("POST", path, manifest), f"a {kind.kind}")
        query = {"fieldManager": "test", "force": "true"}
        response = self.request(
            "PATCH",
            path_of(kind, namespace, name),
            manifest,
            query=query,
            content_type=APPLY_PATCH,
        )
        return _body(response, f"{kind.kind} {name}")

    def _kind(self, name: str) -> Kind:
        return kind_called(self.cluster.registry, name)

    # --------------------------------------------------------------------- time

    @property
    def cluster(self) -> Cluster:
        """The whole cluster as a value."""
        return self._state if self._live is None else self._live.host.cluster

    @cluster.setter
    def cluster(self, value: Cluster) -> None:
        if self._live is not None:
            raise RuntimeError("a served cluster cannot be put back")
        self._state = value

    @property
    def now(self) -> float:
        """The cluster's wall clock in Unix seconds: virtual, unless it is served."""
        return self._clock.now().wall if self._live is None else self._live.host.now

    def settle(self, seconds: float = 0.0) -> None:
        """Let the controllers work, and this amount of virtual time pass.

        While the cluster is served, they work by themselves, in real time.
        """
        if self._live is not None:
            raise RuntimeError("a served cluster settles by itself")
        end = self._clock.elapsed + seconds
        for _ in range(ROUNDS_MAX):
            self._state, events = tick(self._state, self.now)
            if events:
                continue
            planned = due(self._state)
            wait = inf if planned is None else planned - self.now
            if self._clock.elapsed + wait > end:
                self._clock.advance_to(end)
                return
            self._clock.advance_to(self._clock.elapsed + wait)
        raise AssertionError(f"the cluster does not settle in {ROUNDS_MAX} rounds")

    def pace(self, controller: str, pace: Pace) -> None:
        """Let a built-in controller be `On()`, `Off()`, `Stuck()` or `Slow(seconds)`.

        These classes are in `fnop.interpreters.cluster`.
        """
        self.cluster = paced(self.cluster, {controller: pace})

    # ------------------------------------------------------------------ serving

    @contextmanager
    def serve(self) -> Iterator[Served]:
        """Serve it over HTTP on a free port of this machine, for any client.

        While served, it runs in real time; afterwards in virtual time again.
        """
        if self._live is not None:
            raise RuntimeError("it is served already")
        from fnop.adapters.serving.live_cluster import served

        with served(self._state) as found:
            self._live = found.live
            try:
                yield found
            finally:
                self._live, self._state = None, found.live.host.cluster


def _manifests(given: str | Path | Manifest | Iterable[Manifest]) -> list[Manifest]:
    if isinstance(given, str | Path):
        from fnop.adapters.common.manifests import read_manifests

        return read_manifests([str(given)])
    return [given] if isinstance(given, dict) else [*given]


def _body(response: ApiResponse, what: str) -> Manifest:
    if response.status >= 300:
        raise ObjectProblem(f"{what} is refused: {message_of(response)}")
    found: Manifest = response.body
    return found
