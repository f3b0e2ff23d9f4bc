"""One decision of admission handlers, for tests: `fnop.testing.review`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fnop.adapters.common.yaml_values import teach_yaml
from fnop.adapters.testing.setup import Manifests, Operator, Setup, manifests_in
from fnop.core.admission.decisions import Decision
from fnop.core.api.resources import Resource
from fnop.core.api.reviews import Request
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.declare.webhook import OPERATIONS
from fnop.core.handlers.program.program import Program
from fnop.core.values.table import NOTHING
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.runtime.clock import EPOCH, VirtualClock
from fnop.interpreters.simulation.scenario import (
    ApplyProblem,
    apply_manifests,
    catalogue_of,
)
from fnop.interpreters.simulation.simulation import SimulatedRun, begin_reviewing

__all__ = ["Operation", "Write", "decision_on", "review"]

# pytest shows the author's line, and skips the lines of this module.
__tracebackhide__ = True

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


def review(
    operator: Operator = None,
    old: Mapping[str, Any] | None = None,
    new: Mapping[str, Any] | None = None,
    *,
    operation: Operation | None = None,
    resource: str = "",
    subresource: str = "",
    user: str | Mapping[str, Any] = "kubernetes-admin",
    dry_run: bool = False,
    headers: Mapping[str, str] = NOTHING,
    crds: Manifests = (),
    objects: Manifests = (),
    settings: Settings | None = None,
    calls: Mapping[Any, Callable[..., Any]] | None = None,
) -> Decision:
    """Call an operator's admission handlers for one write, without a cluster.

    `operator`, `crds`, `objects`, `settings` and `calls` are those of a `World`, which
    describes them; handlers read the `objects`. `old` is the stored object and `new`
    the one to be stored. Without `old` it is a creation, without `new` a deletion,
    unless `operation` is given. `resource` names the kind as kubectl does, such as
    "claims.v1.example.com". It is needed if the object of a `subresource` is of another
    kind, such as Scale. `user` is a name, or the whole `userInfo`; `subresource`,
    `dry_run` and `headers` belong to the request.

    The result has these attributes:

    - `allowed`: whether the write is allowed
    - `message`, `code`: those of a denial
    - `warnings`
    - `patch` (RFC 6902), and `object` after it
    - `asked`: the ids of the handlers that were called

    Raises `ValueError` if neither object is given. Raises `AssertionError` for objects
    that the cluster refuses, and for a kind without an admission handler.

        def test_a_claim_does_not_shrink():
            old, new = claim(size=2), claim(size=1)
            assert review("operator.py", old, new).message == "it must not shrink"
    """
    setup = Setup(operator, crds=crds, objects=objects, settings=settings, calls=calls)
    write = Write(old, new, operation, resource, subresource, user, dry_run, headers)
    return decision_on(setup, write)


@dataclass(frozen=True)
class Write:
    """A write that admission handlers decide on; the arguments of `review`."""

    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None
    operation: Operation | None
    resource: str
    subresource: str
    user: str | Mapping[str, Any]
    dry_run: bool
    headers: Mapping[str, str]

    def request(self, kind: Resource, present: Mapping[str, Any]) -> Request:
        """The request of a review, about the `present` object of a kind."""
        metadata = present.get("metadata") or {}
        namespace = metadata.get("namespace") or "default"
        user = self.user
        return Request(
            uid="00000000-0000-0000-0000-000000000000",
            operation=_operation(self.operation, self.old, self.new),
            group=kind.group,
            version=kind.version,
            plural=kind.plural,
            kind=str(present.get("kind") or kind.kind),
            subresource=self.subresource,
            namespace=namespace if kind.namespaced else None,
            name=str(metadata.get("name") or ""),
            object=None if self.new is None else dict(self.new),
            old=None if self.old is None else dict(self.old),
            user_info={"username": user} if isinstance(user, str) else user,
            dry_run=self.dry_run,
            headers=self.headers,
        )


def decision_on(setup: Setup, write: Write) -> Decision:
    """The decision of a setup's admission handlers; see `review`."""
    run = _reviewing_run(setup)
    present = write.new if write.new is not None else write.old
    if present is None:
        raise ValueError("a review is about an object: give old=, new=, or both")
    kind = _kind(run, write.resource, present)
    request = write.request(kind, present)
    if not run.machine.reviews(request):
        raise AssertionError(
            f"no admission handler is about {kind.label}; name the kind with "
            "resource=, such as resource='claims.v1.example.com'"
        )
    return run.admission.decide(request)


def _reviewing_run(setup: Setup) -> SimulatedRun:
    """The operator, ready for reviews, in a cluster with the setup's objects."""
    teach_yaml()
    # The objects are already there: admission handlers are not called for them.
    before = SimulatedRun(Program(()), empty_cluster("0", EPOCH))
    program = setup.program()
    given = [*manifests_in(setup.crds), *manifests_in(setup.objects)]
    given += setup.class_definitions(program, given)
    try:
        apply_manifests(before, given)
    except ApplyProblem as problem:
        raise AssertionError(str(problem)) from None
    # In a review, a kind without a definition is not a typing error.
    settings = program.settings.replace(wait_for_kinds=True)
    run = SimulatedRun(
        Program(program.handlers, settings),
        before.cluster,
        clock=VirtualClock(EPOCH),
        calls=setup.models(),
    )
    begin_reviewing(run)
    if run.exit is not None:
        raise AssertionError(f"the operator has ended: {run.exit.reason}")
    return run


def _kind(run: SimulatedRun, named: str, present: Mapping[str, Any]) -> Resource:
    """The named kind, or the object's kind."""
    catalogue = catalogue_of(run)
    if not named:
        return catalogue.of_manifest(present) or _made_up(present)
    found = catalogue.lookup(named)
    if found is not None:
        return found
    plural, _, rest = named.partition(".")
    version, _, group = rest.partition(".")
    if not version:
        raise AssertionError(
            f"{catalogue.absence(named)}; give its definition as crds="
        )
    return Resource(group, version, plural, plural, plural)


def _operation(
    given: str | None, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None
) -> str:
    if given is not None:
        if given not in OPERATIONS:
            raise ValueError(f"operation= is one of {', '.join(OPERATIONS)}")
        return given
    if old is None:
        return "CREATE"
    return "DELETE" if new is None else "UPDATE"


def _made_up(manifest: Mapping[str, Any]) -> Resource:
    """The kind of a manifest without a given definition.

    Its plural is formed as in most definitions.
    """
    group, _, version = str(manifest.get("apiVersion") or "v1").rpartition("/")
    kind = str(manifest.get("kind") or "")
    singular = kind.lower()
    ending = "es" if singular.endswith(("s", "x", "ch", "sh")) else "s"
    plural = f"{singular}{ending}"
    if singular.endswith("y") and singular[-2:-1] not in "aeiou":
        plural = f"{singular[:-1]}ies"
    return Resource(group, version, plural, kind, singular)
