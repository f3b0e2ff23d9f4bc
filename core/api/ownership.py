"""Children and their owners: names, labels, owner references, and conflicts.

A child belongs to the object whose uid is in its owner references. Another owner's
child is a conflict; it is never taken over.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any, NoReturn, overload

from fnop.core.api.hierarchies import (
    adjust_namespace,
    append_owner_reference,
    label,
    remove_owner_reference,
)
from fnop.core.values.body import Body
from fnop.core.values.patterns import matches
from fnop.effects import Target
from fnop.effects.effects import label_patterns
from fnop.effects.manifests import (
    Manifest,
    cannot_own,
    each_manifest,
    manifest_of,
)

__all__ = [
    "TOKEN_ANNOTATION",
    "TRACKING_LABELS",
    "Claim",
    "call_token",
    "claim_of",
    "has_token",
    "inherited",
    "owned",
    "owner_of",
    "stable_name",
    "with_token",
]

# The names of most kinds are DNS labels or subdomains; 63 characters fit both.
_NAME_LENGTH_MAX = 63
# The annotation that names the handler, and the object, for which one was created.
TOKEN_ANNOTATION = "fnop.dev/created-by"


@overload
def owned(
    child: Manifest,
    owner: Manifest,
    *,
    namespaced: bool = ...,
    nested: Iterable[Any] | str = ...,
    labels: Collection[str] | None = ...,
) -> dict[str, Any]: ...
@overload
def owned(
    child: Iterable[Manifest],
    owner: Manifest,
    *,
    namespaced: bool = ...,
    nested: Iterable[Any] | str = ...,
    labels: Collection[str] | None = ...,
) -> list[dict[str, Any]]: ...
def owned(
    child: Any,
    owner: Manifest,
    *,
    namespaced: bool = True,
    nested: Iterable[Any] | str = (),
    labels: Collection[str] | None = None,
) -> Any:
    """Make a child's manifest one of an owner: a new value, nothing is changed.

    `child` is a manifest, or an iterable of them; `owner` is an object that was read.
    The result has the owner reference, and the owner's namespace unless `namespaced` is
    False. It also has the owner's labels that the child does not set itself. The labels
    are also added at the `nested` paths, such as `"spec.template"`. `labels` are the
    names, or patterns of names, of the labels to inherit. None inherits all except the
    labels that other tools use to track the objects that they have applied
    (`TRACKING_LABELS`). Raises `ValueError` for a child outside of its owner's
    namespace: the garbage collector would delete it.

    >>> owned({"kind": "Pod"}, {"kind": "K", "metadata": {"uid": "u", "name": "o"}})[
    ...     "metadata"]["ownerReferences"][0]["uid"]
    'u'
    """
    labels = label_patterns(labels)
    meta = manifest_of(owner).get("metadata") or {}
    found: Any = append_owner_reference(remove_owner_reference(child, owner), owner)
    if not namespaced and meta.get("namespace"):
        each_manifest(found, lambda one: _refuse_global(one, owner))
    if namespaced:
        found = adjust_namespace(found, meta.get("namespace"))
    given = inherited(meta.get("labels") or {}, labels)
    return label(found, given, nested=nested) if given else found


def _refuse_global(child: Mapping[str, Any], owner: Manifest) -> NoReturn:
    raise ValueError(cannot_own(child, owner, "in no namespace"))


# Labels that tools use to track the objects that they have applied. On a child they
# would be wrong, and a tool that prunes with them would delete it.
TRACKING_LABELS = (
    "app.kubernetes.io/instance",  # Argo CD, and the charts of Helm
    "app.kubernetes.io/managed-by",
    "applyset.kubernetes.io/*",  # kubectl apply --prune
    "argocd.argoproj.io/*",
    "fleet.cattle.io/*",
    "helm.sh/*",
    "kapp.k14s.io/*",
    "objectset.rio.cattle.io/*",
    "olm.*",
    "operators.coreos.com/*",
    "*.toolkit.fluxcd.io/*",
    # Set by workload controllers and the API server itself.
    "controller-revision-hash",
    "kubernetes.io/metadata.name",
    "pod-template-hash",
)


def inherited(
    labels: Mapping[str, Any], wanted: Collection[str] | None = None
) -> dict[str, Any]:
    """The labels of an owner that its children inherit.

    >>> found = {"app": "db", "argocd.argoproj.io/instance": "prod"}
    >>> inherited(found), inherited(found, ["argocd*"]), inherited(found, ())
    ({'app': 'db'}, {'argocd.argoproj.io/instance': 'prod'}, {})
    """
    if wanted is None:
        return {k: v for k, v in labels.items() if not _is_among(k, TRACKING_LABELS)}
    return {k: v for k, v in labels.items() if _is_among(k, wanted)}


def _is_among(name: str, patterns: Iterable[str]) -> bool:
    return any(matches(pattern, name) for pattern in patterns)


def stable_name(owner: Mapping[str, Any], handler: str, role: str) -> str:
    """The name of a child, which is the same at every run of the same handler.

    >>> stable_name({"metadata": {"name": "db", "uid": "u"}}, "create", "0")
    'db-03adaee2d8'
    """
    meta = owner.get("metadata") or {}
    identity = f"{meta.get('uid')}/{handler}/{role}".encode()
    suffix = hashlib.blake2b(identity, digest_size=5).hexdigest()
    base = re.sub(r"[^a-z0-9-]+", "-", str(meta.get("name") or "child").lower())
    base = base[: _NAME_LENGTH_MAX - len(suffix) - 1].strip("-") or "child"
    return f"{base}-{suffix}"


def call_token(marker: str, owner_uid: str, handler: str) -> str:
    """The token that marks the objects that a handler creates for one object.

    >>> call_token("fnop.dev/default", "u", "create")
    '38ad14ce4b146c06'
    """
    identity = f"{marker}/{owner_uid}/{handler}".encode()
    return hashlib.blake2b(identity, digest_size=8).hexdigest()


def with_token(manifest: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Return a manifest with a token that identifies the created object.

    >>> with_token({"kind": "Pod"}, "t")
    {'kind': 'Pod', 'metadata': {'annotations': {'fnop.dev/created-by': 't'}}}
    """
    meta = manifest.get("metadata") or {}
    annotations = {**(meta.get("annotations") or {}), TOKEN_ANNOTATION: token}
    return {**manifest, "metadata": {**meta, "annotations": annotations}}


