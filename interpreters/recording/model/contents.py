"""The contents of a recording: the objects that it shows, and their kinds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fnop.core.api.resources import Resource
from fnop.interpreters.recording.model.history import History, Question, Step
from fnop.interpreters.recording.model.records import Began
from fnop.interpreters.recording.model.refs import Named, Place

__all__ = ["Contents", "NoSuchObject", "is_kind"]


class NoSuchObject(LookupError):
    """The recording shows no such object, or several; the message is one sentence."""


_SHOWN_MAX = 8


@dataclass
class Contents(Question):
    """The fold of a recording to its objects, in the order of their appearance."""

    history: History = field(default_factory=History)
    _objects: dict[Place, None] = field(default_factory=dict)
    _handled: set[tuple[str, str, str]] = field(default_factory=set)

    def see(self, step: Step) -> None:
        """Take one step in."""
        for each in step.shown:
            self._objects.setdefault(Place.of(each.data))
        for command in step.commands:
            if isinstance(command, Began) and command.object is not None:
                self._handled.add(command.object[:3])

    @property
    def objects(self) -> tuple[Named, ...]:
        """All objects whose kinds the API server has served."""
        kinds = {
            (each.api_version, each.kind): each
            for each in self.history.catalogue.resources
        }
        return tuple(
            Named(kinds[api_version, kind], namespace, name)
            for api_version, kind, namespace, name in self._objects
            if (api_version, kind) in kinds
        )

    def named(self, words: str, among: Iterable[Named] | None = None) -> Named:
        """The object that a person means: KIND/NAMESPACE/NAME, or a part of that.

        A kind or a namespace may precede the name. Objects for which handlers were
        called come before others of the same name. The search covers the objects in
        `among`, by default all. Raises `NoSuchObject`.
        """
        parts = words.split("/")
        wanted = self.objects if among is None else among
        found = [each for each in wanted if _is_meant(each, parts)]
        handled = [each for each in found if self._is_handled(each)]
        found = handled or found
        if len(found) == 1:
            return found[0]
        if not found:
            known = _names_in_words(
                [each for each in self.objects if self._is_handled(each)]
            )
            raise NoSuchObject(
                f"the recording shows no object {words!r}; handlers were called for "
                f"{known}"
            )
        raise NoSuchObject(
            f"{words!r} may be {_names_in_words(found)}; write KIND/NAMESPACE/NAME"
        )

    def _is_handled(self, each: Named) -> bool:
        return (each.resource.key, each.namespace, each.name) in self._handled


def _is_meant(each: Named, parts: list[str]) -> bool:
    *before, name = parts
    if name != each.name:
        return False
    match before:
        case []:
            return True
        case [one]:
            return one == each.namespace or is_kind(each.resource, one)
        case [kind, namespace]:
            return namespace == each.namespace and is_kind(each.resource, kind)
        case _:
            return False


def is_kind(resource: Resource, word: str) -> bool:
    """Whether a word denotes a kind: its plural, singular, kind, or a short name."""
    words = (resource.plural, resource.singular, resource.kind.lower(), resource.label)
    return word.lower() in (*words, *resource.shortcuts, resource.key)


def _names_in_words(found: list[Named]) -> str:
    names = [str(each) for each in found[:_SHOWN_MAX]]
    more = len(found) - len(names)
    text = ", ".join(names) or "none"
    return f"{text}, and {more} more" if more > 0 else text
