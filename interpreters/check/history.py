"""Whether it matters how an object came to be as it is.

After any number of edits the world should be the one that a user gets who applies the
last manifests at once. What handlers keep in the status of their own objects may tell
of the past.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fnop.core.values.merge import applied
from fnop.interpreters.actions import Action, Apply, Delete, Edit
from fnop.interpreters.check.properties import Benign, Violation, seen_by
from fnop.interpreters.check.trial import Scene, Trial
from fnop.interpreters.check.worlds import differences

__all__ = ["at_once", "no_history", "objects_left"]

# Name and namespace of an object; None is the scenario's namespace.
_Key = tuple[str, str | None]


def no_history(
    scene: Scene, benign: Benign, script: Sequence[Action]
) -> Iterator[Violation]:
    """The world after a script, without faults, is that of its last manifests.

    `script` is that of the scene, or its beginning. One that ends otherwise than with a
    change of an object says nothing.
    """
    if not script or not isinstance(script[-1], (Apply, Edit)):
        return
    short = at_once(script)
    if short == tuple(script):
        return
    long_end = seen_by(Trial(scene._replace(script=tuple(script))).play()).world
    short_end = seen_by(Trial(scene._replace(script=short)).play()).world
    found = differences(
        short_end, long_end, benign.volatile, without_status=benign.handled
    )
    if found:
        details = tuple(map(str, found))
        message = f"{details[0]}, where the last manifests are applied at once"
        yield Violation("no_history", message, details)


def at_once(script: Iterable[Action]) -> tuple[Action, ...]:
    """The script of a user who applies the last manifests at once.

    What is done to objects that the user has not applied stays as it is.

    >>> from fnop.interpreters.actions import apply, edit
    >>> claim = {"kind": "Claim", "metadata": {"name": "c"}, "spec": {"size": 1}}
    >>> (only,) = at_once([apply(claim), edit("claims/c", spec={"size": 2})])
    >>> only.manifest["spec"]
    {'size': 2}
    """
    actions = [*script]
    left = objects_left(actions)
    known: dict[_Key, dict[str, Any]] = {}
    found: list[Action] = []
    for action in actions:
        match action:
            case Apply(manifest):
                key = _key(manifest)
                if key not in known and key in left:
                    found.append(Apply(left[key]))
                known[key] = manifest
            case Edit(where, _, place) | Delete(where, place):
                if _key_in(known, where, place) is None:
                    found.append(action)
            case _:
                found.append(action)
    return tuple(found)


def objects_left(script: Iterable[Action]) -> dict[_Key, dict[str, Any]]:
    """The objects that a user has applied and not deleted, with all edits of them."""
    left: dict[_Key, dict[str, Any]] = {}
    for action in script:
        match action:
            case Apply(manifest):
                key = _key(manifest)
                left[key] = applied(manifest, left.get(key, {}))
            case Edit(where, changes, place):
                known = _key_in(left, where, place)
                if known is not None:
                    left[known] = applied(changes, left[known])
            case Delete(where, place):
                known = _key_in(left, where, place)
                if known is not None:
                    del left[known]
    return left


def _key(manifest: Mapping[str, Any]) -> _Key:
    meta = manifest["metadata"]
    return str(meta.get("name")), meta.get("namespace")


def _key_in(
    known: Mapping[_Key, Mapping[str, Any]], where: str, place: str | None
) -> _Key | None:
    """The object that a user names; all names of a kind begin with the same letter."""
    kind, _, name = where.partition("/")
    for key, manifest in known.items():
        near = place is None or key[1] in (None, place)
        if key[0] == name and near and manifest["kind"][0].lower() == kind[0].lower():
            return key
    return None
