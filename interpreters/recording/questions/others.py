"""Actions of others: changes of handled objects and their children, and deletions.

A version that an input shows is the operator's if one of its requests may have made it.
Such a request is open, has lost its reply, or was answered with this version. Fields
that such a request does not set, and that others manage, still count as changes by
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Struct

from fnop.core.children.fields import managers_at
from fnop.core.children.owned import owners_of
from fnop.core.seam.traces import Version
from fnop.core.values.body import Body
from fnop.core.values.diff import Diff, DiffItem
from fnop.effects import Delete
from fnop.interpreters.recording.model.effects import covers
from fnop.interpreters.recording.model.fields import changes_of, fields_text
from fnop.interpreters.recording.model.history import (
    History,
    Question,
    Request,
    Step,
)
from fnop.interpreters.recording.model.presence import Presence
from fnop.interpreters.recording.model.records import Began, Gap
from fnop.interpreters.recording.model.refs import Ref, ref_of

__all__ = ["Others", "OthersChange"]

_DELETION = ("metadata", "deletionTimestamp")


class OthersChange(NamedTuple):
    """An action of others: the story that it belongs to, the text, and the object."""

    where: str
    text: str
    label: str


class _Told(Struct, frozen=True):
    """An object in the story: whose story it belongs to, and its name there.

    A child belongs to the story of its owner.
    """

    where: str
    label: str
    is_handled: bool = False


@dataclass
class Others(Question):
    """The actions of others in a recording.

    `manager` is the operator's name in managed fields, if it is known.
    """

    manager: str = ""
    history: History = field(default_factory=History)
    _bodies: dict[str, Body] = field(default_factory=dict)
    _told: dict[str, _Told] = field(default_factory=dict)
    # The requests that may have changed an object, by its kind and its names.
    _sent: dict[str, list[Request]] = field(default_factory=dict)
    # Steps are missing, and requests with them. Then only fields that others manage
    # count as theirs.
    _is_partial: bool = False

    def __post_init__(self) -> None:
        """Note the presence of the same objects."""
        self._presence = Presence(self.history)

    def miss(self, gap: Gap) -> None:
        """Take note of missing steps, whose changes are not attributed to others."""
        self._bodies.clear()
        self._presence.miss(gap)
        self._is_partial = True

    def see(self, step: Step) -> list[OthersChange]:
        """Take one step in; return the actions of others that its input shows."""
        if step.is_start:
            self._is_partial = False
        for command in step.commands:
            if isinstance(command, Began) and command.object is not None:
                self._note_handled(command.object, command.children)
        found = [*self._changes_in_input(step)]
        if step.request is not None:
            self._forget_settled(step.request)
        for each in self._presence.see(step):
            found += self._deletion_by_others(each.uid, listed=each.listed)
        for request in step.requests.values():
            if request.object is not None:
                self._sent.setdefault(request.object.label, []).append(request)
        return found

    def _note_handled(self, version: Version, children: Iterable[Version]) -> None:
        self._told.setdefault(version.uid, _Told(version.where, _label(version), True))
        for child in children:
            self._told[child.uid] = _Told(version.where, _label(child))

    def _forget_settled(self, request: Request) -> None:
        """Forget a request whose answer has reported everything that it did.

        An object that the operator deletes may stay until its finalizers are removed.
        """
        label = "" if request.object is None else request.object.label
        sent = self._sent.get(label, [])
        is_deletion = _is_deleting(request) and not request.is_denied
        if request in sent and request.is_settled and not is_deletion:
            sent.remove(request)
        if not sent:
            self._sent.pop(label, None)

    # ------------------------------------------------------------------- sights

    def _changes_in_input(self, step: Step) -> Iterator[OthersChange]:
        for body in () if step.is_gone else step.shown:
            was = self._bodies.get(body.uid)
            if was is not None and not _is_newer(body.version, was.version):
                continue
            self._bodies[body.uid] = body
            told = self._told.get(body.uid) or self._known_child(step, body)
            if was is not None and told is not None:
                yield from self._changes_by_others(told, was, body)

    def _known_child(self, step: Step, body: Body) -> _Told | None:
        """A child of an object in the story, known by its owner reference."""
        owners = (self._told.get(each.uid) for each in owners_of(body))
        owner = next((each for each in owners if each and each.is_handled), None)
        label = ""
        kind = self.history.kind_of(getattr(step.input, "stream", -1))
        if kind is not None:
            label = Ref(kind, body.namespace or "", body.name).label
        elif step.request is not None and step.request.object is not None:
            label = step.request.object.label
        if owner is None or not label:
            return None
        return self._told.setdefault(body.uid, _Told(owner.where, label))

    def _changes_by_others(
        self, told: _Told, was: Body, body: Body
    ) -> Iterator[OthersChange]:
        changes = changes_of(was.data, body.data)
        is_asked = any(map(_is_deleting, self._sent.get(told.label, ())))
        if any(each.field == _DELETION for each in changes) and not is_asked:
            yield OthersChange(told.where, f"{told.label} is to be deleted", told.label)
        rest = tuple(
            e for e in changes if not (_is_deletion(e) or (is_asked and _is_policy(e)))
        )
        left = tuple(e for e in rest if not self._is_asked(told, body, e))
        is_ours = len(left) < len(rest)  # a request of ours has made this version
        if is_ours or self._is_partial:
            left = tuple(e for e in left if self._foreign_managers(was, body, (e,)))
        if left:
            names = self._foreign_managers(was, body, left)
            by = f" by {', '.join(names)}" if names else ""
            text = f"{told.label} is changed{by}: {fields_text(left)}"
            yield OthersChange(told.where, text, told.label)

    def _is_asked(self, told: _Told, body: Body, item: DiffItem) -> bool:
        """Whether a request of ours sets a field, and not only others manage it."""
        sent = self._sent.get(told.label, ())
        if not any(covers(each.effect, item.field) for each in sent):
            return False
        managers = managers_at(body.data, item.field) if item.new is not None else ()
        is_theirs = self.manager and managers and self.manager not in managers
        return not is_theirs

    def _foreign_managers(self, was: Body, body: Body, items: Diff) -> list[str]:
        """The managers of the fields, or those until the fields were removed."""
        found: dict[str, None] = {}
        for each in items:
            of = was if each.new is None else body
            found |= dict.fromkeys(managers_at(of.data, each.field))
        return [each for each in found if each != self.manager]

    def _deletion_by_others(self, uid: str, *, listed: bool) -> Iterator[OthersChange]:
        told = self._told.pop(uid, None)
        self._bodies.pop(uid, None)
        if told is None:
            return
        if not any(map(_is_deleting, self._sent.pop(told.label, []))):
            how = "is gone: a listing lacks it" if listed else "is deleted"
            yield OthersChange(told.where, f"{told.label} {how}", told.label)


def _is_deleting(request: Request) -> bool:
    return request.verb == Delete.__name__


def _is_deletion(item: DiffItem) -> bool:
    return item.field[:1] == ("metadata",) and str(item.field[-1]).startswith(
        "deletion"
    )


# Finalizers by which the garbage collector carries out a deletion request.
_POLICIES = frozenset(("foregroundDeletion", "orphan"))


def _is_policy(item: DiffItem) -> bool:
    """Whether the API server sets it for a deletion's propagation policy."""
    if item.field != ("metadata", "finalizers"):
        return False
    old, new = (set(each or ()) for each in (item.old, item.new))
    return old ^ new <= _POLICIES


def _label(version: Version) -> str:
    return ref_of(version.resource, version.namespace, version.name).label


def _is_newer(one: str, other: str) -> bool:
    both = one.isdecimal() and other.isdecimal()
    return int(one) > int(other) if both else one != other
