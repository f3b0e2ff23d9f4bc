"""The names of sites: the object of an effect, or of an event."""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from fnop.core.api.resources import path_of
from fnop.core.seam.commands import Perform
from fnop.core.seam.effect_rules import rule_of
from fnop.effects import Call, Create
from fnop.interpreters.check.state.kinds import Place, Site
from fnop.interpreters.cluster.requests.request import route_of
from fnop.interpreters.runtime.protocol import ApiRequest
from fnop.interpreters.simulation.scenario import catalogue_of
from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = ["asked_at", "object_path", "sent_at", "target_of"]

# The end of a name that fnop makes from the owner's uid (`stable_name`).
_STABLE = re.compile(r"-[0-9a-f]{10}$")
_PARTS = re.compile(r"[a-z0-9]{2,}")
# Fewer characters may occur in a drawn text by chance.
_PIECE_MIN = 5
# The letters of Kubernetes' own generated names, and other usual ones.
_ALPHABETS = (
    "bcdfghjklmnpqrstvwxz2456789",
    string.ascii_lowercase,
    string.ascii_lowercase + string.digits,
    string.digits + string.ascii_lowercase,
    string.digits,
)
# Kinds by which operators inform, or find, each other: handlers do not depend on them.
_ASIDE = frozenset((("", "events"), ("events.k8s.io", "events")))


def target_of(
    plural: str, found: Mapping[str, Any], drawn: Collection[bytes] = ()
) -> str:
    """The name of an object in sites; its generated parts are `*`.

    The same holds for a part that is made of `drawn` random bytes.

    >>> target_of("pods", {"metadata": {"name": "x-abcde", "generateName": "x-"}})
    'pods/x-*'
    >>> target_of("configmaps", {"metadata": {"name": "x-03adaee2d8"}})
    'configmaps/x-*'
    >>> target_of("jobs", {"metadata": {"name": "x-6369616f"}}, [b"ciao"])
    'jobs/x-*'
    """
    meta = found.get("metadata") or {}
    generated = meta.get("generateName")
    if generated:
        return f"{plural}/{generated}*"
    name = str(meta.get("name") or "")
    return f"{plural}/{_name_without_generated(name, tuple(drawn))}"


@lru_cache(4096)
def _name_without_generated(name: str, drawn: tuple[bytes, ...]) -> str:
    name = _STABLE.sub("-*", name)
    if not drawn:
        return name
    return _PARTS.sub(
        lambda part: "*" if _is_made_of(part[0], drawn) else part[0], name
    )


def _is_made_of(part: str, drawn: Collection[bytes]) -> bool:
    """Whether a part of a name is random bytes, or a piece of their text."""
    return any(
        part == form or (len(part) >= _PIECE_MIN and part in form)
        for raw in drawn
        for form in _forms(raw)
    )


@lru_cache(4096)
def _forms(raw: bytes) -> tuple[str, ...]:
    """The texts that random bytes take in names."""
    letters = ("".join(each[byte % len(each)] for byte in raw) for each in _ALPHABETS)
    base32 = base64.b32encode(raw).decode().lower().rstrip("=")
    return raw.hex(), base32, str(int.from_bytes(raw)), *letters


def asked_at(run: SimulatedRun, command: Perform) -> Site | None:
    """The site of an effect; None if it is outside of the operator's work."""
    effect, handler = command.effect, command.handler or ""
    if isinstance(effect, Call):
        return Site(
            Place.CALL, handler, effect.kind.lower(), effect.function.partition(":")[2]
        )
    resource = command.resource
    if resource is None or command.urgent:
        return None
    if (resource.group, resource.plural) in _ASIDE:
        return None
    place = Place.READ if rule_of(effect).reads else Place.WRITE
    name = command.name
    if isinstance(effect, Create) or name is None:
        manifest = getattr(effect, "manifest", None) or {}
        target = target_of(resource.plural, manifest, run.draws.drawn)
    else:
        key = (command.namespace or "", name)
        shelf = run.cluster.shelves.get((resource.group, resource.plural))
        found = shelf.get(key) if shelf else None
        present = found or {"metadata": {"name": name}}
        target = target_of(resource.plural, present, run.draws.drawn)
    subject = command.subject
    own = (resource.key, command.namespace, name)
    if subject is not None and own == (
        *(subject.resource, subject.namespace, subject.name),
    ):
        place = Place.OWN if place is Place.WRITE else place
    return Site(place, handler, effect.kind.lower(), target)


# The effects of the requests that change objects.
_CHANGING = {
    "POST": "create",
    "PUT": "replace",
    "PATCH": "patch",
    "DELETE": "delete",
}


def sent_at(run: SimulatedRun, handler: str, request: ApiRequest) -> Site | None:
    """The site of a request by a client of a handler; None if it changes no object."""
    verb, route = _CHANGING.get(request.method), route_of(request.path)
    if verb is None or route is None or (route.group, route.plural) in _ASIDE:
        return None
    shelf = run.cluster.shelves.get((route.group, route.plural))
    found = shelf.get((route.namespace or "", route.name or "")) if shelf else None
    named = {"metadata": {"name": route.name}}
    body = request.body if isinstance(request.body, dict) else {}
    present = found or (named if route.name else body)
    target = target_of(route.plural, present, run.draws.drawn)
    return Site(Place.CLIENT, handler, verb, target)


def object_path(
    run: SimulatedRun, manifest: Mapping[str, Any], namespace: str
) -> str | None:
    """The path of an object of a known kind."""
    resource = catalogue_of(run).of_manifest(manifest)
    if resource is None:
        return None
    meta = manifest.get("metadata") or {}
    place = meta.get("namespace") or namespace
    return path_of(resource, place, meta.get("name"))