def has_token(existing: Mapping[str, Any], token: str) -> Claim:
    """The ownership of an existing object, by the token that it was created with."""
    meta = existing.get("metadata") or {}
    if not token or (meta.get("annotations") or {}).get(TOKEN_ANNOTATION) != token:
        return Claim.THEIRS
    return Claim.ENDING if meta.get("deletionTimestamp") else Claim.OURS


def owner_of(body: Body, kinds: Collection[tuple[str, str]] | None) -> Target | None:
    """The owner of an object: its first owner reference of one of these kinds.

    A kind is (group, kind); without kinds it is the controller. An owner is in its
    dependent's namespace, or cluster-scoped (Kubernetes: owners and dependents).
    """
    references = body.meta.get("ownerReferences")
    for each in references if isinstance(references, list) else ():
        if not isinstance(each, dict) or not each.get("name") or not each.get("kind"):
            continue
        group, _, version = str(each.get("apiVersion")).rpartition("/")
        is_meant = (group, each["kind"]) in kinds if kinds else each.get("controller")
        if is_meant:
            kind = f"{each['kind']}.{version}.{group}"
            try:
                return Target(kind, each["name"], body.namespace, each.get("uid"))
            except ValueError:
                continue  # the name is invalid; the API server does not check it
    return None


class Claim(Enum):
    """The ownership of an existing object."""

    OURS = "ours"
    ENDING = "ending"  # ours, but being deleted: wait until it is gone
    THEIRS = "theirs"


def claim_of(existing: Mapping[str, Any], owner_uid: str) -> Claim:
    """The ownership of an existing object, by its owner references.

    >>> claim_of({"metadata": {"ownerReferences": [{"uid": "u"}]}}, "u")
    <Claim.OURS: 'ours'>
    """
    meta = existing.get("metadata") or {}
    owners = {each.get("uid") for each in meta.get("ownerReferences") or []}
    if owner_uid not in owners:
        return Claim.THEIRS
    return Claim.ENDING if meta.get("deletionTimestamp") else Claim.OURS
