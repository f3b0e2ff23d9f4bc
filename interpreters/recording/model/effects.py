"""Effects as recordings have them: what each changes, and how stories name it.

`RECORDED` has a row for each effect of `fnop.core.seam.effect_rules.EFFECTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from fnop.core.seam.effect_rules import EFFECTS, EffectRule, Needs
from fnop.core.values.diff import Path, path_at
from fnop.core.values.durations import span
from fnop.core.values.paths import path_text
from fnop.effects import (
    Adopt,
    Again,
    Apply,
    Call,
    Create,
    Delete,
    Effect,
    Event,
    Execute,
    Freeze,
    Get,
    List,
    Log,
    Patch,
    Random,
    Remember,
    Requeue,
    Resume,
    Return,
    Sleep,
    Wait,
)
from fnop.effects.desired import label_of
from fnop.interpreters.recording.model.fields import brief, listed

__all__ = [
    "RECORDED",
    "changes_objects",
    "covers",
    "duration",
    "given_fields",
    "has_answer",
    "is_overlapping",
    "is_request",
    "is_waiting",
    "is_within",
    "named",
    "word_for",
]

Json = Mapping[str, Any]


class Recorded(Struct, frozen=True):
    """The words of recordings for an effect.

    `words` names it, with the object of its request ("" if it is not a request).
    `change` is the word for a new effect of this class, as `--fail-on` takes it, or "".
    An effect that `waits` does nothing else.
    """

    words: Callable[[Json, str], str]
    change: str = ""
    waits: bool = False


def _name_with_object(effect: Json, about: str) -> str:
    return f"{effect['is']} {about or _object_of(effect)}".strip()


def _patch(effect: Json, about: str) -> str:
    fields = [*_fields(effect.get("merge") or {}, ())]
    patched = (path_at(str(each.get("path"))) for each in effect.get("json") or ())
    fields += [path_text(each) or "all of it" for each in patched]
    where = f" {about}" if about else ""
    return f"{effect['is']}{where} ({listed(fields) or 'nothing'})"


def _sleep(effect: Json, _: str) -> str:
    return f"Sleep {duration(effect['seconds'])}"


def _again(effect: Json, _: str) -> str:
    return f"Again in {duration(effect['after'])}"


def _event(effect: Json, _: str) -> str:
    return f"Event {brief(effect.get('reason') or '')}"


def _call(effect: Json, _: str) -> str:
    return f"Call {brief(effect['function'].rpartition(':')[2])}"


RECORDED: Mapping[type[Effect], Recorded] = {
    Patch: Recorded(_patch, "patch"),
    Apply: Recorded(_name_with_object, "apply"),
    Create: Recorded(_name_with_object, "create"),
    Adopt: Recorded(_name_with_object, "create"),
    Delete: Recorded(_name_with_object, "delete"),
    Get: Recorded(_name_with_object),
    List: Recorded(_name_with_object),
    Call: Recorded(_call, "call"),
    Random: Recorded(_name_with_object),
    Sleep: Recorded(_sleep, waits=True),
    Wait: Recorded(_name_with_object, waits=True),
    Execute: Recorded(_name_with_object),
    Event: Recorded(_event, "event"),
    Log: Recorded(_name_with_object),
    Remember: Recorded(_name_with_object),
    Requeue: Recorded(_name_with_object),
    Freeze: Recorded(_name_with_object),
    Resume: Recorded(_name_with_object),
    Return: Recorded(_name_with_object),
    Again: Recorded(_again),
}
_RULES: Mapping[str, EffectRule] = {cls.__name__: rule for cls, rule in EFFECTS.items()}
_RECORDED: Mapping[str, Recorded] = {cls.__name__: row for cls, row in RECORDED.items()}
# The row of an effect that another release has recorded.
_UNKNOWN = Recorded(_name_with_object)


def changes_objects(kind: str) -> bool:
    """Whether effects of a class change an object, by the name of the class.

    >>> [each for each in ("Apply", "Get", "Call") if changes_objects(each)]
    ['Apply']
    """
    rule = _RULES.get(kind)
    return rule is not None and rule.needs is Needs.API and not rule.reads


def has_answer(kind: str) -> bool:
    """Whether effects of a class are answered with a value, not just completed."""
    rule = _RULES.get(kind)
    return rule is not None and (rule.reads or rule.is_outside)


def is_request(kind: str) -> bool:
    """Whether an awaited effect of a class does not only wait for a time."""
    rule = _RULES.get(kind)
    return rule is None or rule.needs is not Needs.TIME


def is_waiting(kind: str) -> bool:
    """Whether effects of a class do nothing but wait."""
    return _RECORDED.get(kind, _UNKNOWN).waits


def word_for(kind: str) -> str:
    """The word of `--fail-on` for a new effect of a class; "" if there is none."""
    return _RECORDED.get(kind, _UNKNOWN).change


# ---------------------------------------------------------------------------- words


def named(effect: Json, about: str = "") -> str:
    """An effect in a few words, with its fields but without their values."""
    return _RECORDED.get(effect["is"], _UNKNOWN).words(effect, about)


def duration(seconds: float) -> str:
    """A time that an operator waits, in words.

    >>> duration(0.5), duration(2592000)
    ('0.5s', '30d')
    """
    return f"{seconds:g}s" if seconds < 120 else span(seconds)


def _object_of(effect: Json) -> str:
    manifest = effect.get("manifest") or effect.get("child")
    if isinstance(manifest, Mapping) and (manifest.get("metadata") or {}).get("name"):
        return label_of(manifest)
    target = effect.get("target") or {}
    names = (target.get("kind") or target.get("resource"), target.get("name"))
    return "/".join(str(each) for each in names if each)


def _fields(value: Json, path: tuple[str, ...]) -> Iterator[str]:
    for name, each in value.items():
        here = (*path, name)
        if here in _PRECONDITIONS:
            continue
        if isinstance(each, Mapping) and each and len(here) < 3:
            yield from _fields(each, here)
        else:
            yield path_text(here)


# --------------------------------------------------------------------------- fields

# These fields say which object, and which version of it, is to be changed.
_PRECONDITIONS = (("metadata", "resourceVersion"), ("metadata", "uid"))


def covers(effect: Json, path: Path) -> bool:
    """Whether an effect sets a field, or something within it.

    >>> covers({"is": "Patch", "merge": {"status": {"a": 1}}}, ("status", "a"))
    True
    """
    if path in _PRECONDITIONS:
        return False
    if any(
        is_overlapping(path, path_at(each["path"])) for each in effect.get("json") or ()
    ):
        return True
    given: Any = given_fields(effect)
    for key in path:
        if not isinstance(given, Mapping):
            return True  # a list, or a value, that contains the field
        if key not in given:
            return False
        given = given[key]
    return True


def given_fields(effect: Json) -> Json:
    """The fields that an effect sets, apart from those of a JSON patch."""
    return effect.get("merge") or effect.get("manifest") or effect.get("child") or {}


def is_overlapping(one: Path, other: Path) -> bool:
    """Whether a field contains another one, or is within it."""
    return is_within(one, other) or is_within(other, one)


def is_within(path: Path, whole: Path) -> bool:
    """Whether a field is another one, or a part of that."""
    return path[: len(whole)] == whole
