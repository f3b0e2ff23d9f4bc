"""The words for changes of decisions, by which a pipeline can be made to fail.

A word stands for something new: for what the recorded attempt did not do from the first
difference on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fnop.effects import Call, Event
from fnop.effects.values import canonical
from fnop.interpreters.recording.comparison.shadow import Changed
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.effects import given_fields, word_for

__all__ = ["WORDS", "words_of"]

Json = Mapping[str, Any]

# An object of a handler's decision: its kind, namespace ("" for the own one), and name.
Object = tuple[str, str, str]

WORDS = {
    "any": "whatever changes, and all that is below",
    "raise": "an attempt fails that did not",
    "delete": "an object is deleted, or a child is no longer desired",
    "create": "an object is created, or a child is desired that is not there",
    "apply": "an object is applied, or a child desired that is there already",
    "patch": "an object is patched, or a status set",
    "change": "what is applied, created, patched or desired has other contents",
    "event": "an Event of another type or reason",
    "call": "a function is called, or with other arguments",
    "removed": "decisions of a handler that is none now",
    "index": "an index function returns other values",
    "deny": "an admission handler denies a recorded write that was admitted",
}
"""The words, and what each stands for."""


def words_of(attempt: Attempt, changed: Changed) -> frozenset[str]:
    """The words for one change."""
    if changed.sort == "indexes":
        return frozenset(("any", "index"))
    found = {"any", *_effect_words(attempt, changed)}
    failed = bool((attempt.end or {}).get("failure"))
    if changed.failure is not None and not failed:
        found.add("raise")
    if changed.failure is None and "is" not in changed.now:
        recorded = _recorded_desired(attempt)
        found.update(_desired_words(attempt, recorded, changed.now.get("desired")))
    return frozenset(found)


# -------------------------------------------------------------------------- effects


def _effect_words(attempt: Attempt, changed: Changed) -> Iterator[str]:
    """The words for effects: each effect has an identity, and contents."""
    were = [each.asked for each in attempt.exchanges[changed.number :]]
    for trace in (attempt.desires, attempt.end):
        were += _effects(trace or {})
    are = [changed.now] if "is" in changed.now else _effects(changed.now)
    for identity in Counter(map(_identity, are)) - Counter(map(_identity, were)):
        if word := word_for(identity[0]):
            yield word
    before = {_identity(each) for each in were}
    contents = {canonical(each) for each in were}
    for each in are:
        is_known = given_fields(each) and _identity(each) in before
        if is_known and canonical(each) not in contents:
            yield "change"


def _effects(end: Json) -> list[Json]:
    return [*end.get("plan", ()), *(each for each in end.get("patches", ()) if each)]


def _identity(effect: Json) -> tuple[str, ...]:
    """The kind of an effect and its object: equal identities share a word.

    >>> _identity({"is": "Event", "reason": "Done", "message": "it is done"})
    ('Event', 'Normal', 'Done')
    """
    kind = effect["is"]
    match kind:
        case Event.__name__:
            return kind, str(effect.get("type", "Normal")), str(effect.get("reason"))
        case Call.__name__:
            return kind, canonical(effect).decode()
        case _:
            return kind, *_place_of_effect(
                effect.get("manifest") or effect.get("child"), effect
            )


def _place_of_effect(manifest: Json | None, effect: Json) -> Object:
    if manifest is not None:
        return _place_of_manifest(manifest)
    target = effect.get("target") or {}
    kind = target.get("kind") or target.get("resource") or ""
    return str(kind), str(target.get("namespace") or ""), str(target.get("name") or "")


def _place_of_manifest(manifest: Json, own: str = "") -> Object:
    meta = manifest.get("metadata") or {}
    place = str(meta.get("namespace") or own)
    return str(manifest.get("kind")).lower(), place, str(meta.get("name") or "")


# -------------------------------------------------------------------- what is desired


def _recorded_desired(attempt: Attempt) -> Json | None:
    """The recorded wishes of an attempt; None if it failed, or ended before."""
    return None if attempt.desires is None else attempt.desires.get("desired")


def _desired_words(
    attempt: Attempt, recorded: Json | None, now: Json | None
) -> Iterator[str]:
    """The words for the status, and for children unless they are left unchanged."""
    if now is None:
        return
    status = ("status", "conditions")
    if recorded is None and any(now.get(each) for each in status):
        yield "patch"
    elif recorded is not None and _has_difference(recorded, now, status):
        yield "change"
    if not now.get("unchanged"):
        yield from _child_words(attempt, recorded, now)


def _child_words(attempt: Attempt, recorded: Json | None, now: Json) -> Iterator[str]:
    """The words for children, which had stayed if the recorded handler failed."""
    own = "" if attempt.object is None else attempt.object.namespace
    is_list = recorded is not None and not recorded.get("unchanged")
    were = _children(recorded.get("children", ()), own) if recorded else {}
    are = _children(now.get("children", ()), own)
    there = {_place_of_manifest(each.data, own) for each in attempt.children.values()}
    kept = {place for place, each in were.items() if each.get("keep")}
    if ((were.keys() - kept) if is_list else there) - are.keys():
        yield "delete"
    more = are.keys() - were.keys()
    if more - there:
        yield "create"
    if more & there:
        yield "apply"
    if any(canonical(each) != canonical(are.get(p, each)) for p, each in were.items()):
        yield "change"


def _has_difference(one: Json, other: Json, names: Iterable[str]) -> bool:
    return any(canonical(one.get(e)) != canonical(other.get(e)) for e in names)


def _children(children: Iterable[Json], own: str) -> dict[Object, Json]:
    return {_place_of_manifest(each["manifest"], own): each for each in children}
